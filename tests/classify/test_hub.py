"""A model goes to the hub and comes back: as one commit, with nothing but a model's own files, and with plain errors.

The hub is a stand-in on this machine, `hub_server.py`; the hub library is the real one.
"""

import hashlib
import json
import logging
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import constants
from typer.testing import CliRunner

from classify.conftest import TEXTS
from hub_server import TOKEN, Hub, running_hub
from labelspace import ConsensusClassifier, ZeroShotClassifier, load
from labelspace.classify.saved import fetching, pushing
from labelspace.cli.app import app
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, LabelSpaceError, ModelFolderError, OutputError
from labelspace.hub import OFFLINE_VARIABLES

Maker = Callable[..., Any]
NAME = "somebody/desk"
POOL = [
    f"{who} {what} {row}" for who in ("the team", "the bank") for what in ("won", "lost", "said") for row in range(13)
]


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Hub]:
    """A hub that this process may ask, with a cache of its own and nobody logged in."""
    with running_hub() as running:
        for variable in (*OFFLINE_VARIABLES, "HTTP_PROXY", "http_proxy", "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HF_ENDPOINT", running.address)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
        yield running


@pytest.fixture
def clf(fitted: Maker) -> Any:
    """A zero-shot model."""
    return fitted("zero-shot")


@pytest.fixture
def files(zero_shot_folder: Path) -> dict[str, bytes]:
    """The files of a saved model, by path."""
    folder = zero_shot_folder
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_header(files: dict[str, bytes], file: str, **facts: Any) -> dict[str, bytes]:
    """Return files whose header tells of another size or hash of a file."""
    header = json.loads(files["labelspace.json"])
    header["files"].setdefault(file, {}).update(facts)
    return {**files, "labelspace.json": json.dumps(header).encode()}


# ---- there and back


def test_a_pushed_model_comes_back_with_the_same_bits(hub: Hub, clf: Any):
    clf.push_to_hub(NAME, token=TOKEN)
    again = load(NAME)
    assert type(again) is type(clf)
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()


@pytest.mark.parametrize("student", [None, "words"])
def test_what_a_consensus_learnt_comes_back_with_the_same_bits(
    student: str | None, hub: Hub, tiny_encoder_folder: Path
):
    encoder = f"zero-shot:{tiny_encoder_folder}"
    clf = ConsensusClassifier(["sports", "money"], views=[encoder, "words"], student=student).fit(POOL)
    clf.push_to_hub(NAME, token=TOKEN)
    again = load(NAME)
    assert type(again) is type(clf.model_)
    assert (again.decision_function(POOL) == clf.decision_function(POOL)).all()


def test_a_push_is_one_commit_with_its_message_and_an_older_push_stays_a_revision(hub: Hub, clf: Any, fitted: Maker):
    first = clf.push_to_hub(NAME, token=TOKEN, message="with three labels")
    other = fitted("zero-shot", labels=["film", "food"])
    second = other.push_to_hub(NAME, token=TOKEN)
    hashes, messages, _ = zip(*hub.repositories[NAME].commits, strict=True)
    assert hashes[1:] == (first, second)
    assert messages == ("first", "with three labels", "A model of labelspace")
    assert list(load(NAME).classes_) == ["film", "food"]
    assert list(load(NAME, revision=first).classes_) == ["money", "sports", "world"]


def test_a_push_takes_the_older_model_away_and_leaves_other_files(hub: Hub, clf: Any, files: dict[str, bytes]):
    old = with_header({**files, "lacon.safetensors": b"old", "notes.txt": b"mine"}, "lacon.safetensors", bytes=3)
    repository = hub.add(NAME, {**old, ".gitattributes": b"x"})
    clf.push_to_hub(NAME, token=TOKEN)
    assert set(repository.files) == {*files, "notes.txt", ".gitattributes"}
    load(NAME)


