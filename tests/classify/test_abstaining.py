"""`UncertaintyClassifier` abstains when in doubt: `set_coverage` fixes the share answered, `set_risk` the errors."""

import copy
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from numpy.typing import NDArray
from scipy.stats import binom
from scipy.stats import entropy as scipy_entropy

from classify.doubt import FEW, FEW_Y, NEW, NEW_Y, uncertainty
from labelspace import UncertaintyClassifier
from labelspace.classify import predict_file
from labelspace.classify.tables.stream import model_fingerprint
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.evaluate import evaluate
from labelspace.training.abstention import least_answers, risk_limit
from labelspace.training.uncertainty import HeldOut
from tiny_rows import tiny_rows

pytestmark = pytest.mark.filterwarnings("ignore:fit held out (9|10) rows")
each_doubt = pytest.mark.parametrize("by", ["uncertainty", "entropy"])
NOTHING_HELD_OUT = "there is no record of rows held out to set a limit on: fit held none out, or a label was removed"


def doubt_of(clf: UncertaintyClassifier, texts: list[str], by: str) -> np.ndarray:
    """Return the values that are compared with the limit, computed from public answers only."""
    return clf.predict_uncertainty(texts) if by == "uncertainty" else scipy_entropy(clf.predict_proba(texts), axis=1)


def recorded(clf: UncertaintyClassifier, uncertainty: Any, entropy: Any, wrong: Any) -> UncertaintyClassifier:
    """Return the same classifier with another record of held-out rows."""
    other = copy.copy(clf)
    other.held_out_ = HeldOut(np.asarray(uncertainty), np.asarray(entropy), np.asarray(wrong, dtype=bool))
    return other


def bare(encoders: dict[str, Encoder]) -> UncertaintyClassifier:
    """Return a classifier fitted without held-out rows."""
    return uncertainty(encoders["float32"]).fit(FEW, FEW_Y)


# ---- coverage


@each_doubt
@pytest.mark.parametrize("coverage", [0.1, 0.5, 0.9])
def test_set_coverage_answers_that_share_of_the_held_out_rows(coverage: float, by: str, clf: UncertaintyClassifier):
    assert clf.set_coverage(coverage, by=by) is clf
    assert clf.limit_ is not None
    record = getattr(clf.held_out_, by)
    assert (record <= clf.limit_.value).sum() == least_answers(coverage, 10)
    assert clf.limit_.by == by


@each_doubt
@pytest.mark.parametrize("coverage", [0.1, 0.9])
def test_set_coverage_on_documents_answers_that_share_of_them_and_the_surest(
    coverage: float, by: str, clf: UncertaintyClassifier
):
    always = clf.predict(NEW)
    clf.temperature_ = 1.0  # otherwise several entropies are exactly zero, and ties are answered together
    clf.set_coverage(coverage, NEW, by=by)
    answered = np.array([name is not None for name in clf.predict(NEW)])
    assert answered.sum() == least_answers(coverage, 120)
    doubt = doubt_of(clf, NEW, by)
    assert clf.limit_ is not None
    assert doubt[answered].max() < clf.limit_.value < doubt[~answered].min()
    assert (clf.predict(NEW)[answered] == always[answered]).all()
    for row in np.argsort(np.abs(doubt - clf.limit_.value))[:12]:
        alone = clf.predict([NEW[row]])[0] is not None
        assert alone == answered[row], "the last bit of a doubt depends on what is read beside a text"


def test_full_coverage_removes_the_limit(clf: UncertaintyClassifier, encoders: dict[str, Encoder]):
    always = list(clf.predict(NEW))
    assert None in clf.set_coverage(0.5).predict(NEW)
    assert list(clf.set_coverage(1.0).predict(NEW)) == always
    assert clf.limit_ is None
    assert bare(encoders).set_coverage(1).limit_ is None, "full coverage needs no held-out rows"


def test_the_limit_uses_the_measure_that_ranks_wrong_answers_better(clf: UncertaintyClassifier):
    rising, wrong = np.arange(10) / 10, np.arange(10) > 7
    for uncertainty_, entropy_, found in ((rising, rising[::-1], "uncertainty"), (rising[::-1], rising, "entropy")):
        other = recorded(clf, uncertainty_, entropy_, wrong).set_coverage(0.5)
        assert other.limit_ is not None
        assert (other.limit_.by, other.limit_.value) == (found, 0.5)
    none_wrong = recorded(clf, rising, rising, wrong & False).set_coverage(0.5, NEW)
    assert none_wrong.limit_ is not None
    assert none_wrong.limit_.by == "entropy"


