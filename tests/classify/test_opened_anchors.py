"""A saved model by anchors, opened to answer only: the whole model's answers without the estimator."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classify.conftest import TEXTS
from classify.test_long_texts import LIMIT, MIXED
from classify.test_several import POOL
from labelspace import LabelSpace, ZeroShotClassifier, load
from labelspace.classify.opened_anchors import OpenedAnchors
from labelspace.classify.saved.opening import open_to_answer
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, ModelFolderError
from old_folders import old_folder

Maker = Callable[..., Any]

ANSWERS = ("names", "scores", "probabilities", "likeliest", "closeness", "outside", "chosen", "margins")


def same_answers(found: Any, whole: Any, texts: list[str]) -> None:
    """Compare two models bit by bit."""
    for name in ANSWERS:
        one, other = getattr(found.answers(texts), name), getattr(whole.answers(texts), name)
        assert (one is None) == (other is None), name
        assert one is None or np.array_equal(one, other), name
    assert [found.explain(text) for text in texts] == [whole.explain(text) for text in texts]
    assert model_fingerprint(found) == model_fingerprint(whole)
    assert found.classes_.tolist() == whole.classes_.tolist()
    assert (found.class_name, found.reads_) == (type(whole).__name__, whole.reads_)


@pytest.mark.parametrize(
    ("method", "dtype", "anchor"),
    [
        ("zero-shot", "float32", "verbalizer"),
        ("zero-shot", "bfloat16", "both"),
        ("description", "float32", "both"),
        ("description", "bfloat16", "descriptions"),
    ],
)
def test_it_answers_with_the_bits_of_the_whole_model(method, dtype, anchor, fitted: Maker, tmp_path: Path):
    whole = fitted(method, dtype, anchor=anchor, threshold=0.2, temperature=0.3)
    found = open_to_answer(whole.save(tmp_path / "model"))
    assert type(found) is OpenedAnchors
    same_answers(found, whole, TEXTS)


def test_it_knows_what_fits_no_label(space: LabelSpace, encoders: dict[str, Encoder], tmp_path: Path):
    told: Any = space.to_dict() | {"outside": ["A recipe for soup."]}
    told["labels"][0]["not"] = ["A bank wins a prize."]
    whole = ZeroShotClassifier(told, encoders["float32"]).fit().set_coverage(0.5, TEXTS + POOL)
    found = open_to_answer(whole.save(tmp_path / "model"))
    assert None in found.answers(TEXTS).names
    assert found.answers(TEXTS).outside is not None
    assert found.answers(TEXTS).closeness is not None
    same_answers(found, whole, TEXTS)


@pytest.mark.parametrize("labels_per_text", [None, 1.2])
def test_it_has_the_cuts_of_several_labels(labels_per_text: Any, make: Maker, tmp_path: Path):
    whole = make("zero-shot", several=True, labels_per_text=labels_per_text).fit(POOL)
    found = open_to_answer(whole.save(tmp_path / "model"))
    chosen = found.answers(TEXTS + POOL).chosen
    assert chosen is not None
    assert chosen.any()
    same_answers(found, whole, TEXTS + POOL[:5])


def test_it_reads_long_texts_in_windows_where_the_model_does(space, tiny_encoder_folder: Path, tmp_path: Path):
    encoder = Encoder(tiny_encoder_folder, dtype="float32", max_tokens=LIMIT)
    whole = ZeroShotClassifier(space, encoder, long_texts="windows").fit()
    found: Any = open_to_answer(whole.save(tmp_path / "model"))
    same_answers(found, whole, MIXED)
    found.long_texts = "cut"
    assert not np.array_equal(found.answers(MIXED).scores, whole.answers(MIXED).scores)


def test_it_refuses_what_the_whole_model_refuses(make: Maker, tmp_path: Path):
    folder = make("zero-shot", several=True).fit(POOL).save(tmp_path / "model")
    for opened in (open_to_answer, load):
        model: Any = opened(folder)
        with pytest.raises(InputError, match="fitted on texts"):
            model.answers([("a", "pair")])
        model.anchor = "verbalizer"
        with pytest.raises(ConfigError, match="set with another anchor"):
            model.answers(TEXTS)
    labels = folder / "label_space.yaml"
    labels.write_text(labels.read_text(encoding="utf-8").replace("War, peace", "Peace, war"), encoding="utf-8")
    for opened in (open_to_answer, load):
        with pytest.raises(ModelFolderError, match="yaml changed since the cuts"):
            opened(folder)


def test_labels_edited_by_hand_take_effect_and_take_the_limit_away(fitted: Maker, tmp_path: Path):
    folder = fitted("zero-shot").set_coverage(0.5, TEXTS + POOL).save(tmp_path / "model")
    labels = folder / "label_space.yaml"
    labels.write_text(labels.read_text(encoding="utf-8").replace("War, peace", "Films, songs"), encoding="utf-8")
    with pytest.warns(LabelSpaceWarning, match="set it again with documents"):
        found = open_to_answer(folder)
    with pytest.warns(LabelSpaceWarning, match="set it again with documents"):
        whole = load(folder)
    assert found.none_ is None
    same_answers(found, whole, TEXTS)


@pytest.mark.parametrize("name", ["zero-shot", "description"])
def test_a_folder_of_an_older_format_opens_as_the_whole_model(name: str, tmp_path: Path):
    folder = old_folder(name, tmp_path)
    found = open_to_answer(folder)
    assert type(found) is type(load(folder))
    assert (found.answers(TEXTS).scores == load(folder).answers(TEXTS).scores).all()
