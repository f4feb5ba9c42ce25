"""The scikit-learn scorer counts an abstention as wrong and leaves out rows without a label."""

import math
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import get_scorer, matthews_corrcoef
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from labelspace import DescriptionClassifier, LaConClassifier, UncertaintyClassifier, ZeroShotClassifier
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import abstaining_scorer, evaluate
from labelspace.evaluate.sklearn_scoring import METRICS
from tiny_rows import tiny_rows

TEXTS, NAMES = tiny_rows(18, doubtful=0.3)
LOUD: Any = {"error_score": "raise"}
LABELS = ["money", "sports", "world"]


class Fixed:
    """A classifier with fixed answers."""

    def __init__(self, *answers: str | None) -> None:
        self.answers, self.classes_ = np.array(answers, dtype=object), np.array(LABELS, dtype=object)

    def predict(self, X: Any) -> Any:
        assert len(X) == len(self.answers)
        return self.answers


def abstaining(encoder: Encoder, kind: str) -> Any:
    quick: dict[str, Any] = {"encoder": encoder, "threshold": 0.6}
    if kind == "zero-shot":
        return ZeroShotClassifier(LABELS, **quick)
    if kind == "description":
        return DescriptionClassifier({"labels": {name: [f"on {name}"] for name in LABELS}}, **quick, max_steps=1)
    if kind == "lacon":
        return LaConClassifier(LABELS, **quick, epochs=1)
    return UncertaintyClassifier(LABELS, encoder=encoder, min_probability=0.34, epochs=1, cache=None)


def test_metrics_equal_those_counted_by_hand():
    clf = Fixed("money", "money", None, "sports", None, "world")
    y = ["money", "money", "money", "sports", "world", "sports"]
    # money: 2 of 3 found, 2 of 2 right; sports: 1 of 2 found, 1 of 1 right; world: 0 of 1 found, 0 of 1 right.
    recall, precision = [2 / 3, 1 / 2, 0], [1, 1, 0]
    f1 = [4 / 5, 2 / 3, 0]
    by_hand = {"accuracy": 3 / 6, "balanced_accuracy": sum(recall) / 3}
    for name, values in (("recall", recall), ("precision", precision), ("f1", f1)):
        by_hand[f"{name}_macro"] = sum(values) / 3
        by_hand[f"{name}_weighted"] = (3 * values[0] + 2 * values[1] + values[2]) / 6
    assert {name: abstaining_scorer(name)(clf, TEXTS[:6], y) for name in METRICS} == pytest.approx(by_hand)


@pytest.mark.parametrize("nothing", [None, math.nan, -1, "", "-1", " "])
def test_rows_without_a_label_are_ignored(nothing: Any):
    clf = Fixed("money", "sports", None, "money", "world", "sports")
    without = Fixed("money", "sports", None, "money")
    y = ["money", "sports", "world", "world"]
    for metric in ("accuracy", "f1_macro"):
        scorer = abstaining_scorer(metric)
        assert scorer(clf, TEXTS[:6], [*y, nothing, nothing]) == scorer(without, TEXTS[:4], y)


@pytest.mark.parametrize("metric", METRICS)
def test_with_all_rows_answered_and_labelled_it_equals_scikit_learns_scorer(encoder: Encoder, metric: str):
    clf = ZeroShotClassifier(LABELS, encoder).fit()
    y = list(clf.predict(TEXTS))
    y[:4] = ["money", "sports", "world", "money"]
    assert abstaining_scorer(metric)(clf, TEXTS, y) == pytest.approx(get_scorer(metric)(clf, TEXTS, y))
    weights = np.arange(1.0, 19.0)
    expected = get_scorer(metric)(clf, TEXTS, y, sample_weight=weights)
    assert abstaining_scorer(metric)(clf, TEXTS, y, sample_weight=weights) == pytest.approx(expected)


@pytest.mark.parametrize("kind", ["zero-shot", "description", "lacon", "uncertainty"])
def test_every_abstaining_classifier_is_scored_as_in_evaluate(encoder: Encoder, kind: str):
    clf = abstaining(encoder, kind)
    clf.fit(TEXTS, NAMES) if kind in ("lacon", "uncertainty") else clf.fit()
    winner = (
        clf.predict_proba(TEXTS).max(axis=1) if kind == "uncertainty" else clf.predict(TEXTS, return_scores=True)[1]
    )
    lowest = float(np.median(winner if kind == "uncertainty" else winner.max(axis=1)))
    clf.set_params(**{"min_probability" if kind == "uncertainty" else "threshold": lowest})
    y = [*NAMES[:15], None, None, None]
    assert 0 < sum(name is None for name in clf.predict(TEXTS)) < 18
    found = evaluate(clf, TEXTS, y, baselines=False).metrics
    assert abstaining_scorer()(clf, TEXTS, y) == pytest.approx(found.accuracy) == pytest.approx(clf.score(TEXTS, y))
    assert abstaining_scorer("f1_macro")(clf, TEXTS, y) == pytest.approx(found.macro_f1)
    assert abstaining_scorer("precision_macro")(clf, TEXTS, y) == pytest.approx(found.macro_precision)