def test_without_held_out_rows_a_limit_needs_documents(encoders: dict[str, Encoder]):
    clf = bare(encoders)
    for ask in (clf.set_coverage, clf.set_risk):
        with pytest.raises(InputError, match=NOTHING_HELD_OUT):
            ask(0.5)
    assert clf.limit_ is None
    assert clf.set_coverage(0.5, FEW).limit_ is not None


def test_a_coverage_set_on_few_held_out_rows_warns(clf: UncertaintyClassifier):
    with pytest.warns(LabelSpaceWarning, match="fit held out 9 rows, too few for a coverage of 0.5") as told:
        clf.set_coverage(0.5)
    assert len(told) == 1
    doubt = np.arange(30) / 30
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        clf.set_coverage(0.5, NEW[:5])
        clf.set_coverage(1)
        thirty = recorded(clf, doubt, doubt, doubt > 0.8).set_coverage(30 / 31)
    with pytest.warns(
        LabelSpaceWarning,
        match=r"^30 rows held out can promise a coverage of 30/31 on average, .* less than 0\.98; ask for less",
    ):
        thirty.set_coverage(0.98)


@pytest.mark.parametrize("coverage", [0, -0.5, 1.1, float("nan"), "half", None, True])
def test_a_coverage_out_of_range_is_refused(coverage: Any, clf: UncertaintyClassifier):
    with pytest.raises(ConfigError, match="coverage must be a number above 0 and at most 1") as error:
        clf.set_coverage(coverage)
    assert "\n" not in str(error.value)
    assert clf.limit_ is None


# ---- risk


def test_set_risk_finds_a_limit_for_a_good_model_and_raises_for_a_hopeless_one(clf: UncertaintyClassifier):
    """The good model gets only its 40 most doubtful of 200 rows wrong; the hopeless one gets every second row wrong."""
    doubt = np.arange(200) / 200
    good = recorded(clf, doubt, doubt, doubt >= 0.8).set_risk(0.1, by="uncertainty")
    assert good.limit_ is not None
    assert good.limit_.value == risk_limit(doubt, doubt >= 0.8, 0.1)
    assert good.limit_.value > 0.79
    hopeless = recorded(clf, doubt, doubt, np.arange(200) % 2).set_coverage(0.9)
    before = hopeless.limit_
    with pytest.raises(
        InputError, match=r"a risk of 0\.1 cannot be promised with confidence 0\.95: of 200 rows 100 are"
    ) as error:
        hopeless.set_risk(0.1)
    assert "\n" not in str(error.value)
    assert hopeless.limit_ is before


def test_choosing_the_measure_on_the_same_rows_takes_more_rows_for_a_risk(
    clf: UncertaintyClassifier, encoders: dict[str, Encoder]
):
    """Faultless rows that promise a risk of 10 %: 44 with one measure, 51 with the better of two."""

    def on(rows: int, by: str, model: UncertaintyClassifier = clf) -> bool:
        doubt = np.arange(rows) / rows
        try:
            return recorded(model, doubt, doubt, doubt < 0).set_risk(0.1, by=by).limit_ is not None
        except InputError:
            return False

    assert [on(rows, "entropy") for rows in (43, 44)] == [False, True]
    assert [on(rows, "auto") for rows in (50, 51)] == [False, True]
    single = uncertainty(encoders["float32"], uncertain=False).fit(FEW, FEW_Y)
    assert on(44, "auto", single), "with a single measure there is nothing to choose"


def test_nine_rows_are_too_few_to_promise_a_risk(clf: UncertaintyClassifier):
    said = r"cannot be promised .* of 9 rows .* 104 would be needed even if all were right\. .* hold out more"
    with pytest.raises(InputError, match=said):
        clf.set_risk(0.05)


def test_a_risk_set_on_labelled_documents_holds_on_others(clf: UncertaintyClassifier):
    others, y = tiny_rows(300, seed=2, doubtful=0.2)
    wrong = clf.predict(others) != np.array(y)
    assert clf.set_risk(0.08, NEW, NEW_Y, by="entropy", confidence=0.9) is clf
    answered = np.array([name is not None for name in clf.predict(others)])
    assert 0.2 < answered.mean() < 1

    def chance_of_these_errors(rows: NDArray[np.bool_]) -> float:
        """Return the probability of at least this many errors among these rows if the promised risk were true."""
        return float(binom.sf(wrong[rows].sum() - 1, rows.sum(), 0.08))

    assert chance_of_these_errors(answered) > 0.05
    assert chance_of_these_errors(np.ones(300, dtype=bool)) < 0.01


