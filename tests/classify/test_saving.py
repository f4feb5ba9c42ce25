"""A loaded model is bit-equal to the saved one, no pickle is written, and a damaged folder is one clear error."""

import json
import math
import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from sentence_transformers import SentenceTransformer
from sklearn.base import clone

import labelspace
from classify.conftest import METHODS, TEXTS, columns_of
from labelspace import DescriptionClassifier, LabelSpace, UncertaintyClassifier, ZeroShotClassifier, folders, load
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.head import Judged
from labelspace.classify.saved import opening, saving
from labelspace.classify.saved.opening import open_to_answer
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.config import SearchConfig
from labelspace.encoders import Encoder
from labelspace.errors import (
    ConfigError,
    LabelFileError,
    LabelSpaceError,
    LabelSpaceWarning,
    ModelFolderError,
    OutputError,
    RemoteCodeError,
    TrainingError,
)
from labelspace.evaluate.baselines import untrained_encoder
from labelspace.header import FORMAT
from labelspace.training.description import learning_rate
from labelspace.training.description.objective import run

Maker = Callable[..., Any]
NAMES = ["sports", "money"]
each_method = pytest.mark.parametrize("method", METHODS)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])


@pytest.fixture
def saved(zero_shot_folder: Path, tmp_path: Path) -> Path:
    """A saved zero-shot model, to be damaged."""
    return Path(shutil.copytree(zero_shot_folder, tmp_path / "model"))


def header_of(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "labelspace.json").read_text(encoding="utf-8"))


# ---- round trips


@pytest.mark.parametrize("open_model", [load, open_to_answer])
@pytest.mark.parametrize("times", [1, opening.TRIES])
def test_a_model_that_is_replaced_while_it_is_opened_is_no_mixture(
    open_model: Any, times: int, tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def model(number: int) -> ZeroShotClassifier:
        own = {"encoder": str(tiny_encoder_folder), "temperature": 0.1 + number}
        return ZeroShotClassifier({name: [f"{name} {number}"] for name in NAMES}, **own).fit()

    model(0).save(tmp_path / "live")
    read, made = opening.read, []

    def replaced(*arguments: Any, **options: Any) -> Any:
        if len(made) < times:
            made.append(model(1 + len(made)))
            made[-1].save(tmp_path / "live")
        return read(*arguments, **options)

    monkeypatch.setattr(opening, "read", replaced)
    if times == opening.TRIES:
        with pytest.raises(ModelFolderError, match="was replaced 3 times while it was opened"):
            open_model(tmp_path / "live")
    else:
        found = open_model(tmp_path / "live").answers(TEXTS)
        assert np.array_equal(found.probabilities, made[-1].answers(TEXTS).probabilities)


@each_method
@each_dtype
def test_a_loaded_model_gives_the_same_bits(method: str, dtype: str, fitted: Maker, tmp_path: Path):
    clf = fitted(method, dtype, threshold=0.2, temperature=0.1)
    again = load(clf.save(tmp_path / "model"))
    assert type(again) is type(clf)
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert (again.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
    assert list(again.predict(TEXTS)) == list(clf.predict(TEXTS))
    assert again.label_space_ == clf.label_space_
    assert again.encoder_.dtype == clf.encoder_.dtype == dtype
    other = LabelSpace.from_names(["film", "food"])  # these vectors are computed, not read
    assert (again.scores(TEXTS, other) == clf.scores(TEXTS, other)).all()


@each_method
def test_saving_a_loaded_model_changes_nothing(method: str, fitted: Maker, tmp_path: Path):
    clf = fitted(method)
    again = load(load(clf.save(tmp_path / "one")).save(tmp_path / "two"))
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    if method == "description":
        assert again.fit_result_.to_dict() == load(tmp_path / "one").fit_result_.to_dict()


def test_prompts_pooling_and_token_limit_are_restored(fitted: Maker, tiny_encoder_folder: Path, tmp_path: Path):
    encoder = Encoder(
        tiny_encoder_folder, dtype="float32", pooling="cls", max_tokens=9, text_prompt="q: ", label_prompt="l: "
    )
    clf = fitted("zero-shot").set_params(encoder=encoder).fit()
    again = load(clf.save(tmp_path / "model"))
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert again.encoder_.describe() | {"source": ""} == encoder.describe() | {"source": ""}


@each_method
def test_the_encoders_default_prompt_is_saved_with_the_model(
    method: str, fitted: Maker, tiny_encoder_folder: Path, tmp_path: Path
):
    prompted = shutil.copytree(tiny_encoder_folder, tmp_path / "prompted")
    path = prompted / "config_sentence_transformers.json"
    own = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | own), encoding="utf-8")
    clf = fitted(method).set_params(encoder={"name": prompted, "dtype": "float32"}).fit()
    again = load(clf.save(tmp_path / "model"))
    assert again.encoder_.prompts == clf.encoder_.prompts == {"text": "query: ", "label": "query: "}
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert again.fit().encoder_.prompts == clf.encoder_.prompts


