"""predict, predict_proba, decision_function and explain agree, and no label affects the score of another."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import NotFittedError

from classify.conftest import METHODS, TEXTS, columns_of
from labelspace import LabelSpace
from labelspace.classify import predict_file
from labelspace.classify.anchors import GRID, cosines
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning

Maker = Callable[..., Any]

each_method = pytest.mark.parametrize("method", METHODS)
each_dtype = pytest.mark.parametrize("dtype", ["float32", "bfloat16"])


# ---- agreement


@each_method
def test_predict_is_the_argmax_of_scores_and_of_probabilities(method: str, fitted: Maker):
    clf = fitted(method, anchor="verbalizer")
    texts = [*TEXTS, *clf.label_space_.verbalizers]
    names, scores, probabilities = clf.predict(texts), clf.decision_function(texts), clf.predict_proba(texts)
    assert scores.shape == probabilities.shape == (len(texts), 3)
    assert list(names) == [clf.classes_[row] for row in scores.argmax(axis=1)]
    assert list(names) == [clf.classes_[row] for row in probabilities.argmax(axis=1)]
    assert len(set(names)) > 1  # a constant answer would agree with itself


def near(center: float) -> st.SearchStrategy[list[float]]:
    """Three cosines that differ by a few steps of the grid, or by less than one step."""
    offset = st.one_of(st.integers(-2, 2).map(float), st.floats(-2, 2))
    return st.lists(offset.map(lambda steps: min(max(center + steps / GRID, -1.0), 1.0)), min_size=3, max_size=3)


near_ties = st.floats(-1, 1).flatmap(near)
far_apart = st.lists(st.floats(-1, 1), min_size=3, max_size=3)


@given(
    st.lists(st.one_of(near_ties, near(0.0), near(1.0), far_apart), min_size=1, max_size=6),
    st.sampled_from([1e-4, 0.07, 1.0, 100.0]),
    st.permutations(["a", "b", "c"]),
)
@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_all_methods_agree_on_nearly_equal_and_equal_cosines(
    make: Maker, rows: list[list[float]], temperature: float, names: list[str]
):
    """Return the library's cosines of each text with the axes, for any order of the label file."""
    decision = make("zero-shot", temperature=temperature).decision()
    scores = cosines(np.array(rows), np.eye(3))
    assert (scores.astype(np.float64) * GRID % 1 == 0).all()
    sorted_scores = scores[:, np.argsort(names)]  # columns a, b, c
    probabilities = decision.answers(sorted(names), sorted_scores).probabilities
    assert np.abs(probabilities.sum(axis=1) - 1).max() < 1e-12
    assert (probabilities >= 0).all()
    winners = decision.answers(names, scores).names
    assert list(winners) == [sorted(names)[column] for column in probabilities.argmax(axis=1)]
    for row, winner, shares in zip(sorted_scores.tolist(), winners, probabilities.tolist(), strict=True):
        assert winner == "abc"[row.index(max(row))]
        # Strict: tied labels get equal probabilities, and one step below gets less.
        assert [share == max(shares) for share in shares] == [score == max(row) for score in row]


def test_cosines_lie_on_a_grid_that_float32_represents_exactly(fitted: Maker):
    for method in METHODS:
        steps = fitted(method).decision_function(TEXTS).astype(np.float64) * GRID
        assert (steps == np.rint(steps)).all()


@each_method
def test_probabilities_are_the_softmax_of_the_scores_over_the_temperature(method: str, fitted: Maker):
    clf = fitted(method, temperature=0.2)
    for row, probabilities in zip(clf.decision_function(TEXTS).tolist(), clf.predict_proba(TEXTS), strict=True):
        powers = [np.exp(score / 0.2) for score in row]
        assert probabilities == pytest.approx([power / sum(powers) for power in powers], rel=1e-9)


TWINS = [
    {"name": "alpha", "verbalizer": "☃ 北京 zyxw"},  # sorted first but seldom the winner
    {"name": "one", "verbalizer": "A game."},
    {"name": "two", "verbalizer": "A game."},
]