def test_a_coverage_limit_counts_as_abstention(encoder: Encoder):
    clf = UncertaintyClassifier(LABELS, encoder, epochs=1, cache=None).fit(TEXTS, NAMES).set_coverage(0.5, TEXTS)
    with pytest.raises(TypeError, match="NoneType"):
        get_scorer("accuracy")(clf, TEXTS, NAMES)
    answered = [own == name for own, name in zip(NAMES, clf.predict(TEXTS), strict=True)]
    assert abstaining_scorer()(clf, TEXTS, NAMES) == sum(answered) / 18


def test_it_works_in_cross_validation_and_grid_search(encoder: Encoder):
    clf = make_pipeline(FunctionTransformer(), ZeroShotClassifier(LABELS, encoder))
    y = [None if row % 5 == 0 else name for row, name in enumerate(NAMES)]
    grid, scorer = {"zeroshotclassifier__threshold": [None, 0.5, 1.0]}, abstaining_scorer("f1_macro")
    search = GridSearchCV(clf, grid, cv=KFold(2), scoring=scorer, **LOUD).fit(TEXTS, y)
    assert search.best_params_ != {"zeroshotclassifier__threshold": 1.0}
    assert search.cv_results_["mean_test_score"][2] == 0, "it never answers"
    by_cross_validation = cross_val_score(clf, TEXTS, y, cv=KFold(2), scoring=scorer, **LOUD).mean()
    assert by_cross_validation == pytest.approx(search.cv_results_["mean_test_score"][0])
    several = {"f1": scorer, "accuracy": abstaining_scorer()}
    assert cross_validate(clf, TEXTS, y, cv=2, scoring=several, **LOUD)["test_accuracy"].shape == (2,)


def test_a_function_of_names_is_a_metric_too():
    clf = Fixed("money", "sports", None, "money")
    y = ["money", "sports", "world", "world"]
    expected = matthews_corrcoef(y, ["money", "sports", "", "money"])
    assert abstaining_scorer(matthews_corrcoef)(clf, TEXTS[:4], y) == pytest.approx(expected)
    weights = [1, 2, 0, 0]
    assert abstaining_scorer(matthews_corrcoef)(clf, TEXTS[:4], y, sample_weight=weights) == pytest.approx(1)


def test_it_can_be_pickled_and_its_repr_names_the_metric():
    again = pickle.loads(pickle.dumps(abstaining_scorer("f1_macro")))
    assert again == abstaining_scorer("f1_macro")
    assert "f1_macro" in repr(again)


@pytest.mark.parametrize(("wrong", "said"), [("f1_macor", "metric must be one of"), (3, "a name or a function")])
def test_an_unknown_metric_is_refused(wrong: Any, said: str):
    with pytest.raises(ConfigError, match=said):
        abstaining_scorer(wrong)


def test_no_label_at_all_is_refused():
    with pytest.raises(InputError, match="y names no label"):
        abstaining_scorer()(Fixed("money"), TEXTS[:1], [None])


def test_none_is_right_where_y_says_that_no_label_fits():
    clf, truth = Fixed("sports", None, None, "world"), ["sports", None, "money", ""]
    score = abstaining_scorer("accuracy", none=True)
    assert score(clf, TEXTS[:4], truth) == 0.5
    assert abstaining_scorer("accuracy")(clf, TEXTS[:4], truth) == 0.5, "of the two labelled rows"
    assert score(clf, TEXTS[:4], truth, sample_weight=[0, 1, 0, 0]) == 1.0
    # F1: sports 1, money 0, "none of these" 1 of 2 and 1 of 2.
    assert abstaining_scorer("f1_macro", none=True)(clf, TEXTS[:4], truth) == pytest.approx((1 + 0 + 0.5) / 3)
    assert score(clf, TEXTS[:4], pd.array(["sports", pd.NA, "money", pd.NA])) == 0.5
    assert pickle.loads(pickle.dumps(score)) == score


def test_a_search_finds_a_limit_where_texts_that_fit_none_count(encoder):
    truth = [name if row % 2 else None for row, name in enumerate(NAMES)]
    grid, folds = {"threshold": [None, 1.0]}, KFold(2)
    found = {}
    for none in (False, True):
        search = GridSearchCV(
            ZeroShotClassifier(LABELS, encoder=encoder), grid, cv=folds, scoring=abstaining_scorer(none=none), **LOUD
        )
        found[none] = search.fit(TEXTS, truth).cv_results_["mean_test_score"][1]
    assert found == {False: 0.0, True: pytest.approx(0.5)}
