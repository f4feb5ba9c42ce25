"""A loaded `UncertaintyClassifier` is bit-equal, with its limit and held-out record; a damaged folder is refused."""

import copy
import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file
from sentence_transformers import SentenceTransformer

from classify.doubt import FEW, FEW_Y, NAMES, NEW, SEEN, SEEN_Y, uncertainty
from classify.test_saving import header_of
from labelspace import LabelSpace, UncertaintyClassifier, load
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.encoders import Encoder
from labelspace.errors import InputError, LabelFileError, LabelSpaceWarning, ModelFolderError
from labelspace.heads import GaussianHead

pytestmark = pytest.mark.filterwarnings("ignore:fit held out 9 rows")

Maker = Callable[..., Any]


@pytest.fixture
def fitted(encoders: dict[str, Encoder]) -> Maker:
    """Make and fit a classifier on twelve texts."""
    return lambda dtype="float32", **options: uncertainty(encoders[dtype], **options).fit(FEW, FEW_Y)


@pytest.fixture
def folder(clf: UncertaintyClassifier, tmp_path: Path) -> Path:
    """A saved model with a limit."""
    return clf.set_coverage(0.75, NEW, by="uncertainty").save(tmp_path / "model")


@pytest.fixture(scope="module")
def whole(well_fitted: UncertaintyClassifier, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved model with a limit; do not write into it."""
    limited = copy.copy(well_fitted).set_coverage(0.75, NEW, by="uncertainty")
    return limited.save(tmp_path_factory.mktemp("whole") / "model")


def edit(folder: Path, old: str, new: str) -> None:
    """Edit the label file by hand."""
    text = (folder / "label_space.yaml").read_text(encoding="utf-8")
    assert old in text
    (folder / "label_space.yaml").write_text(text.replace(old, new), encoding="utf-8")


# ---- round trips


@pytest.mark.parametrize(
    ("dtype", "options"),
    [
        ("float32", {}),
        ("float32", {"uncertain": False}),
        ("float32", {"extractor": "attention"}),
        ("float32", {"validation": 0.2}),
        ("bfloat16", {}),
    ],
    ids=str,
)
def test_a_loaded_model_gives_the_same_bits(dtype: str, options: dict[str, Any], fitted: Maker, tmp_path: Path):
    clf = fitted(dtype, min_probability=0.1, **options).set_coverage(0.75, FEW, by="entropy")
    again = load(clf.save(tmp_path / "model"))
    assert type(again) is UncertaintyClassifier
    assert again.encoder_.dtype == dtype
    for ask in ("decision_function", "predict_proba", "predict_uncertainty", "transform", "most_uncertain"):
        by = {"by": "entropy"} if ask == "most_uncertain" else {}
        assert (getattr(again, ask)(NEW, **by) == getattr(clf, ask)(NEW, **by)).all(), ask
    assert list(again.predict(NEW)) == list(clf.predict(NEW))
    assert again.explain(NEW[0]) == clf.explain(NEW[0])
    assert model_fingerprint(again) == model_fingerprint(clf)


def test_a_label_without_rows_keeps_probability_0(fitted: Maker, tmp_path: Path):
    with pytest.warns(LabelSpaceWarning, match="have no labelled row"):
        clf = fitted(labels=["film", *NAMES], validation=0.2)
    again = load(clf.save(tmp_path / "model"))
    assert again.head_.columns == clf.head_.columns
    assert again.head_.columns["film"] is None
    for ask in ("decision_function", "predict_proba", "predict"):
        assert (getattr(again, ask)(NEW) == getattr(clf, ask)(NEW)).all(), ask
    assert (again.predict_proba(NEW)[:, 0] == 0).all()
    assert (again.held_out_.entropy == clf.held_out_.entropy).all()
    assert len(again.held_out_.entropy)


def test_limit_temperature_and_the_held_out_record_are_restored(clf: UncertaintyClassifier, folder: Path):
    again = load(folder)
    assert again.limit_ == clf.limit_ is not None
    assert again.temperature_ == clf.temperature_ != 1
    for part in ("uncertainty", "entropy", "wrong"):
        one, other = getattr(again.held_out_, part), getattr(clf.held_out_, part)
        assert one.dtype == other.dtype
        assert (one == other).all()
    assert again.head_.columns == clf.head_.columns
    assert again.fit_result_.to_dict() == json.loads(json.dumps(clf.state().fit))
    assert again.set_coverage(0.5).limit_ == clf.set_coverage(0.5).limit_, "computed from the record"
    assert again.set_coverage(1).limit_ is None
    assert load(again.save(folder)).limit_ is None


def test_every_parameter_is_restored_and_fitting_again_gives_the_same_bits(fitted: Maker, tmp_path: Path):
    clf = fitted(labels=NAMES, extractor="mean", kl_weight=0.01, seed=3, min_probability=0.2, validation=0.2)
    again = load(clf.save(tmp_path / "model"))
    before, after = clf.get_params(deep=False), again.get_params(deep=False)
    for name in before.keys() - {"encoder", "labels", "config"}:
        assert after[name] == before[name], name
    assert again.training_config() == clf.training_config()
    assert after["labels"].names == tuple(NAMES)
    found = again.fit(FEW, FEW_Y).decision_function(FEW)
    assert np.abs(found - clf.decision_function(FEW)).max() < 1e-6
    from_y = load(fitted().save(tmp_path / "from y"))
    assert from_y.labels is None
    assert list(from_y.fit(FEW, ["a", "b"] * 6).classes_) == ["a", "b"]


@pytest.mark.parametrize("options", [{"uncertain": False}, {"extractor": "attention"}], ids=str)
def test_parameters_set_after_fit_do_not_change_the_saved_head(options: dict[str, Any], fitted: Maker, tmp_path: Path):
    clf = fitted(**options)
    expected = clf.decision_function(NEW)
    clf.set_params(extractor="mean", config={"uncertain": True, "dropout": 7})
    again = load(clf.save(tmp_path / "model"))
    assert (again.decision_function(NEW) == expected).all()
    assert (again.extractor, again.config["uncertain"], again.config["dropout"]) == ("mean", True, 7)
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert f"| extractor | {options.get('extractor', 'textcnn')} |" in card
    again = load(again.save(tmp_path / "model"))
    assert (again.set_params(config=None).fit(FEW, FEW_Y).head_.module.options["extractor"]) == "mean"


def test_parameters_given_as_numpy_scalars_are_saved(fitted: Maker, tmp_path: Path):
    options = {
        "seed": np.int64(3),
        "uncertain": np.bool_(True),
        "dropout": np.float32(0.4),
        "kl_weight": np.float16(0.5),
    }
    clf = fitted(**options, min_probability=np.float32(0.1)).set_coverage(np.float32(0.75), FEW, by="entropy")
    own = fitted(**{name: value.item() for name, value in options.items()})
    again = load(clf.save(tmp_path / "model"))
    for other in (own, again):
        assert (other.predict_proba(NEW) == clf.predict_proba(NEW)).all()
    assert list(again.predict(NEW)) == list(clf.predict(NEW))
    assert model_fingerprint(again) == model_fingerprint(clf)


@pytest.mark.parametrize(("cache", "after"), [(None, None), ("auto", "auto"), ("states", "auto")])
def test_the_saved_model_remembers_cache_none_but_no_folder(
    cache: str | None, after: str | None, fitted: Maker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))
    assert load(fitted(cache=cache).save(tmp_path / "model")).cache == after


def test_an_edited_model_is_restored(clf: UncertaintyClassifier, tmp_path: Path):
    before = clf.predict(NEW, return_scores=True)[1]
    clf.rename_label("sports", "Sport")
    clf.remove_label("money")
    again = load(clf.save(tmp_path / "model"))
    assert list(again.classes_) == ["Sport", "world"]
    assert (again.predict(NEW, return_scores=True)[1] == before[:, [1, 2]]).all()
    assert again.label_space_ == clf.label_space_ == again.labels
    assert again.fit(FEW, ["Sport", "world"] * 6).label_space_.names == ("Sport", "world")


def test_sentence_transformers_opens_the_folder_and_nothing_in_it_is_a_pickle(clf: UncertaintyClassifier, folder: Path):
    found = SentenceTransformer(str(folder), device="cpu").encode(NEW)
    assert np.abs(found - clf.encoder_.encode(NEW)).max() < 1e-5
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} <= {".json", ".safetensors", ".yaml", ".md", ".txt"}
    with safe_open(folder / "uncertainty.safetensors", framework="numpy") as tensors:
        parts = {name.split(".")[0] for name in tensors.keys()}  # noqa: SIM118
    assert parts == {"head", "held_out"}
    assert not any(text in path.read_bytes() for path in files for text in (SEEN[0].encode(), SEEN[40].encode()))


def test_the_model_card_names_held_out_rows_and_the_limit(
    clf: UncertaintyClassifier, folder: Path, fitted: Maker, tmp_path: Path
):
    card = (folder / "README.md").read_text(encoding="utf-8")
    for words in (
        "a head on it was trained on 90 labelled rows",
        "`predict` answers None where uncertainty is above",
        "On the 9 rows held out accuracy was",
        "| extractor | textcnn |",
        "90 labelled, of which 9 held out",
    ):
        assert words in card, words
    bare = fitted().save(tmp_path / "bare")
    card = (bare / "README.md").read_text(encoding="utf-8")
    for words in ("`predict` names a label always", "No row was held out"):
        assert words in card, words
    sure = fitted(min_probability=0.9)
    assert "get None, by a min probability" in (sure.save(tmp_path / "sure") / "README.md").read_text(encoding="utf-8")
    told = (sure.set_none(SEEN).save(tmp_path / "none") / "README.md").read_text(encoding="utf-8")
    assert "`predict` answers None below a closeness" in told


def test_the_card_tells_no_accuracy_of_a_label_that_was_removed(clf: UncertaintyClassifier, tmp_path: Path):
    clf.remove_label("money")
    for model in (clf, load(clf.save(tmp_path / "model"))):
        card = (model.save(tmp_path / "again") / "README.md").read_text(encoding="utf-8")
        assert "No row was held out with these labels" in card
        assert "accuracy" not in card


# ---- edits of a fitted model


def test_labels_can_be_renamed_and_removed_but_not_added(clf: UncertaintyClassifier):
    before, doubt = clf.predict(NEW, return_scores=True)[1], clf.predict_uncertainty(NEW)
    with pytest.raises(InputError, match="the model has no logit for 'film'; label rows of it and call fit"):
        clf.add_label({"name": "film"})
    assert not clf.rename_label("sports", " Sport ").retrain
    assert list(clf.classes_) == ["Sport", "money", "world"]
    assert (clf.predict(NEW, return_scores=True)[1] == before[:, [1, 0, 2]]).all()
    assert set(clf.predict(NEW)) == {"Sport", "money", "world"}
    clf.remove_label("money")
    assert (clf.predict(NEW, return_scores=True)[1] == before[:, [1, 2]]).all()
    assert (clf.predict_uncertainty(NEW) == doubt).all()
    assert clf.predict_proba(NEW).sum(axis=1) == pytest.approx(1)
    assert clf.scores(NEW, clf.label_space_).shape == (120, 2)
    with pytest.raises(LabelFileError, match=r"has no label of this name.* Got the text 'money'"):
        clf.rename_label("money", "cash")
    with pytest.raises(LabelFileError):
        clf.remove_label("world")


def test_a_renamed_label_can_take_the_name_of_a_removed_one(clf: UncertaintyClassifier):
    before = clf.predict(NEW, return_scores=True)[1]
    clf.remove_label("world")
    clf.rename_label("money", "world")
    assert list(clf.classes_) == ["sports", "world"]
    assert (clf.predict(NEW, return_scores=True)[1] == before[:, [1, 0]]).all()


def test_the_held_out_record_is_dropped_when_a_label_is_removed(clf: UncertaintyClassifier):
    clf.set_coverage(0.5, by="uncertainty")
    limit = clf.limit_
    clf.rename_label("money", "cash")
    assert clf.set_coverage(0.5, by="uncertainty").limit_ == limit
    clf.remove_label("cash")
    assert clf.limit_ == limit
    with pytest.raises(InputError, match=r"a label was removed since\. Fit with validation=0\.1"):
        clf.set_coverage(0.5)
    assert clf.set_coverage(0.5, NEW).limit_ is not None


# ---- the label file, edited by hand


def test_a_verbalizer_edited_by_hand_changes_no_logit(clf: UncertaintyClassifier, folder: Path):
    edit(folder, "- name: money\n", "- name: money\n    verbalizer: A text of banks.\n    descriptions: [Of banks.]\n")
    again = load(folder)
    assert again.label_space_["money"].verbalizer == "A text of banks."
    assert (again.decision_function(NEW) == clf.decision_function(NEW)).all()
    assert list(again.predict(NEW)) == list(clf.predict(NEW))


def test_a_label_added_by_hand_is_refused(folder: Path):
    edit(folder, "- name: money\n", "- name: money\n  - name: zoo\n")
    with pytest.raises(ModelFolderError, match="the label 'zoo' in its label file and no logit for it; take it out"):
        load(folder)


def test_removing_or_moving_a_label_by_hand_takes_effect(clf: UncertaintyClassifier, folder: Path):
    scores = clf.predict(NEW, return_scores=True)[1]
    edit(folder, "  - name: money\n", "")
    again = load(folder)
    assert list(again.classes_) == ["sports", "world"]
    assert (again.predict(NEW, return_scores=True)[1] == scores[:, [1, 2]]).all()
    with pytest.raises(InputError, match="a label was removed since"):
        again.set_coverage(0.5)
    again.rename_label("sports", "money")  # the removed label's name
    assert (again.predict(NEW, return_scores=True)[1] == scores[:, [1, 2]]).all()
    edit(folder, "labels:\n", "labels:\n  - name: world\n  - name: money\n")
    edit(folder, "  - name: sports\n  - name: world\n", "  - name: sports\n")
    again = load(folder)
    assert again.label_space_.names == ("world", "money", "sports")
    assert (again.predict(NEW, return_scores=True)[1] == scores).all()


# ---- damaged folders


def without(name: str) -> Callable[[Path, dict[str, Any]], None]:
    def spoil(folder: Path, header: dict[str, Any]) -> None:
        tensors = load_file(folder / "uncertainty.safetensors")
        tensors.pop(name)
        save_file(tensors, folder / "uncertainty.safetensors")
        header["files"].pop("uncertainty.safetensors")

    return spoil


def of_another_shape(folder: Path, header: dict[str, Any]) -> None:
    tensors = load_file(folder / "uncertainty.safetensors")
    tensors["head.mean.weight"] = np.ones((3, 3), dtype=np.float32)
    save_file(tensors, folder / "uncertainty.safetensors")
    header["files"].pop("uncertainty.safetensors")


def cut_off(folder: Path, header: dict[str, Any]) -> None:
    path = folder / "uncertainty.safetensors"
    path.write_bytes(path.read_bytes()[:500])
    header["files"].pop("uncertainty.safetensors")


def flipped(folder: Path, header: dict[str, Any]) -> None:
    path = folder / "uncertainty.safetensors"
    content = bytearray(path.read_bytes())
    content[-5] ^= 1
    path.write_bytes(content)


def saying(**values: Any) -> Callable[[Path, dict[str, Any]], None]:
    def spoil(folder: Path, header: dict[str, Any]) -> None:
        header["uncertainty"] = {**header["uncertainty"], **values}
        header["uncertainty"] = {key: value for key, value in header["uncertainty"].items() if value is not ...}

    return spoil


def head(**options: Any) -> Callable[[Path, dict[str, Any]], None]:
    def spoil(folder: Path, header: dict[str, Any]) -> None:
        header["uncertainty"]["head"] |= options

    return spoil


def columns(**places: int) -> Callable[[Path, dict[str, Any]], None]:
    return saying(logit_columns=places)


BAD: dict[str, tuple[Any, str]] = {
    "the head is gone": (lambda f, h: (f / "uncertainty.safetensors").unlink(), "lacks uncertainty.safetensors"),
    "a bit flipped": (flipped, "is not the file that was saved"),
    "the head is cut off": (cut_off, "damaged"),
    "a weight is gone": (without("head.log_variance.bias"), "head.log_variance.bias"),
    "the record is gone": (without("held_out.wrong"), "damaged"),
    "a weight of another shape": (of_another_shape, r"head\.mean\.weight has shape \(3, 3\)"),
    "no facts at all": (lambda f, h: h.pop("uncertainty"), "damaged"),
    "facts of another kind": (lambda f, h: h.update(uncertainty=[3]), "damaged"),
    "another width": (saying(dim=16), "should have"),
    "no width": (saying(dim=...), "damaged"),
    "more labels": (saying(labels=4), "should have"),
    "no columns": (saying(logit_columns=None), "damaged"),
    "columns that are not there": (columns(money=0, sports=1, world=3), "logit_columns must be"),
    "a column twice": (columns(money=0, sports=1, world=1), "logit_columns must be"),
    "a column below zero": (columns(money=0, sports=1, world=-1), "logit_columns must be"),
    "a label without a column": (columns(money=0, sports=1), "the label 'world' in its label file"),
    "a temperature of zero": (saying(temperature=0.0), "temperature must be a number above 0"),
    "no temperature": (saying(temperature=None), "damaged"),
    "a limit of nothing known": (saying(limit={"by": "luck", "value": 1.0}), "limit must be one of"),
    "a limit without a value": (saying(limit={"by": "entropy"}), "damaged"),
    "a limit that is no number": (saying(limit={"by": "entropy", "value": "much"}), "damaged"),
    "another extractor": (head(extractor="lstm"), "extractor must be one of"),
    "an extractor of another size": (head(extractor="mean"), "damaged|should have"),
    "a head that has no std": (head(uncertain=False), "log_variance"),
    "a head with something else": (head(kernels=[3]), "damaged"),
    "a head of another kind": (saying(head=3), "damaged"),
}


@pytest.mark.parametrize("what", BAD)
def test_a_damaged_folder_is_one_clear_error(what: str, whole: Path, tmp_path: Path):
    folder = Path(shutil.copytree(whole, tmp_path / "model"))
    header = header_of(folder)
    spoil, message = BAD[what]
    spoil(folder, header)
    (folder / "labelspace.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(ModelFolderError, match=message) as error:
        load(folder)
    assert "\n" not in str(error.value)
    assert "model" in str(error.value)


def test_the_fingerprint_depends_on_the_head(clf: UncertaintyClassifier):
    before = model_fingerprint(clf)
    clf.head_ = replace(clf.head_, module=copy.deepcopy(clf.head_.module))
    assert model_fingerprint(clf) == before
    clf.head_.module.mean.bias[0] += 1
    assert model_fingerprint(clf) != before
    assert isinstance(clf.head_.module, GaussianHead)


def test_the_folder_of_another_classifier_is_refused(folder: Path):
    header = {**header_of(folder), "class": "LaConClassifier"}
    (folder / "labelspace.json").write_text(json.dumps(header), encoding="utf-8")
    with pytest.raises(ModelFolderError):
        load(folder)


def test_labels_given_as_a_space_keep_their_texts(fitted: Maker, tmp_path: Path):
    space = LabelSpace.from_dict({name: [f"News of {name}."] for name in NAMES})
    again = load(fitted(labels=space).save(tmp_path / "model"))
    assert again.label_space_ == again.labels == space
    assert again.label_vectors_["money"].descriptions.shape[0] == 1
    assert not again.explain(FEW[0]).top[0].nearest, "this classifier does not use descriptions"


def test_saving_twice_writes_the_same_files(clf: UncertaintyClassifier, folder: Path, tmp_path: Path):
    again = load(load(folder).save(tmp_path / "two"))
    assert (again.decision_function(SEEN) == clf.decision_function(SEEN)).all()
    assert again.score(SEEN, SEEN_Y) == clf.score(SEEN, SEEN_Y)
    assert header_of(tmp_path / "two")["uncertainty"] == header_of(folder)["uncertainty"]