@pytest.mark.parametrize(
    ("dtype", "order"),
    [("float32", (0, 1, 2)), ("float32", (1, 2, 0)), ("float32", (2, 1, 0)), ("bfloat16", (2, 0, 1))],
)
@pytest.mark.filterwarnings("ignore:.*reads the verbalizers")
def test_tied_labels_get_the_same_answer_in_every_method_and_order(
    dtype: str, order: tuple[int, ...], fitted: Maker, tmp_path: Path
):
    clf = fitted("zero-shot", dtype, labels=LabelSpace.from_dict({"labels": [TWINS[place] for place in order]}))
    texts = [*TEXTS, "A game.", "☃ 北京 zyxw"]
    scores = columns_of(clf, clf.decision_function(texts), ["alpha", "one", "two"])
    assert (scores[:, 1] == scores[:, 2]).all()
    expected = ["alpha" if alpha >= one else "one" for alpha, one, _ in scores.tolist()]
    assert set(expected) == {"alpha", "one"}
    names, with_scores = clf.predict(texts, return_scores=True)
    assert list(names) == list(clf.predict(texts)) == expected
    assert (columns_of(clf, with_scores, ["alpha", "one", "two"]) == scores).all()
    probabilities = clf.predict_proba(texts)
    assert list(clf.classes_[probabilities.argmax(axis=1)]) == expected
    assert (probabilities[:, 1] == probabilities[:, 2]).all()

    for text, name in zip(texts, clf.predict(texts), strict=True):
        said = clf.explain(text)
        assert said.label == said.top[0].label == clf.predict([text])[0], name
        ranked = [entry.label for entry in said.top]
        assert ranked.index("one") + 1 == ranked.index("two")
        assert said.margin > 0 if said.label == "alpha" else said.margin == 0

    predict_file(clf, texts_table(texts), tmp_path / "out.parquet", all_scores=True)
    out = pq.read_table(tmp_path / "out.parquet")
    assert out["predicted_label"].to_pylist() == expected
    assert out["predicted_score"].to_pylist() == scores.max(axis=1).tolist()
    assert out["predicted_probability"].to_pylist() == probabilities.max(axis=1).tolist()
    for column, name in enumerate(["alpha", "one", "two"]):
        assert out[f"predicted_score:{name}"].to_pylist() == scores[:, column].tolist()


def texts_table(texts: list[str]) -> pa.Table:
    return pa.table({"text": texts})


def test_scores_are_asked_for_a_label_space(fitted: Maker):
    with pytest.raises(ConfigError, match=r"space must be a LabelSpace\. Got list; LabelSpace.from_names makes one"):
        fitted("zero-shot").scores(TEXTS, ["sports", "money"])


def test_scores_are_cosines_with_the_anchor(fitted: Maker, encoders: dict[str, Encoder], space: LabelSpace):
    encoder = encoders["float32"]
    texts = encoder.encode(TEXTS).astype(np.float64)

    def unit(vector: np.ndarray) -> np.ndarray:
        return vector / np.linalg.norm(vector)

    for anchor in ("verbalizer", "descriptions", "both"):
        clf = fitted("zero-shot", anchor=anchor)
        found = columns_of(clf, clf.decision_function(TEXTS), space.names)
        for column, (label, verbalizer) in enumerate(zip(space.labels, space.verbalizers, strict=True)):
            alone = encoder.encode([verbalizer], role="label")[0].astype(np.float64)
            expected = alone
            if label.descriptions and anchor != "verbalizer":
                mean = unit(np.mean([encoder.encode([d])[0] for d in label.descriptions], axis=0, dtype=np.float64))
                expected = mean if anchor == "descriptions" else unit(mean + alone)
            assert np.abs(found[:, column] - texts @ expected).max() < 1e-6, (anchor, label.name)


# ---- abstention


@each_method
def test_a_score_below_the_threshold_gives_none(method: str, fitted: Maker):
    clf = fitted(method)
    names, scores = clf.predict(TEXTS, return_scores=True)
    best = np.sort(scores.max(axis=1))
    clf.threshold = float((best[2] + best[3]) / 2)
    after, same_scores = clf.predict(TEXTS, return_scores=True)
    assert (same_scores == scores).all()
    low = scores.max(axis=1) < clf.threshold
    assert low.sum() == 3
    assert [name is None for name in after] == low.tolist()
    assert (after[~low] == names[~low]).all()
    for text, name in zip(TEXTS, after, strict=True):
        assert clf.explain(text).label == name