def test_a_risk_is_promised_of_the_answers_that_other_limits_leave(clf: UncertaintyClassifier):
    answers = clf.answers(NEW)
    doubt, wrong = clf.doubt(answers, "entropy"), answers.names != np.array(NEW_Y)
    everywhere = risk_limit(doubt, wrong, 0.3)
    # Half of the documents keep their label: those whose doubt is small, so another limit is due.
    clf.min_probability = float(np.median(answers.confidence))
    named = answers.confidence >= clf.min_probability
    assert 0 < named.sum() < len(named)
    clf.set_risk(0.3, NEW, NEW_Y, by="entropy")
    assert clf.limit_ is not None
    assert clf.limit_.value == risk_limit(doubt[named], wrong[named], 0.3) != everywhere
    clf.limit_, clf.min_probability = None, 1.0
    with pytest.raises(InputError, match="leaves all 120 labelled documents without a label"):
        clf.set_risk(0.1, NEW, NEW_Y, by="entropy")
    with pytest.raises(ConfigError, match="pass labelled X and y, or take these limits away"):
        clf.set_risk(0.1)


def test_set_risk_ignores_rows_without_a_label(clf: UncertaintyClassifier):
    clf.set_risk(0.2, NEW, NEW_Y)
    expected, clf.limit_ = clf.limit_, None
    clf.set_risk(0.2, ["a text of no label", *NEW], [None, *NEW_Y])
    assert clf.limit_ == expected


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        ((0.1, NEW), InputError, r"set_risk needs the labels of X\. Got y=None"),
        ((0.1, None, NEW_Y), InputError, "y holds labels, and X is None"),
        ((0.1, NEW, NEW_Y[:3]), InputError, "one label for each of the 120 documents"),
        ((0.1, NEW[:2], ["money", "spots"]), InputError, r"y\[1\] is 'spots', which is no label"),
        ((0.1, NEW[:2], [None, None]), InputError, "y names no label"),
        ((0, NEW, NEW_Y), ConfigError, "risk must be a number above 0"),
        ((1, NEW, NEW_Y), ConfigError, "risk must be a number above 0 and below 1. Got 1 instead"),
    ],
)
def test_invalid_risks_and_rows_are_refused(
    given: tuple[Any, ...], error: type[Exception], message: str, clf: UncertaintyClassifier
):
    with pytest.raises(error, match=message) as told:
        clf.set_risk(*given)
    assert "\n" not in str(told.value)
    assert clf.limit_ is None