def test_another_fit_starts_from_the_revision_that_the_first_one_was_given(
    tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("SENTENCE_TRANSFORMERS_HOME", str(tmp_path / "hub"))
    home = tmp_path / "hub" / "models--somebody--tiny"
    shutil.copytree(tiny_encoder_folder, home / "snapshots" / ("a" * 40))
    DescriptionClassifier(NAMES, str(tiny_encoder_folder), max_steps=5, learning_rate=1e-2).fit().encoder_.save(
        home / "snapshots" / ("b" * 40)
    )
    (home / "refs").mkdir()
    (home / "refs" / "main").write_text("b" * 40)
    given = {"name": "somebody/tiny", "revision": "a" * 40, "offline": True, "dtype": "float32"}
    clf = DescriptionClassifier(NAMES, given, max_steps=2, learning_rate=1e-3).fit()
    load(clf.save(tmp_path / "one")).save(tmp_path / "two")
    again = load(tmp_path / "two")
    assert {"revision", "offline"} <= again.encoder.keys()
    start = Encoder(tiny_encoder_folder, dtype="float32").encode(TEXTS)
    assert (untrained_encoder(again.encoder_).encode(TEXTS) == start).all()
    assert (again.fit().decision_function(TEXTS) == clf.decision_function(TEXTS)).all()


def test_a_model_that_took_the_place_of_its_encoder_is_not_trained_from_itself(
    tiny_encoder_folder: Path, tmp_path: Path
):
    options: Any = {"max_steps": 2, "learning_rate": 1e-3}
    place = DescriptionClassifier(NAMES, str(tiny_encoder_folder), **options).fit().save(tmp_path / "model")
    clf = DescriptionClassifier(NAMES, str(place), **options).fit()
    before = clf.decision_function(TEXTS)
    again = load(clf.save(place))
    assert (again.decision_function(TEXTS) == before).all()
    for model in (again, load(clf.save(tmp_path / "elsewhere"))):
        with pytest.raises(ConfigError, match="no name leads to that"):
            model.fit()
    untrained = load(ZeroShotClassifier(NAMES, str(place)).fit().save(place))
    before = untrained.decision_function(TEXTS)
    assert (untrained.fit().decision_function(TEXTS) == before).all()


def test_a_save_that_fails_leaves_the_name_of_what_the_model_started_from(tiny_encoder_folder: Path, tmp_path: Path):
    options: Any = {"max_steps": 2, "learning_rate": 1e-3}
    place = DescriptionClassifier(NAMES, str(tiny_encoder_folder), **options).fit().save(tmp_path / "model")
    clf = DescriptionClassifier(NAMES, str(place), **options).fit()
    shutil.rmtree(place)
    place.write_text("in the way", encoding="utf-8")
    with pytest.raises(OutputError, match="is a file"):
        clf.save(place)
    assert clf.started_from_ == str(place)


def test_every_parameter_is_restored(fitted: Maker, tmp_path: Path):
    search = SearchConfig(rates=(1e-4, 1e-3), steps=2)
    clf = fitted(search=search, anchor="verbalizer", warmup=0.25, seed=7, freeze_layers=1)
    again = load(clf.save(tmp_path / "model"))
    before, after = clf.get_params(deep=False), again.get_params(deep=False)
    for name in before.keys() - {"encoder", "labels", "config"}:
        assert after[name] == before[name], name
    assert again.training_config() == clf.training_config()
    assert after["labels"] == clf.label_space_


def test_the_same_fit_is_saved_as_the_same_bytes(fitted: Maker, tmp_path: Path):
    one, other = (
        {path.name: path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
        for folder in (fitted(verbose=verbose).save(tmp_path / str(verbose)) for verbose in (False, True))
    )
    assert one == other


@each_method
def test_parameters_given_as_numpy_scalars_are_saved(method: str, fitted: Maker, tmp_path: Path):
    clf = fitted(method)
    scores = clf.decision_function(TEXTS).max(axis=1)
    for threshold in (np.quantile(scores, 0.5), np.sort(scores)[3]):
        clf.set_params(threshold=threshold, temperature=np.float32(0.07))
        assert clone(clf).threshold == threshold
        again = load(clf.save(tmp_path / "model"))
        assert (again.threshold, type(again.threshold)) == (float(threshold), float)
        assert list(again.predict(TEXTS)) == list(clf.predict(TEXTS))
        assert None in again.predict(TEXTS)
        assert (again.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
        assert model_fingerprint(again) == model_fingerprint(clf)


def test_numpy_scalars_and_python_numbers_give_the_same_fit(make: Maker, tmp_path: Path):
    grid = {"seed": np.int64(3), "max_steps": np.int32(4), "learning_rate": np.float32(1e-3), "warmup": np.float16(0.5)}
    clf, own = make(**grid).fit(TEXTS), make(**{name: value.item() for name, value in grid.items()}).fit(TEXTS)
    assert (clf.decision_function(TEXTS) == own.decision_function(TEXTS)).all()
    assert clf.fit_result_.curve.losses == own.fit_result_.curve.losses
    assert load(clf.save(tmp_path / "model")).get_params()["seed"] == 3


def test_a_threshold_is_compared_in_float32(fitted: Maker, monkeypatch: pytest.MonkeyPatch):
    clf, cut = fitted("zero-shot"), np.float32(0.7)
    monkeypatch.setattr(ByAnchors, "judge", lambda *_: Judged(np.full((1, 3), cut), None))
    assert float(cut) < 0.7, "float32 rounds 0.7 down, so that in float64 the score would be below it"
    for threshold in (0.7, np.float64(0.7), cut):
        assert clf.set_params(threshold=threshold).predict(["a text"])[0] is not None


def test_a_loaded_model_that_was_fitted_from_a_trained_encoder_refuses_to_fit(
    fitted: Maker, space: LabelSpace, tmp_path: Path
):
    trained = fitted("description").encoder_
    clf = ZeroShotClassifier(space, encoder=trained).fit()
    again = load(clf.save(tmp_path / "model"))
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    with pytest.raises(ConfigError, match="fitted from an Encoder that had been trained before"):
        again.fit()
    twice = load(again.save(tmp_path / "again"))
    assert twice.encoder_.name == again.encoder_.name == f"{trained.name}, trained"


def test_a_loaded_model_can_be_edited_and_fitted_again(fitted: Maker, tmp_path: Path):
    again = load(fitted().save(tmp_path / "model"))
    again.add_label({"name": "film", "descriptions": ["Films."]})
    assert list(again.fit().classes_) == ["film", "money", "sports", "world"]
    assert again.label_space_.names == ("sports", "money", "world", "film")
    assert (load(again.save(tmp_path / "model")).predict(TEXTS) == again.predict(TEXTS)).all()


@pytest.mark.slow
def test_a_loaded_model_fits_from_the_base_encoder(space: LabelSpace, tiny_encoder_folder: Path, tmp_path: Path):
    base = str(tiny_encoder_folder)
    clf = DescriptionClassifier(space, base, max_steps=6, learning_rate=1e-2).fit()
    expected = clf.decision_function(TEXTS)
    again = load(clf.save(tmp_path / "one"))
    assert again.get_params()["encoder"]["name"] == base
    assert (again.decision_function(TEXTS) == expected).all()
    assert (again.fit().decision_function(TEXTS) == expected).all()
    # After another save and load the name is still that of the base encoder.
    once_more = load(load(again.save(tmp_path / "two")).save(tmp_path / "three"))
    assert once_more.get_params()["encoder"]["name"] == base
    assert (once_more.fit().decision_function(TEXTS) == expected).all()
    # Give the folder as the encoder to continue training from it.
    onward = once_more.set_params(encoder=str(tmp_path / "one")).fit()
    assert not (onward.decision_function(TEXTS) == expected).all()
    assert onward.fit_result_.curve.losses[0] < clf.fit_result_.curve.losses[0]


def test_a_loaded_model_fits_with_its_encoder_options(space: LabelSpace, tiny_encoder_folder: Path, tmp_path: Path):
    encoder = Encoder(tiny_encoder_folder, pooling="cls", max_tokens=9, text_prompt="q: ", dtype="float32")
    clf = DescriptionClassifier(space, encoder, max_steps=6, learning_rate=1e-2).fit()
    expected = clf.decision_function(TEXTS)
    assert (load(clf.save(tmp_path / "one")).fit().decision_function(TEXTS) == expected).all()


def strict(text: str) -> Any:
    """Parse strict JSON, without NaN or Infinity."""
    return json.loads(text, parse_constant=lambda constant: pytest.fail(f"{constant} is no JSON"))


def test_a_failed_trial_of_the_search_is_saved_as_strict_json(
    make: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def failing(*args: Any, learning_rate: float, **options: Any) -> Any:
        if learning_rate == 1.0:
            raise TrainingError("the loss is nan")
        return run(*args, learning_rate=learning_rate, **options)

    monkeypatch.setattr(learning_rate, "run", failing)
    search = SearchConfig(rates=(1e-4, 1.0), strategy="grid", steps=4)
    clf = make(learning_rate="uniformity", search=search).fit(TEXTS)
    failed = [trial for trial in clf.fit_result_.rate.trials if math.isinf(trial.uniformity)]
    assert [trial.learning_rate for trial in failed] == [1.0]
    assert math.isnan(failed[0].loss)
    folder = clf.save(tmp_path / "model")
    header = strict((folder / "labelspace.json").read_text(encoding="utf-8"))
    trials = {trial["learning_rate"]: trial for trial in header["fit"]["rate"]["trials"]}
    assert trials[1.0]["uniformity"] is trials[1.0]["loss"] is None
    assert math.isfinite(trials[1e-4]["uniformity"])
    again = load(folder)
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert again.fit_result_.to_dict() == header["fit"]
    second = strict((again.save(tmp_path / "second") / "labelspace.json").read_text(encoding="utf-8"))
    assert second["fit"] == header["fit"]


@each_method
def test_the_label_file_keeps_its_order_and_the_classes_are_sorted(method: str, fitted: Maker, tmp_path: Path):
    clf = fitted(method, labels=["sports", "money", "art"])
    again = load(clf.save(tmp_path / "model"))
    assert again.label_space_.names == ("sports", "money", "art")
    assert list(again.classes_) == ["art", "money", "sports"]
    assert (again.scores(TEXTS, again.label_space_) == again.decision_function(TEXTS)[:, [2, 1, 0]]).all()


def test_a_model_that_does_not_read_what_lies_outside_keeps_it(tiny_encoder_folder: Path, tmp_path: Path):
    space = LabelSpace.from_dict({"labels": ["sports", "money"], "outside": ["The weather."]})
    texts, names = ["the team won", "the bank closed"] * 4, ["sports", "money"] * 4
    with pytest.warns(LabelSpaceWarning, match="does not read 'outside'"):
        clf = UncertaintyClassifier(space, tiny_encoder_folder, epochs=1, cache=None).fit(texts, names)
    opened = load(clf.save(tmp_path / "one"))
    opened.rename_label("money", "Money")
    again = load(opened.save(tmp_path / "one"))
    assert again.label_space_.outside == space.outside
    assert (again.scores(texts, again.label_space_) == opened.scores(texts, opened.label_space_)).all()


def test_an_edited_model_is_saved_as_edited(fitted: Maker, tmp_path: Path):
    clf = fitted()
    clf.rename_label("sports", "Sport")
    clf.remove_label("world")
    again = load(clf.save(tmp_path / "model"))
    assert list(again.classes_) == ["Sport", "money"]
    assert (again.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()


# ---- devices and remote code


def on_device(folder: Path, device: str) -> Path:
    """Edit a saved model so that it appears to come from another machine."""
    header = header_of(folder)
    header["encoding"]["device"] = device
    (folder / "labelspace.json").write_text(json.dumps(header), encoding="utf-8")
    return folder


def test_a_model_saved_with_an_absent_device_opens_on_a_present_one(saved: Path):
    expected = load(saved).decision_function(TEXTS)
    for device in (None, "auto"):
        again = load(on_device(saved, "cuda:99"), device=device)
        assert (again.decision_function(TEXTS) == expected).all()
        assert again.encoder_.config.device == again.encoder["device"] == "auto"
    assert (again.fit().decision_function(TEXTS) == expected).all()
    with pytest.raises(ConfigError, match="device 'cuda:99' is not available on this machine; use 'auto' or 'cpu'"):
        load(saved, device="cuda:99")


def test_a_model_saved_with_a_present_device_keeps_it(saved: Path):
    assert load(saved).encoder_.config.device == "cpu"
    assert load(saved, device="auto").encoder_.config.device == "auto"
    assert load(on_device(saved, "auto"), device="cpu").encoder_.config.device == "cpu"


def test_a_model_with_remote_code_opens_only_if_that_is_allowed(own_code_folder: Path, tmp_path: Path):
    trusted = {"name": str(own_code_folder), "trust_remote_code": True, "dtype": "float32", "device": "cpu"}
    clf = DescriptionClassifier(["sports", "money"], trusted, max_steps=2, learning_rate=1e-3).fit()
    assert type(clf.encoder_.backbone.transformer.model).__name__ == "OwnModel"
    folder = clf.save(tmp_path / "model")
    with pytest.raises(RemoteCodeError, match=r"own\.OwnModel.* allow it with trust_remote_code=True"):
        load(folder)
    again = load(folder, trust_remote_code=True)
    assert (again.scores(TEXTS, again.label_space_) == clf.scores(TEXTS, clf.label_space_)).all()
    again.fit()  # starts from the base encoder, whose code is allowed too
    assert (again.scores(TEXTS, again.label_space_) == clf.scores(TEXTS, clf.label_space_)).all()


# ---- what is in the folder


def test_sentence_transformers_opens_the_folder_as_the_trained_encoder(fitted: Maker, tmp_path: Path):
    clf = fitted(learning_rate=1e-2)
    found = SentenceTransformer(str(clf.save(tmp_path / "model")), device="cpu").encode(TEXTS)
    assert np.abs(found - clf.encoder_.encode(TEXTS)).max() < 1e-5
    assert np.abs(found - clf.encoder.encode(TEXTS)).max() > 1e-3


def test_labelspace_json_holds_class_versions_seed_and_training_data(fitted: Maker, tmp_path: Path):
    clf = fitted(seed=5)
    clf.fit(TEXTS)
    header = header_of(clf.save(tmp_path / "model"))
    assert (header["kind"], header["class"], header["format"]) == ("classifier", "DescriptionClassifier", FORMAT)
    assert header["labelspace"] == labelspace.__version__
    assert header["versions"].keys() >= {"torch", "transformers", "sentence-transformers", "numpy"}
    assert header["parameters"]["temperature"] == clf.temperature
    assert header["parameters"]["seed"] == header["fit"]["seed"] == 5
    assert header["fit"]["pool"] == "list in memory (6 documents)"
    assert header["fit"]["rate"] == {"learning_rate": 1e-3, "reason": "given", "trials": []}
    assert header["fit"]["curve"]["losses"] == list(clf.fit_result_.curve.losses)
    assert header["encoder"]["dtype"] == "float32"
    assert "model.safetensors" in header["files"]
    assert not any(isinstance(value, float) and math.isnan(value) for value in header["parameters"].values())


def test_the_model_card_names_labels_training_and_limits(fitted: Maker, tmp_path: Path):
    clf = fitted()
    card = (clf.save(tmp_path / "model") / "README.md").read_text(encoding="utf-8")
    front = card.split("---")[1]
    assert "library_name: sentence-transformers" in front
    for words in (
        "# desk",
        "| money | This text is about banks and money. | 1 |",
        "learning rate | 1e-03 (given)",
        "unlabelled pool | none",
        "evaluate before use",
        "read up to 128 tokens",
        "labels on `tiny-bert`.",
    ):
        assert words in card, words
    assert clf.encoder_.name not in card, "a card may be published, and a path tells of a machine"
    zero_shot = (fitted("zero-shot").save(tmp_path / "other") / "README.md").read_text(encoding="utf-8")
    assert "The encoder is as its authors made it." in zero_shot
    assert "learning rate" not in zero_shot


def test_a_pipe_in_a_label_breaks_no_table(fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot", labels=["a|b", "c"])
    card = (clf.save(tmp_path / "model") / "README.md").read_text(encoding="utf-8")
    assert "| a\\|b |" in card
    assert list(load(tmp_path / "model").classes_) == ["a|b", "c"]


@each_method
def test_no_pickle_is_written(method: str, fitted: Maker, tmp_path: Path):
    """Checks names and content: pickles from protocol 2 on start with 0x80, torch's zip files with PK."""
    folder = fitted(method).save(tmp_path / "model")
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".yaml", ".md", ".txt"}
    for path in files:
        assert path.read_bytes()[:2] not in (b"PK", b"\x80\x02", b"\x80\x04", b"\x80\x05"), path
    with safe_open(folder / "label_vectors.safetensors", framework="numpy") as tensors:
        assert set(tensors.keys()) == {f"{n}.{part}" for n in range(3) for part in ("verbalizer", "descriptions")}


def test_file_permissions_follow_the_umask(fitted: Maker, tmp_path: Path):
    old = os.umask(0o027)
    try:
        folder = fitted("zero-shot").save(tmp_path / "model")
    finally:
        assert os.umask(old) == 0o027  # saving restored it
    assert stat.S_IMODE(folder.stat().st_mode) == 0o750
    modes = {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_file()}
    assert modes == {0o640}


# ---- hand-edited labels


def test_a_label_file_edited_by_hand_takes_effect(saved: Path):
    before = load(saved)
    path = saved / "label_space.yaml"
    text = path.read_text(encoding="utf-8")
    assert "War, peace and elections." in text
    path.write_text(text.replace("War, peace and elections.", "Films and music."), encoding="utf-8")
    after = load(saved)
    assert after.label_space_.verbalizers[2] == "Films and music."
    untouched = ["sports", "money"]
    scores = columns_of(after, after.decision_function(TEXTS), untouched)
    assert (scores == columns_of(before, before.decision_function(TEXTS), untouched)).all()
    ((expected,),) = after.encoder_.encode_apart([["Films and music."]], role="label")
    assert (after.label_vectors_["world"].verbalizer == expected).all()


def test_a_label_file_broken_by_hand_names_file_and_line(saved: Path):
    (saved / "label_space.yaml").write_text("labels:\n  - nmae: x\n", encoding="utf-8")
    with pytest.raises(LabelFileError, match=r"label_space\.yaml:2: .*'nmae'"):
        load(saved)


# ---- bad folders


def truncate(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:1000])


def flip_a_bit(name: str) -> Callable[[Path], None]:
    def flip(folder: Path) -> None:
        path = folder / name
        content = bytearray(path.read_bytes())
        content[-5] ^= 1
        path.write_bytes(content)

    return flip


def edit_header(**values: Any) -> Callable[[Path], None]:
    def edit(folder: Path) -> None:
        header = {**header_of(folder), **values}
        header = {key: value for key, value in header.items() if value is not ...}
        (folder / "labelspace.json").write_text(json.dumps(header), encoding="utf-8")

    return edit


def edit_parameters(**values: Any) -> Callable[[Path], None]:
    return lambda folder: edit_header(parameters={**header_of(folder)["parameters"], **values})(folder)


def write(name: str, content: str) -> Callable[[Path], None]:
    return lambda folder: (folder / name).write_text(content, encoding="utf-8") and None


BAD = {
    "truncated weights": (truncate, "has 1,000 bytes and should have .* it was cut off or changed"),
    "a bit flipped in the weights": (flip_a_bit("model.safetensors"), "is not the file that was saved"),
    "a bit flipped in a small file": (flip_a_bit("sentence_bert_config.json"), "is not the file that was saved"),
    "weights missing": (lambda f: (f / "model.safetensors").unlink(), "lacks model.safetensors; it was copied in part"),
    "vectors missing": (lambda f: (f / "label_vectors.safetensors").unlink(), "lacks label_vectors.safetensors"),
    "config missing": (lambda f: (f / "config.json").unlink(), "lacks config.json"),
    "labels missing": (lambda f: (f / "label_space.yaml").unlink(), "lacks label_space.yaml"),
    "header missing": (
        lambda f: (f / "labelspace.json").unlink(),
        "holds a sentence-transformers encoder, not a classifier",
    ),
    "newer format": (edit_header(format=FORMAT + 1), f"is of format {FORMAT + 1}, .* upgrade labelspace"),
    "format as text": (edit_header(format="1"), r"is damaged \(format '1'\)"),
    "format below the first": (edit_header(format=-1), r"is damaged \(format -1\)"),
    "format that is a truth value": (edit_header(format=True), r"is damaged \(format True\)"),
    "no encoder": (edit_header(encoder=None), r"\(encoder is null\); it is damaged"),
    "a fit of another shape": (edit_header(fit="x"), "fit is no mapping"),
    "planted .bin": (write("pytorch_model.bin", "x"), r"holds pytorch_model\.bin, which can run code when opened"),
    "planted .pkl deep down": (write("1_Pooling/x.pkl", "x"), r"holds x\.pkl, which can run code"),
    "planted .PT": (write("x.PT", "x"), r"holds x\.PT, which can run code"),
    "unknown class": (edit_header(**{"class": "DescriptionClasifier"}), "Did you mean 'DescriptionClassifier'"),
    "class that is no name": (edit_header(**{"class": ["a"]}), "unknown class"),
    "header cut off": (write("labelspace.json", '{"format": 2, "cla'), "is damaged .it is no JSON object"),
    "header nested too deep": (write("labelspace.json", "[" * 200_000), "is damaged"),
    "header of another shape": (write("labelspace.json", "[1, 2]"), "is damaged"),
    "header that is text": (write("labelspace.json", '"model"'), "is damaged"),
    "no list of files": (edit_header(files=...), "is damaged"),
    "files of another shape": (edit_header(files=["model.safetensors"]), "damaged"),
    "files without sizes": (edit_header(files={"model.safetensors": 3}), "damaged"),
    "no parameters": (edit_header(parameters=...), "damaged"),
    "a parameter nobody knows": (edit_header(parameters={"sharpness": 3}), "damaged"),
    "parameters of another shape": (edit_header(parameters=[1]), "damaged"),
    "an encoding of another shape": (edit_header(encoding=[]), "damaged"),
    "an encoder without prompts": (edit_header(encoder={"name": "x", "pooling": None, "prompts": None}), "damaged"),
    "an encoder without a name": (edit_header(encoder={"name": None, "pooling": None, "prompts": {}}), "has no name"),
    "a threshold that is text": (edit_parameters(threshold="0.5"), "threshold must be a number"),
    "no temperature": (edit_parameters(temperature=None), "temperature must be a number"),
    "an unknown anchor": (edit_parameters(anchor="boat"), "anchor must be one of"),
    "an encoding that makes no sense": (edit_header(encoding={"dtype": "float7"}), "damaged|dtype"),
}


@pytest.mark.skipif(os.name == "nt", reason="a link needs a privilege there")
def test_a_link_to_a_model_stays_a_link_to_the_new_one(fitted: Maker, saved: Path, tmp_path: Path):
    clf, link, beyond = fitted("zero-shot"), tmp_path / "current", tmp_path / "next"
    for target in (saved, beyond):
        link.unlink(missing_ok=True)
        link.symlink_to(target)
        clf.save(link)
        assert link.is_symlink()
        assert load(target).classes_.tolist() == clf.classes_.tolist()
    assert {path.name for path in tmp_path.iterdir()} <= {"current", "next", saved.name}


@pytest.mark.parametrize("what", BAD)
def test_a_damaged_folder_is_one_clear_error(what: str, saved: Path):
    spoil, message = BAD[what]
    spoil(saved)
    for opened in (load, open_to_answer):
        with pytest.raises(ModelFolderError, match=message) as error:
            opened(saved)
        assert "\n" not in str(error.value)
        assert "model" in str(error.value)


@pytest.mark.parametrize("cuts", [{"of_labels": {"sports": 0.5}}, {"of_labels": None}, {"standard": {}}])
def test_a_damaged_cut_is_told_when_the_model_is_opened(cuts: Any, tiny_encoder_folder: Path, tmp_path: Path):
    space = LabelSpace.from_dict({"labels": ["sports", "money"], "several": True})
    pool = [f"the {who} {what} {row}" for who in ("team", "bank") for what in ("won", "lost") for row in range(20)]
    folder = ZeroShotClassifier(space, tiny_encoder_folder).fit(pool).save(tmp_path / "model")
    edit_header(cuts={**header_of(folder)["cuts"], **cuts})(folder)
    for opened in (load, open_to_answer):
        with pytest.raises(ModelFolderError, match="damaged"):
            opened(folder)


def test_a_path_that_is_no_folder_is_one_clear_error(tmp_path: Path):
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for path in (tmp_path / "file", tmp_path / "nowhere"):
        with pytest.raises(ModelFolderError, match="is no folder; give the folder of a classifier"):
            load(path)
    with pytest.raises(ModelFolderError, match=r"a model is a folder or a name on the hub\. Got NoneType"):
        load(None)  # pyright: ignore


# ---- saving over something


def test_saving_replaces_a_model_completely(fitted: Maker, tmp_path: Path):
    fitted().save(tmp_path / "model")
    (tmp_path / "model" / "left-over.txt").write_text("of the old one", encoding="utf-8")
    clf = fitted("zero-shot", labels=["film", "food"])
    clf.save(tmp_path / "model")
    assert list(load(tmp_path / "model").classes_) == ["film", "food"]
    assert not (tmp_path / "model" / "left-over.txt").exists()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saving_fills_an_empty_folder_and_makes_parents(fitted: Maker, tmp_path: Path):
    clf = fitted("zero-shot")
    (tmp_path / "empty").mkdir()
    for folder in (tmp_path / "empty", tmp_path / "deep" / "down"):
        assert clf.save(folder) == folder
        load(folder)


def test_a_folder_that_holds_something_else_is_not_overwritten(fitted: Maker, tmp_path: Path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work", encoding="utf-8")
    with pytest.raises(OutputError, match="holds something else, not a classifier; give another name"):
        fitted("zero-shot").save(tmp_path / "thesis")
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]
    with pytest.raises(OutputError, match="is a file"):
        fitted("zero-shot").save(tmp_path / "thesis" / "chapter.txt")


def test_a_failed_save_keeps_the_old_model_and_leaves_nothing_else(
    fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    clf = fitted("zero-shot")
    expected = load(clf.save(tmp_path / "model")).decision_function(TEXTS)

    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(saving, "save_file", full)
    with pytest.raises(OutputError, match=r"No space left on device.*what was there before is unchanged") as error:
        fitted().save(tmp_path / "model")
    assert isinstance(error.value, LabelSpaceError)
    assert (load(tmp_path / "model").decision_function(TEXTS) == expected).all()
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saving_works_without_an_atomic_exchange_of_folders(
    fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(folders, "_exchange", lambda one, other: False)
    fitted().save(tmp_path / "model")
    fitted("zero-shot", labels=["film", "food"]).save(tmp_path / "model")
    assert list(load(tmp_path / "model").classes_) == ["film", "food"]
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_saving_does_not_change_the_callers_encoder(fitted: Maker, tiny_encoder_folder: Path, tmp_path: Path):
    clf = fitted("zero-shot").set_params(encoder=Encoder(tiny_encoder_folder, label_prompt="topic: ")).fit()
    before = dict(clf.encoder.backbone.model.prompts or {})
    clf.save(tmp_path / "model")
    assert dict(clf.encoder.backbone.model.prompts or {}) == before