def test_a_local_folder_comes_before_the_hub(
    hub: Hub, files: dict[str, bytes], fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    fitted("zero-shot", labels=["film", "food"]).save(tmp_path / NAME)
    hub.add(NAME, files)
    monkeypatch.chdir(tmp_path)
    for name in (NAME, Path(NAME)):
        assert list(load(name).classes_) == ["film", "food"]
    assert hub.asked == []
    with pytest.raises(ConfigError, match="revision is for a model on the hub, and somebody/desk is none"):
        load(NAME, revision="main")


def test_commands_and_a_consensus_open_a_model_by_its_name_on_the_hub(
    hub: Hub, clf: Any, files: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    hub.add(NAME, files)
    (tmp_path / "docs.csv").write_text("text\n" + "\n".join(TEXTS), encoding="utf-8")
    with pytest.raises(SystemExit) as done:
        app(["predict", NAME, str(tmp_path / "docs.csv"), "--json"])
    assert done.value.code == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["label"] for line in lines] == list(clf.predict(TEXTS))
    taught = ConsensusClassifier(clf.label_space_, views=[f"saved:{NAME}", "words"]).fit(POOL)
    assert taught.consensus_.to_dict()["steps"]


def test_an_encoder_of_that_name_is_the_models_encoder(hub: Hub, clf: Any, files: dict[str, bytes]):
    hub.add(NAME, files)
    assert (Encoder(NAME, dtype="float32").encode(TEXTS) == clf.encoder_.encode(TEXTS)).all()


# ---- the card


def head_of(hub: Hub) -> dict[str, Any]:
    return yaml.safe_load(hub.repositories[NAME].files["README.md"].decode().split("---")[1])


def test_the_card_opens_the_model_by_its_name(hub: Hub, clf: Any):
    clf.push_to_hub(NAME, token=TOKEN)
    assert f'load("{NAME}")' in hub.repositories[NAME].files["README.md"].decode()
    assert head_of(hub) == {
        "library_name": "sentence-transformers",
        "pipeline_tag": "text-classification",
        "tags": ["labelspace", "sentence-transformers", "zero-shot-classification"],
    }


def test_the_card_tells_an_accuracy_that_was_measured_in_the_form_of_the_hub(hub: Hub, well_fitted: Any):
    well_fitted.push_to_hub(NAME, token=TOKEN)
    (model,) = head_of(hub)["model-index"]
    (result,) = model["results"]
    assert result["task"]["type"] == "text-classification"
    assert result["dataset"]["name"] == "9 labelled rows held out of training"
    (metric,) = result["metrics"]
    assert (metric["type"], metric["value"]) == ("accuracy", round(well_fitted.fit_result_.held_out_accuracy, 4))


def test_the_card_tells_an_estimate_under_a_name_of_its_own(hub: Hub, tiny_encoder_folder: Path):
    encoder = f"zero-shot:{tiny_encoder_folder}"
    clf = ConsensusClassifier(["sports", "money"], views=[encoder, "words"], student="words").fit(POOL)
    clf.push_to_hub(NAME, token=TOKEN)
    likely = clf.fit_result_.probabilities["accuracy"]
    (result,) = head_of(hub)["model-index"][0]["results"]
    (metric,) = result["metrics"]
    assert (metric["type"], metric["value"]) == ("estimated_accuracy", round(likely["expected"], 4))
    assert "estimated without labels" in metric["name"]
    assert result["dataset"]["name"] == f"{len(POOL)} unlabelled documents"


# ---- a push that fails


@pytest.mark.slow
def test_a_failed_push_leaves_the_repository_as_it_was(hub: Hub, clf: Any, files: dict[str, bytes]):
    repository = hub.add(NAME, files)
    for route, status in {"/commit/": 500, "/preupload/": 503, "/api/models/": 401}.items():
        hub.fail = {route: status}
        with pytest.raises(OutputError, match=rf"{NAME} was not pushed: the hub .*\(status {status}"):
            clf.push_to_hub(NAME, token=TOKEN)
    hub.fail = {}
    hub.break_in = "/commit/"
    with pytest.raises(OutputError, match=r"the connection to the hub .* broke .*; a push is whole or nothing"):
        clf.push_to_hub(NAME, token=TOKEN)
    assert len(repository.commits) == 1
    assert repository.files == files


def test_a_push_without_the_right_token_is_refused_and_the_token_is_never_told(
    hub: Hub, clf: Any, files: dict[str, bytes], caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    hub.add(NAME, files)
    secret = "hf_wrongSecret"
    told = []
    with caplog.at_level(logging.DEBUG):
        for name, token in ((NAME, secret), ("somebody/new", secret), (NAME, f"{secret}\n"), (NAME, f"{secret}ü")):
            with pytest.raises(LabelSpaceError) as error:
                clf.push_to_hub(name, token=token)
            told.append(str(error.value))
    assert "log in with 'hf auth login', or check the token" in told[0]
    assert all("token must be the hub's token, one word" in message for message in told[2:])
    shown = capfd.readouterr()
    assert secret not in "".join([*told, caplog.text, shown.out, shown.err])
    assert len(hub.repositories[NAME].commits) == 1


def test_a_push_never_makes_a_private_model_public(hub: Hub, clf: Any, files: dict[str, bytes]):
    clf.push_to_hub("somebody/secret", token=TOKEN, private=True)
    assert hub.repositories["somebody/secret"].private
    repository = hub.add(NAME, files)
    with pytest.raises(OutputError, match="is public on the hub, and private was asked for"):
        clf.push_to_hub(NAME, token=TOKEN, private=True)
    assert len(repository.commits) == 1


def test_a_push_overwrites_nothing_but_a_classifier(hub: Hub, clf: Any):
    for content in ({"thesis.tex": b"years of work"}, {"labelspace.json": b'{"kind": "encoder"}'}):
        repository = hub.add(NAME, content)
        with pytest.raises(OutputError, match="holds something else than a classifier; give another name"):
            clf.push_to_hub(NAME, token=TOKEN)
        assert repository.files == content


def test_a_push_onto_another_push_of_the_same_moment_is_refused(
    hub: Hub, clf: Any, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    repository, found = hub.add(NAME, files), pushing._repository

    def then_another(*args: Any) -> Any:
        head = found(*args)
        repository.commit("another", {**files, "notes.txt": b"new"})
        return head

    monkeypatch.setattr(pushing, "_repository", then_another)
    with pytest.raises(OutputError, match="status 412"):
        clf.push_to_hub(NAME, token=TOKEN)
    assert repository.files["notes.txt"] == b"new"


def test_a_model_with_code_of_its_own_is_not_pushed(hub: Hub, own_code_folder: Path):
    trusted = {"name": str(own_code_folder), "trust_remote_code": True, "device": "cpu"}
    clf = ZeroShotClassifier(["sports", "money"], trusted).fit()
    with pytest.raises(OutputError, match=r"the model needs own\.py, which `load` does not fetch from the hub"):
        clf.push_to_hub(NAME, token=TOKEN)
    assert NAME not in hub.repositories


@pytest.mark.parametrize("name", ["desk", "a/b/c", "../desk", "some body/desk", "", 3])
def test_a_name_that_no_repository_has_is_refused(name: Any, hub: Hub, clf: Any):
    with pytest.raises(ConfigError, match="a model on the hub is named 'owner/name'"):
        clf.push_to_hub(name, token=TOKEN)
    assert hub.asked == []


# ---- a model that is not given


def test_a_model_that_the_hub_does_not_give_is_one_clear_error(hub: Hub, files: dict[str, bytes]):
    hub.add("somebody/secret", files, private=True)
    hub.add("somebody/gated", files, gated=True)
    hub.add(NAME, files)
    hub.add("somebody/encoder", {"config.json": b"{}"})
    cases = {
        ("somebody/nothing", None): "is no folder here, and the hub .* has no somebody/nothing that you may read",
        ("somebody/secret", None): "has no somebody/secret that you may read .*log in with 'hf auth login'",
        ("somebody/gated", None): "only to users who accepted its terms",
        (NAME, "v9"): "somebody/desk on the hub .* has no revision 'v9'",
        ("somebody/encoder", None): "holds no labelspace.json, so it is no model that labelspace saved",
    }
    for (name, revision), message in cases.items():
        with pytest.raises(ModelFolderError, match=message) as error:
            load(name, revision=revision)
        assert "\n" not in str(error.value)


def test_a_private_model_opens_for_who_is_logged_in(hub: Hub, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch):
    hub.add(NAME, files, private=True)
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    assert list(load(NAME).classes_) == ["money", "sports", "world"]


def test_offline_opens_the_fetched_copy_and_says_where_there_is_none(
    hub: Hub, clf: Any, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    ((first, *_),) = hub.add(NAME, files).commits
    load(NAME)
    hub.asked.clear()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for revision in (None, first):
        assert (load(NAME, revision=revision).decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    with pytest.raises(ModelFolderError, match=r"other is no folder here, and the hub was not asked \(offline"):
        load("somebody/other")
    with pytest.raises(OutputError, match="was not pushed: offline was requested"):
        clf.push_to_hub(NAME, token=TOKEN)
    assert hub.asked == []


def test_evaluate_offline_does_not_ask_the_hub(hub: Hub, files: dict[str, bytes], tmp_path: Path):
    hub.add(NAME, files)
    (tmp_path / "rows.csv").write_text("text,label\nthe match,sports\n")
    asked = ["evaluate", NAME, str(tmp_path / "rows.csv"), "--offline"]
    refused = CliRunner().invoke(app, asked)
    assert "the hub was not asked (offline" in refused.output
    load(NAME)
    hub.asked.clear()
    assert CliRunner().invoke(app, asked).exit_code == 0
    assert CliRunner().invoke(app, [*asked, "--beside", NAME]).exit_code == 0
    assert hub.asked == []
    assert "the hub was not asked" in CliRunner().invoke(app, [*asked, "--beside", "somebody/other"]).output


def test_a_hub_that_is_not_there_is_one_clear_error(hub: Hub, clf: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:9")
    with pytest.raises(ModelFolderError, match="and the hub http://localhost:9 cannot be reached"):
        load(NAME)
    with pytest.raises(OutputError, match="the hub http://localhost:9 cannot be reached; try again"):
        clf.push_to_hub(NAME, token=TOKEN)


def test_a_connection_that_breaks_in_the_middle_is_one_clear_error_and_the_next_load_goes_on(
    hub: Hub, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # the hub library waits before each of its five tries
    hub.add(NAME, files)
    for part in ("labelspace.json", "model.safetensors"):
        hub.break_in = part
        with pytest.raises(ModelFolderError, match=r"desk is no folder here, and the connection to the hub .* broke"):
            load(NAME)
    hub.break_in = ""
    assert list(load(NAME).classes_) == ["money", "sports", "world"]


# ---- a hostile repository


def fetched(hub: Hub) -> set[str]:
    """Return the files whose content was asked for."""
    return {path.split("/", 5)[-1] for path in hub.asked if path.startswith("GET /somebody")}


def test_only_a_models_own_files_are_fetched(hub: Hub, files: dict[str, bytes], tmp_path: Path):
    more = {"setup.py": b"x", "huge.safetensors": b"x", "onnx/model.onnx": b"x", "members/9/notes.json": b"x"}
    hub.add(NAME, {**files, **more})
    load(NAME)
    assert fetched(hub) == set(files)


HOSTILE: dict[str, tuple[dict[str, bytes], str]] = {
    "a pickle": ({"pytorch_model.bin": b"x"}, "holds pytorch_model.bin, which can run code when opened"),
    "a pickle deep down": ({"members/0/x.PKL": b"x"}, r"holds members/0/x\.PKL, which can run code"),
    "a path upwards": ({"../../evil.json": b"x"}, "'../../evil.json', which leads out of its folder"),
    "a path upwards inside": ({"members/../../evil.json": b"x"}, "leads out of its folder"),
    "an absolute path": ({"/etc/evil.json": b"x"}, "leads out of its folder"),
    "a path of Windows": ({"..\\evil.json": b"x"}, "leads out of its folder"),
    "a drive of Windows": ({"C:evil.json": b"x"}, "leads out of its folder"),
    "a name with a line break": ({"a\nb.json": b"x"}, "leads out of its folder"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_list_of_files_is_refused_before_anything_is_fetched(
    what: str, hub: Hub, files: dict[str, bytes], tmp_path: Path
):
    planted, message = HOSTILE[what]
    hub.add(NAME, {**files, **planted})
    with pytest.raises(ModelFolderError, match=message) as error:
        load(NAME)
    assert "\n" not in str(error.value)
    assert fetched(hub) == set()
    assert list(tmp_path.rglob("evil*")) == []


def test_code_that_a_model_needs_is_not_fetched(hub: Hub, files: dict[str, bytes]):
    hub.add(NAME, with_header({**files, "own.py": b"x"}, "own.py", bytes=1))
    with pytest.raises(ModelFolderError, match=r"needs own\.py, which is not fetched from the hub; read it"):
        load(NAME, trust_remote_code=True)
    assert fetched(hub) == {"labelspace.json"}


def test_weights_of_another_size_than_the_header_says_are_not_fetched(hub: Hub, files: dict[str, bytes]):
    hub.add(NAME, files).sizes["model.safetensors"] = 10**13
    with pytest.raises(ModelFolderError, match=r"model\.safetensors with 10,000,000,000,000 bytes, and its labelspace"):
        load(NAME)
    assert fetched(hub) == {"labelspace.json"}


def test_weights_that_fit_on_no_disk_are_not_fetched(hub: Hub, files: dict[str, bytes]):
    told = with_header(files, "model.safetensors", bytes=10**15)
    hub.add(NAME, told).sizes["model.safetensors"] = 10**15
    with pytest.raises(ModelFolderError, match=r"and the disk of .* left; make room"):
        load(NAME)
    assert fetched(hub) == {"labelspace.json"}


def test_a_huge_header_is_not_fetched(hub: Hub, files: dict[str, bytes]):
    hub.add(NAME, files).sizes["labelspace.json"] = fetching.HEADER_BYTES + 1
    with pytest.raises(ModelFolderError, match=r"has a labelspace\.json of 33,554,433 bytes, which no model needs"):
        load(NAME)
    assert fetched(hub) == set()


BROKEN = {
    "cut off": lambda content: content[: len(content) // 2],
    "of zeros": lambda content: bytes(len(content)),
    "with a header of exabytes": lambda content: struct.pack("<Q", 2**60) + content[8:],
}


@pytest.mark.parametrize(
    ("file", "what"),
    [*(("model.safetensors", what) for what in BROKEN), ("label_vectors.safetensors", "cut off")],
)
def test_broken_weights_are_one_clear_error(file: str, what: str, hub: Hub, files: dict[str, bytes]):
    """A header that tells of the broken file's size and hash gets it as far as the opener."""
    broken = BROKEN[what](files[file])
    facts = {"bytes": len(broken), "sha256": hashlib.sha256(broken).hexdigest()}
    hub.add(NAME, with_header({**files, file: broken}, file, **facts))
    with pytest.raises(LabelSpaceError) as error:
        load(NAME)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "header", [b"", b"[]", b'"x"', b'{"class": "X"}', b'{"kind": "encoder"}', b"\xff\xfe", b"[" * 200_000]
)
def test_a_header_that_makes_no_sense_is_one_clear_error(header: bytes, hub: Hub, files: dict[str, bytes]):
    hub.add(NAME, {**files, "labelspace.json": header})
    with pytest.raises(ModelFolderError) as error:
        load(NAME)
    assert "\n" not in str(error.value)
    assert fetched(hub) <= {"labelspace.json"}