@each_method
def test_an_abstention_is_never_right(method: str, fitted: Maker):
    clf = fitted(method)
    y = clf.predict(TEXTS)
    assert clf.score(TEXTS, y) == 1.0
    best = np.sort(clf.decision_function(TEXTS).max(axis=1))
    clf.threshold = float((best[2] + best[3]) / 2)
    assert clf.score(TEXTS, y) == (len(TEXTS) - 3) / len(TEXTS)


def test_a_score_equal_to_the_threshold_is_enough(fitted: Maker):
    clf = fitted("zero-shot")
    clf.threshold = float(clf.decision_function(TEXTS[:1]).max())
    assert clf.predict(TEXTS[:1])[0] is not None


# ---- independence of labels


@pytest.mark.parametrize(
    ("dtype", "anchor"),
    [("float32", "verbalizer"), ("float32", "descriptions"), ("float32", "both"), ("bfloat16", "both")],
)
def test_another_order_or_another_label_changes_no_bit_of_a_score(
    dtype: str, anchor: str, fitted: Maker, space: LabelSpace
):
    """Checks one trained encoder with every order and every subset of its labels."""
    clf = fitted("description", dtype, anchor=anchor)
    whole = clf.decision_function(TEXTS)
    assert (clf.scores(TEXTS, space) == columns_of(clf, whole, space.names)).all()
    for size in (2, 3):
        for names in itertools.permutations(space.names, size):
            other = LabelSpace([space[name] for name in names], name=space.name, template=space.template)
            assert (clf.scores(TEXTS, other) == columns_of(clf, whole, names)).all(), names


@each_dtype
def test_an_estimator_of_a_permuted_space_has_the_same_columns(dtype: str, fitted: Maker, space: LabelSpace):
    """The columns of `scores` follow the label space instead."""
    clf = fitted("zero-shot", dtype)
    turned = fitted("zero-shot", dtype, labels=space.reorder(["world", "sports", "money"]))
    assert list(turned.classes_) == list(clf.classes_)
    assert (turned.decision_function(TEXTS) == clf.decision_function(TEXTS)).all()
    assert (turned.predict_proba(TEXTS) == clf.predict_proba(TEXTS)).all()
    expected = clf.scores(TEXTS, clf.label_space_)[:, [2, 0, 1]]
    assert (turned.scores(TEXTS, turned.label_space_) == expected).all()


def test_a_space_that_was_never_fitted_is_scored_in_its_own_order(fitted: Maker):
    clf = fitted()
    other = LabelSpace.from_names(["film", "food", "water", "music"])
    scores = clf.scores(TEXTS, other)
    assert scores.shape == (len(TEXTS), 4)
    assert (scores[:, ::-1] == clf.scores(TEXTS, other.reorder(other.names[::-1]))).all()


# ---- documents


def test_every_form_of_documents_gives_the_same_answer(fitted: Maker):
    import pandas as pd
    import polars as pl

    clf = fitted("zero-shot")
    expected = list(clf.predict(TEXTS))
    for documents in (
        tuple(TEXTS),
        iter(TEXTS),
        np.array(TEXTS, dtype=object),
        pd.Series(TEXTS),
        pd.DataFrame({"text": TEXTS, "id": range(len(TEXTS))}),
        pl.Series(TEXTS),
        pa.table({"text": TEXTS}),
    ):
        assert list(clf.predict(documents)) == expected, type(documents)


def test_no_documents_give_an_empty_answer(fitted: Maker):
    clf = fitted("zero-shot", threshold=0.5)
    assert clf.predict([]).shape == (0,)
    assert clf.predict_proba([]).shape == clf.decision_function([]).shape == (0, 3)


def test_an_empty_document_gets_an_answer_and_a_warning(fitted: Maker):
    with pytest.warns(LabelSpaceWarning, match=r"empty or white space \(first: X\[1\]\)"):
        names = fitted("zero-shot").predict(["a text", " "])
    assert len(names) == 2


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ("one text", r"a single str, not a collection of documents; pass \[X\]"),
        (["fine", None], r"X\[1\] is missing"),
        ([3], r"X\[0\] is not a text but 3 of type int"),
        (np.zeros((2, 2)), "one dimension"),
    ],
)
def test_an_invalid_document_is_one_clear_error(documents: Any, message: str, fitted: Maker):
    with pytest.raises(InputError, match=message):
        fitted("zero-shot").predict(documents)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function"])
