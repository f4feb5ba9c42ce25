"""Ties go to the first: in every order that a user sees, on every processor.

This requires that equal documents get bit-equal scores at any position.
"""

from collections.abc import Callable

import numpy as np
import pytest

from classify.doubt import FEW, FEW_Y, uncertainty
from labelspace import Encoder, LaConClassifier, UncertaintyClassifier, ZeroShotClassifier
from labelspace.classify import distinct
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.evaluate import evaluate
from labelspace.evaluate.report import most_frequent_confusions
from labelspace.labels import Label, LabelSpace
from tiny_rows import tiny_rows

OTHERS, _ = tiny_rows(40, seed=3, doubtful=0.5)
TWICE = "the match was won late in the evening"
AT = [2, 3, 11, 20, 41]
"""Positions of the repeated document; each falls on another place in a batch."""

ALIKE = LabelSpace([Label(name, descriptions=("a match between two teams",)) for name in ("zebra", "ant", "lion")])
"""Labels with the same description, not sorted by name."""


def documents() -> list[str]:
    mixed = list(OTHERS)
    for place in AT:
        mixed.insert(place, TWICE)
    assert [place for place, text in enumerate(mixed) if text == TWICE] == AT
    return mixed


def zero_shot(encoder: Encoder) -> BiEncoderClassifier:
    return ZeroShotClassifier(["sports", "politics", "weather"], encoder).fit()


def lacon(encoder: Encoder) -> BiEncoderClassifier:
    return LaConClassifier(encoder=encoder, epochs=1, validation=0.0, config={"max_steps": 2}).fit(FEW, FEW_Y)


def gaussian(encoder: Encoder) -> BiEncoderClassifier:
    return uncertainty(encoder).fit(FEW, FEW_Y)


@pytest.mark.parametrize("window", [3, 4096])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_equal_texts_get_equal_vectors(encoders: dict[str, Encoder], dtype: str, window: int):
    block = next(iter(encoders[dtype].encode_iter([TWICE, *OTHERS[:1], TWICE, TWICE], window=window)))
    assert len({vector.tobytes() for vector in np.delete(block, 1, axis=0)}) == 1


@pytest.mark.parametrize(("dtype", "window"), [("float32", 4096), ("bfloat16", 4)])
@pytest.mark.parametrize("model", [zero_shot, lacon, gaussian])
def test_equal_documents_get_equal_answers_at_any_position(
    encoders: dict[str, Encoder],
    model: Callable[[Encoder], BiEncoderClassifier],
    dtype: str,
    window: int,
    monkeypatch: pytest.MonkeyPatch,
):
    clf = model(encoders[dtype])
    monkeypatch.setattr(distinct, "WINDOW", window)
    given = documents()
    scores = clf.decision_function(given)
    assert len(scores) == len(given)
    assert len({scores[place].tobytes() for place in AT}) == 1
    for place in (0, AT[-1], len(given) - 1):
        assert scores[place] == pytest.approx(clf.decision_function([given[place]])[0], abs=0.05)
    if isinstance(clf, UncertaintyClassifier):
        assert len({float(found) for found in clf.predict_uncertainty(given)[AT]}) == 1
        assert len({found.tobytes() for found in clf.transform(given)[AT]}) == 1


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_tie_of_labels_goes_to_the_first_by_name_in_every_method(encoders: dict[str, Encoder], dtype: str):
    clf = ZeroShotClassifier(ALIKE, encoders[dtype], anchor="descriptions").fit()
    given = documents()
    assert set(clf.predict(given)) == {"ant"}
    assert (clf.predict_proba(given).argmax(axis=1) == list(clf.classes_).index("ant")).all()
    assert (clf.decision_function(given).argmax(axis=1) == list(clf.classes_).index("ant")).all()
    told = clf.explain(TWICE)
    assert told.label == "ant"
    assert told.margin == 0
    assert [entry.label for entry in told.top] == ["ant", "lion", "zebra"]


def test_equally_frequent_confusions_are_listed_in_label_order(encoders: dict[str, Encoder]):
    clf = ZeroShotClassifier(ALIKE, encoders["float32"], anchor="descriptions").fit()
    found = evaluate(clf, [TWICE, TWICE], ["zebra", "lion"], baselines=False)
    told = most_frequent_confusions(found.counts, found.labels)
    assert told == [("zebra", "ant", 1), ("lion", "ant", 1)]