def test_an_impossible_risk_is_refused_before_documents_are_encoded(
    clf: UncertaintyClassifier, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(Encoder, "tokenize", lambda *_: pytest.fail("work began"))
    with pytest.raises(ConfigError, match="risk must be a number above 0 and below 1"):
        clf.set_risk(1.5, NEW, NEW_Y)
    with pytest.raises(ConfigError, match=r"confidence must be a number above 0 and below 1\. Got 1 instead"):
        clf.set_risk(0.1, NEW, NEW_Y, confidence=1)


def test_an_unknown_measure_is_refused(clf: UncertaintyClassifier):
    for ask in (clf.set_coverage, clf.set_risk):
        with pytest.raises(ConfigError, match=r"by must be one of 'auto', 'uncertainty', 'entropy'\. Got 'std'"):
            ask(0.5, by="std")


# ---- None everywhere


@pytest.fixture
def limited(clf: UncertaintyClassifier, request: Any) -> UncertaintyClassifier:
    """A classifier that answers three documents in four."""
    clf.temperature_ = 1.0
    return clf.set_coverage(0.75, NEW, by=request.param)


each_limit = pytest.mark.parametrize("limited", ["uncertainty", "entropy"], indirect=True)


@each_limit
def test_predict_files_and_explanations_abstain_on_the_same_documents(limited: UncertaintyClassifier, tmp_path: Path):
    names = limited.predict(NEW)
    silent = [name is None for name in names]
    assert sum(silent) == 30
    pd.DataFrame({"text": NEW}).to_parquet(tmp_path / "in.parquet")
    done = predict_file(limited, tmp_path / "in.parquet", tmp_path / "out.parquet", chunk_rows=50)
    table = pq.read_table(tmp_path / "out.parquet")
    assert done.abstained == 30
    assert table["predicted_label"].to_pylist() == list(names)
    for column, expected in (
        ("predicted_score", limited.decision_function(NEW).max(axis=1)),
        ("predicted_probability", limited.predict_proba(NEW).max(axis=1)),
        ("predicted_uncertainty", limited.predict_uncertainty(NEW)),
    ):
        assert table[column].to_pylist() == pytest.approx(expected.tolist(), abs=1e-5), column
    for text, name in list(zip(NEW, names, strict=True))[:12]:
        told = limited.explain(text)
        assert (told.label, told.too_uncertain, told.to_dict()["too_uncertain"]) == (name, name is None, name is None)
        assert ("none of these (too uncertain)" in str(told)) == (name is None)


@each_limit
def test_an_evaluation_counts_an_abstention_as_wrong(limited: UncertaintyClassifier):
    names = limited.predict(NEW)
    found = evaluate(limited, NEW, NEW_Y, baselines=False)
    assert found.metrics.accuracy == pytest.approx(np.mean(names == np.array(NEW_Y)))
    assert found.metrics.accuracy == pytest.approx(limited.score(NEW, NEW_Y))
    assert found.metrics.coverage == 0.75
    answered = names != np.array(None)
    assert found.metrics.accuracy_on_covered == pytest.approx(np.mean((names == np.array(NEW_Y))[answered]))
    assert limited.score(NEW, NEW_Y, sample_weight=answered) == pytest.approx(found.metrics.accuracy_on_covered)


def test_threshold_and_limit_both_apply(clf: UncertaintyClassifier):
    clf.temperature_ = 1.0
    below = clf.predict_proba(NEW).max(axis=1) < 0.6
    clf.set_params(min_probability=0.6).set_coverage(0.5, NEW, by="uncertainty")
    assert clf.limit_ is not None
    above = clf.predict_uncertainty(NEW) > clf.limit_.value
    assert [name is None for name in clf.predict(NEW)] == list(below | above)
    assert (below & ~above).any()
    assert (above & ~below).any()
    one = next(text for text, low, high in zip(NEW, below, above, strict=True) if low and not high)
    assert "none of these (below 0.6)" in str(clf.explain(one))


def test_the_fingerprint_depends_on_the_limit_and_the_temperature(clf: UncertaintyClassifier):
    prints = [model_fingerprint(clf)]
    for coverage in (0.5, 0.6):
        prints.append(model_fingerprint(clf.set_coverage(coverage, NEW, by="uncertainty")))
    prints.append(model_fingerprint(clf.set_coverage(0.5, NEW, by="entropy")))
    clf.temperature_ *= 2
    prints.append(model_fingerprint(clf))
    assert len(set(prints)) == 5
    clf.temperature_ /= 2
    assert model_fingerprint(clf.set_coverage(1)) == prints[0]


def test_a_coverage_counts_what_other_limits_refuse(clf: UncertaintyClassifier):
    clf.temperature_ = 1.0
    sure = clf.predict_proba(NEW).max(axis=1)
    clf.set_params(min_probability=float(np.sort(sure)[30:32].mean()))  # 89 of 120 are left
    assert sum(name is not None for name in clf.predict(NEW)) == 89
    clf.set_coverage(0.5, NEW, by="uncertainty")
    assert sum(name is not None for name in clf.predict(NEW)) == 60
    clf.set_coverage(0.2, NEW, by="uncertainty").set_coverage(0.5, NEW, by="uncertainty")
    assert sum(name is not None for name in clf.predict(NEW)) == 60, "an earlier limit has no say"
    with pytest.warns(LabelSpaceWarning, match=r"leaves 74\.2% of the documents with a label, less than the coverage"):
        clf.set_coverage(0.9, NEW, by="uncertainty")
    assert sum(name is not None for name in clf.predict(NEW)) == 89
    with pytest.warns(LabelSpaceWarning, match="the rows that fit held out do not tell which of them min_probability"):
        clf.set_coverage(0.5)
    clf.set_params(min_probability=1.0)
    with pytest.raises(InputError, match="leaves all 120 documents without a label"):
        clf.set_coverage(0.5, NEW)


# ---- the most uncertain first


@each_doubt
def test_most_uncertain_orders_documents_by_doubt(by: str, clf: UncertaintyClassifier):
    clf.temperature_ = 1.0
    doubt, order = doubt_of(clf, NEW, by), clf.most_uncertain(NEW, by=by)
    assert sorted(order) == list(range(120))
    assert (np.diff(doubt[order]) <= 1e-6).all()
    assert list(clf.most_uncertain(NEW, 7, by=by)) == list(order[:7])
    assert clf.most_uncertain(NEW[:3], 7).shape == (3,)


def test_equally_uncertain_documents_keep_their_order(clf: UncertaintyClassifier, monkeypatch):
    monkeypatch.setattr(type(clf), "doubt", lambda _, answers, by: np.zeros(len(answers)))
    assert list(clf.most_uncertain(NEW[:5])) == [0, 1, 2, 3, 4]


def test_of_a_repeated_document_the_first_is_labelled_next(clf: UncertaintyClassifier):
    order = clf.most_uncertain(NEW[:6])
    assert list(clf.most_uncertain([*NEW[:3], *NEW[:6]])) == [row if row < 3 else row + 3 for row in order]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"top": 0}, "top must be a whole number at least 1"), ({"top": 2.5}, "top must"), ({"by": "std"}, "by must be")],
)
def test_most_uncertain_refuses_invalid_options(options: dict[str, Any], message: str, clf: UncertaintyClassifier):
    with pytest.raises(ConfigError, match=message):
        clf.most_uncertain(NEW, **options)