def test_a_warning_tells_the_callers_line(ask: str, fitted: Maker):
    """However deep in labelspace it arises, so that a filter by module finds it."""
    with pytest.warns(LabelSpaceWarning, match="2 documents are empty") as caught:
        getattr(fitted("zero-shot"), ask)(["", " ", "a match"])
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "decision_function", "explain", "add_label", "save"])
def test_every_method_needs_fit_first(ask: str, make: Maker):
    with pytest.raises(NotFittedError):
        getattr(make(), ask)(TEXTS[0] if ask == "explain" else TEXTS)


def test_a_score_needs_fit_first(make: Maker):
    with pytest.raises(NotFittedError):
        make().score(TEXTS, ["sports"] * len(TEXTS))


def test_an_invalid_anchor_set_after_fit_is_refused(fitted: Maker):
    clf = fitted("zero-shot").set_params(anchor="vebalizer")
    with pytest.raises(ConfigError, match="anchor must be one of"):
        clf.predict(TEXTS)


# ---- explain


@pytest.mark.parametrize("long_texts", ["cut", "windows"])
def test_what_predict_reads_is_explained_half_a_character_too(long_texts: str, make: Maker):
    clf = make("zero-shot", long_texts=long_texts).fit()
    text = "the \ud800 match " * 200
    found = clf.explain(text)
    assert "the \ufffd match" in str(found)
    assert found.label == clf.predict([text])[0]


@each_method
def test_an_explanation_has_the_numbers_of_the_other_methods(method: str, fitted: Maker):
    clf = fitted(method)
    found = clf.explain(TEXTS[0], top=3)
    scores, probabilities = clf.decision_function(TEXTS[:1])[0], clf.predict_proba(TEXTS[:1])[0]
    order = np.argsort(-scores, kind="stable")
    assert [entry.label for entry in found.top] == list(clf.classes_[order])
    assert [entry.score for entry in found.top] == scores[order].tolist()
    assert [entry.probability for entry in found.top] == probabilities[order].tolist()
    assert found.margin == pytest.approx(float(scores[order[0]] - scores[order[1]]))
    assert found.label == clf.predict(TEXTS[:1])[0]
    assert found.text == TEXTS[0]


def test_an_explanation_quotes_the_nearest_descriptions_first(fitted: Maker, space: LabelSpace):
    clf = fitted()
    text = "results of games"
    found = clf.explain(text, top=3, nearest=5)
    vector = clf.encoder_.encode([text])[0].astype(np.float64)
    for place, entry in enumerate(found.top):
        descriptions = space[entry.label].descriptions if place < 2 else ()
        cosines = {d: float(vector @ clf.encoder_.encode([d])[0]) for d in descriptions}
        assert [d for d, _ in entry.nearest] == sorted(cosines, key=lambda d: -cosines[d])
        assert [c for _, c in entry.nearest] == pytest.approx(sorted(cosines.values(), reverse=True), abs=1e-6)
    assert any(len(entry.nearest) == 2 for entry in found.top)
    assert all(len(entry.nearest) <= 1 for entry in clf.explain(text, nearest=1).top)


def test_an_explanation_prints_verdict_margin_and_quotes(fitted: Maker):
    clf = fitted("zero-shot")
    printed = str(clf.explain(TEXTS[0]))
    assert f"-> {clf.predict(TEXTS[:1])[0]}   margin 0." in printed
    clf.threshold = 1.0
    assert "-> none of these (below 1)" in str(clf.explain(TEXTS[0]))
    assert len(str(clf.explain("word " * 300)).splitlines()[0]) == 200


def test_explain_refuses_lists_and_invalid_counts(fitted: Maker):
    clf = fitted("zero-shot")
    with pytest.raises(InputError, match=r"takes one text\. Got list instead; loop"):
        clf.explain(TEXTS)
    with pytest.raises(ConfigError, match="top must be a whole number at least 1"):
        clf.explain(TEXTS[0], top=0)
