"""Uncertainty limits keep the promised shares and risks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom
from sklearn.metrics import roc_auc_score

from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.training.abstention import (
    RISK_STARTS,
    RISK_STEPS,
    coverage_limit,
    entropy,
    fewest_rows,
    least_answers,
    risk_limit,
)

RUNS = 300
# Among this many runs that each fail with 5 %, more failures than this happen once in a thousand times.
SLACK = int(binom.ppf(0.999, RUNS, 0.05))

unsure = st.lists(st.sampled_from([0.0, 0.1, 0.2, 0.5, 0.7, 1.5]), min_size=1, max_size=30)


# ---- coverage


def coverage_by_hand(uncertainty, coverage):
    """Return the lowest limit at which enough are answered."""
    for limit in sorted(uncertainty):
        if sum(value <= limit for value in uncertainty) / len(uncertainty) >= coverage - 1e-12:
            return limit
    raise AssertionError


@given(unsure, st.floats(0.001, 1))
@settings(max_examples=100)
def test_the_limit_is_the_lowest_that_answers_enough(uncertainty, coverage):
    assert coverage_limit(uncertainty, coverage) == coverage_by_hand(uncertainty, coverage)


@pytest.mark.parametrize(("coverage", "answered"), [(0.1, 3), (0.3, 9), (0.9, 27), (1, 30), (0.91, 28), (1e-9, 1)])
def test_a_share_that_is_a_whole_number_of_documents_is_exact(coverage, answered):
    uncertainty = np.random.default_rng(0).permutation(30) / 7
    assert least_answers(coverage, 30) == answered
    assert [least_answers(part / 100, 100) for part in range(1, 101)] == list(range(1, 101))
    assert (uncertainty <= coverage_limit(uncertainty, coverage)).sum() == answered


def test_ties_are_answered_together():
    assert coverage_limit([0.5] * 10, 0.1) == 0.5
    assert (np.array([0.1, 0.4, 0.4, 0.4, 0.9]) <= coverage_limit([0.1, 0.4, 0.4, 0.4, 0.9], 0.4)).sum() == 4


def test_the_expected_share_of_future_documents_is_at_least_the_coverage():
    """Uncertainties are uniform, so a limit equals the share it answers; within four standard errors of the mean."""
    generator = np.random.default_rng(0)
    for documents, coverage in ((4, 0.5), (10, 0.9), (20, 0.9), (60, 0.55)):
        draws = generator.random((1000, documents))
        answered, naive = (
            np.array([coverage_limit(row, coverage, to_come=to_come) for row in draws]) for to_come in (True, False)
        )
        place = math.ceil(coverage * (documents + 1) - 1e-9)
        assert answered.mean() == pytest.approx(place / (documents + 1), abs=4 * answered.std() / math.sqrt(1000))
        assert place / (documents + 1) >= coverage > naive.mean()


def test_an_unreachable_share_of_future_documents_gives_the_largest_limit():
    assert coverage_limit([0.1, 0.2, 0.3], 0.9, to_come=True) == 0.3
    assert coverage_limit([0.1, 0.2, 0.3], 0.75, to_come=True) == 0.3
    assert coverage_limit([0.1, 0.2, 0.3], 0.5, to_come=True) == 0.2


# ---- risk


def risk_by_hand(uncertainty, wrong, risk, confidence):
    """Run the same tests in Python floats, one by one, with each sum written out."""
    rows = sorted(zip(uncertainty, wrong, strict=True))
    passed = [
        limit
        for start in range(1, RISK_STARTS + 1)
        for limit in sequence_by_hand(rows, math.ceil(start * len(rows) / RISK_STARTS), risk, confidence)
    ]
    return max(passed) if passed else None


def sequence_by_hand(rows, asked, risk, confidence):
    """Return the limits that pass from one start up to the first failure."""
    passed = []
    while True:
        asked = min(asked, len(rows))
        limit = rows[asked - 1][0]
        answered = [bad for value, bad in rows if value <= limit]
        chance = 0.0
        for errors in range(sum(answered) + 1):
            ways = math.comb(len(answered), errors)
            chance += ways * risk**errors * (1 - risk) ** (len(answered) - errors)
        if chance > (1 - confidence) / RISK_STARTS:
            return passed
        passed.append(limit)
        if asked == len(rows):
            return passed
        asked += max(1, len(rows) // RISK_STEPS)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(("risk", "confidence"), [(0.1, 0.95), (0.3, 0.9), (0.05, 0.5)])
@pytest.mark.parametrize("digits", [1, 2, 9])
def test_the_limit_is_that_of_the_tests_written_out(seed, risk, confidence, digits):
    generator = np.random.default_rng(seed)
    uncertainty = generator.random(int(generator.integers(10, 260))).round(digits)
    wrong = generator.random(len(uncertainty)) < 0.5 * uncertainty**2
    found = risk_limit(uncertainty, wrong, risk, confidence=confidence)
    assert found == risk_by_hand(uncertainty.tolist(), wrong.tolist(), risk, confidence)


def power(scale):
    """Return an error rate that rises with the square of the uncertainty, and its mean up to a limit."""
    return lambda u: scale * u**2, lambda limit: scale * limit**2 / 3


def level(share):
    """Return an error rate that does not depend on the uncertainty."""
    return lambda u: share + 0 * u, lambda limit: share


def broken(risk):
    """Return an error rate just above the risk everywhere: every limit is a mistake."""
    return level(risk * 1.001)


def upside_down(limit):
    return 0.25 - 0.2 * limit / 2


CASES = {
    "rising": (power(0.3), 1000, 0.05),
    "rising fast": (power(0.9), 600, 0.1),
    "always a little too much": (broken(0.1), 500, 0.1),
    "worst among the surest": ((lambda u: 0.25 - 0.2 * u, upside_down), 1000, 0.16),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_the_true_risk_is_above_the_target_in_no_more_runs_than_promised(case):
    (chance, truth), documents, risk = CASES[case]
    broke = answered = naive = 0
    for seed in range(RUNS):
        generator = np.random.default_rng(seed)
        uncertainty = np.sort(generator.random(documents))
        wrong = generator.random(documents) < chance(uncertainty)
        limit = risk_limit(uncertainty, wrong, risk)
        answered += limit is not None
        broke += limit is not None and truth(limit) > risk
        # The naive rule: the largest limit that keeps the risk on these same documents.
        kept = np.flatnonzero(wrong.cumsum() <= risk * np.arange(1, documents + 1))
        naive += len(kept) > 0 and truth(uncertainty[kept[-1]]) > risk
    assert broke <= SLACK
    if case.startswith("rising"):
        assert answered > 0.9 * RUNS, "it does promise something"
    if case != "worst among the surest":
        assert naive > 2 * SLACK, "the runs would show it"


@pytest.mark.slow
def test_choosing_between_two_measures_is_safe_if_both_share_the_chance():
    """Both measures are uninformative and every limit is a mistake; choosing the better one picks the lucky one."""
    one = better = sharing = 0
    for seed in range(100):
        generator = np.random.default_rng(seed)
        measures = generator.random((2, 400))
        wrong = generator.random(400) < 0.1 * 1.001
        chosen = max(measures, key=lambda measure: roc_auc_score(wrong, measure))
        one += risk_limit(measures[0], wrong, 0.1, confidence=0.5) is not None
        better += risk_limit(chosen, wrong, 0.1, confidence=0.5) is not None
        sharing += risk_limit(chosen, wrong, 0.1, confidence=0.5, measures=2) is not None
    assert sharing <= one < better
    assert sharing <= binom.ppf(0.999, 100, 0.5)


def test_with_many_documents_the_limit_is_close_to_the_best():
    chance, _ = power(0.3)
    generator = np.random.default_rng(0)
    uncertainty = generator.random(50_000)
    limit = risk_limit(uncertainty, generator.random(50_000) < chance(uncertainty), 0.05)
    assert limit == pytest.approx(math.sqrt(3 * 0.05 / 0.3), abs=0.03)


@pytest.mark.parametrize(("risk", "confidence", "documents"), [(0.05, 0.95, 90), (0.1, 0.95, 44), (0.01, 0.9, 390)])
def test_too_few_documents_give_no_limit_even_without_errors(risk, confidence, documents):
    chance = (1 - confidence) / RISK_STARTS
    assert (1 - risk) ** documents <= chance < (1 - risk) ** (documents - 1)
    uncertainty = np.arange(documents) / documents
    none = np.zeros(documents, dtype=bool)
    assert risk_limit(uncertainty, none, risk, confidence=confidence) == uncertainty[-1]
    assert risk_limit(uncertainty[1:], none[1:], risk, confidence=confidence) is None
    one = none.copy()
    one[0] = True
    assert risk_limit(uncertainty, one, risk, confidence=confidence) is None


def test_an_early_error_does_not_end_the_search():
    uncertainty = np.arange(500) / 500
    wrong = (uncertainty > 0.9) & (np.arange(500) % 2 == 0)
    wrong[[0, 3]] = True
    limit = risk_limit(uncertainty, wrong, 0.05)
    assert limit is not None
    assert limit > 0.9


def test_all_are_answered_if_hardly_any_is_wrong():
    generator = np.random.default_rng(0)
    uncertainty = generator.random(730)
    assert risk_limit(uncertainty, np.zeros(730, dtype=bool), 0.02) == uncertainty.max()


def test_a_higher_confidence_or_a_lower_risk_answers_no_more():
    generator = np.random.default_rng(3)
    uncertainty = generator.random(3000)
    wrong = generator.random(3000) < 0.3 * uncertainty**2
    limits = [risk_limit(uncertainty, wrong, 0.06, confidence=confidence) for confidence in (0.5, 0.9, 0.99)]
    assert limits == sorted(limits, reverse=True)
    risks = [risk_limit(uncertainty, wrong, risk) for risk in (0.09, 0.06, 0.03)]
    assert risks == sorted(risks, reverse=True)
    assert len({*limits, *risks}) > 4


def test_ties_are_answered_and_counted_together():
    half_wrong = np.arange(200) % 2 == 0
    assert risk_limit(np.full(200, 0.5), half_wrong, 0.1) is None
    assert risk_limit(np.full(200, 0.5), half_wrong & (np.arange(200) < 10), 0.1) == 0.5


def test_the_order_of_the_documents_does_not_matter():
    generator = np.random.default_rng(4)
    uncertainty = generator.random(500).round(2)
    wrong = generator.random(500) < 0.3 * uncertainty**2
    order = generator.permutation(500)
    assert risk_limit(uncertainty[order], wrong[order], 0.1) == risk_limit(uncertainty, wrong, 0.1)


# ---- refusals


@pytest.mark.parametrize("coverage", [0, -0.1, 1.1, math.nan, "half", True])
def test_a_coverage_out_of_range_is_refused(coverage):
    with pytest.raises(ConfigError, match="coverage must be a number above 0 and at most 1"):
        coverage_limit([0.1, 0.2], coverage)


@pytest.mark.parametrize("value", [0, 1, 1.0, -0.1, math.nan, "little"])
def test_a_risk_or_a_confidence_out_of_range_is_refused(value):
    with pytest.raises(ConfigError, match="risk must be"):
        risk_limit([0.1, 0.2], [True, False], value)
    with pytest.raises(ConfigError, match="confidence must be"):
        risk_limit([0.1, 0.2], [True, False], 0.1, confidence=value)


@pytest.mark.parametrize("option", [{"risk": 0}, {"risk": 1.0}, {"confidence": 1.0}, {"measures": 0}])
def test_the_fewest_rows_of_no_promise_are_refused(option):
    with pytest.raises(ConfigError, match=f"{next(iter(option))} must be"):
        fewest_rows(**{"risk": 0.1, **option})


def test_an_entropy_needs_a_temperature_and_reads_a_tensor_of_any_type():
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        entropy(np.ones((2, 2)), 0.0)
    logits = torch.tensor([[1.0, 0.5], [9.0, 0.0]], dtype=torch.bfloat16, requires_grad=True)
    assert entropy(logits, 2.0).tolist() == entropy(np.array([[1.0, 0.5], [9.0, 0.0]]), 2.0).tolist()


def test_inputs_of_other_shapes_are_refused():
    with pytest.raises(InputError, match="uncertainty holds no document"):
        coverage_limit([], 0.5)
    with pytest.raises(InputError, match=r"uncertainty\[1\] must be a finite number. Got nan"):
        risk_limit([0.1, math.nan], [True, False], 0.1)
    with pytest.raises(ConfigError, match="measures must be a whole number at least 1"):
        risk_limit([0.1, 0.2], [True, False], 0.1, measures=0)
    with pytest.raises(ShapeError, match="one number for each document"):
        coverage_limit([[0.1], [0.2]], 0.5)
    with pytest.raises(ShapeError, match="wrong must hold one value for each of 2 documents"):
        risk_limit([0.1, 0.2], [True], 0.1)
