"""Intervals equal those of slow loops over rows, hold what was measured, and tell two models apart where rows do."""

import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.evaluate.intervals import (
    SCORES,
    Interval,
    PairedTally,
    cell_scores,
    interval,
    score_intervals,
)
from labelspace.evaluate.metrics import Tally


def rows_of_labels(count: int, labels: int, right: float, seed: int) -> tuple[list[int], list[int]]:
    """Targets, and predictions that are right with a given probability and otherwise random, including "none"."""
    draw = random.Random(seed)
    targets = [draw.randrange(labels) for _ in range(count)]
    predicted = [target if draw.random() < right else draw.randrange(-1, labels) for target in targets]
    return targets, predicted


# ---- one model, from its confusion matrix


def tallied(targets: list[int], predicted: list[int], labels: int, *, none: bool = False) -> Tally:
    tally = Tally([str(label) for label in range(labels)], none=none)
    tally.add(targets, predicted)
    return tally


def test_the_interval_of_accuracy_is_wilsons():
    targets, predicted = rows_of_labels(60, 3, 0.7, seed=7)
    found = score_intervals(tallied(targets, predicted, 3).counts).accuracy
    rows, share, z = 60, found.value, 1.959963984540054
    middle = (share + z * z / (2 * rows)) / (1 + z * z / rows)
    half = z / (1 + z * z / rows) * math.sqrt(share * (1 - share) / rows + z * z / (4 * rows * rows))
    assert (found.low, found.high) == pytest.approx((middle - half, middle + half))


@pytest.mark.parametrize("wrong", [0, 5, 25, 30])
def test_with_few_rows_right_or_wrong_macro_f1_has_no_interval_and_accuracy_has_one(wrong):
    targets = [0, 1, 2] * 10
    predicted = [(target + 1) % 3 if row < wrong else target for row, target in enumerate(targets)]
    found = score_intervals(tallied(targets, predicted, 3).counts)
    assert found.macro_f1.low is found.macro_f1.high is None
    assert found.accuracy.value == (30 - wrong) / 30
    assert found.accuracy.low is not None
    assert found.accuracy.high is not None
    assert 0.1 < found.accuracy.high - found.accuracy.low < 0.4


@pytest.mark.slow
@pytest.mark.parametrize("none", [False, True])
def test_the_interval_of_macro_f1_has_the_spread_of_a_loop_over_rows(none):
    targets, predicted = rows_of_labels(150, 4, 0.6, seed=8)
    if none:
        targets = [-1 if row % 7 == 0 else target for row, target in enumerate(targets)]
    tally = tallied(targets, predicted, 4, none=none)
    found, value = score_intervals(tally.counts).macro_f1, tally.metrics().macro_f1
    draw, scores = random.Random(9), []
    for _ in range(150):
        rows = [draw.randrange(150) for _ in range(150)]
        drawn = tallied([targets[row] for row in rows], [predicted[row] for row in rows], 4, none=none)
        scores.append(drawn.metrics().macro_f1)
    low, high = np.quantile(scores, [0.025, 0.975]) - np.mean(scores) + value
    assert found == pytest.approx((value, low, high), abs=0.025)


def test_the_interval_holds_the_score_where_labels_have_few_rows():
    # Draws with replacement score lower there, so their percentiles are moved.
    targets, predicted = rows_of_labels(10_000, 1_000, 0.7, seed=10)
    tally = tallied(targets, predicted, 1_000)
    found = score_intervals(tally.counts).macro_f1
    assert found.low is not None
    assert found.high is not None
    assert found.low < tally.metrics().macro_f1 < found.high
    assert interval(targets, predicted, 1_000, metric="macro_f1") == found


# ---- two models on the same rows


def scores_of(targets: list[int], predicted: list[int], labels: int, *, none: bool) -> tuple[float, float]:
    metrics = tallied(targets, predicted, labels, none=none).metrics()
    return metrics.macro_f1, metrics.accuracy


@pytest.mark.slow
@pytest.mark.parametrize("none", [False, True])
def test_the_difference_of_two_models_equals_that_of_a_loop_over_rows(none):
    targets, this = rows_of_labels(120, 3, 0.7, seed=11)
    _, guesses = rows_of_labels(120, 3, 0.5, seed=12)
    other = [guess if row % 3 == 0 else answer for row, (guess, answer) in enumerate(zip(guesses, this, strict=True))]
    targets = [-1 if row % 9 == 0 else target for row, target in enumerate(targets)]
    tally = PairedTally(3, none=none)
    for start in range(0, 120, 50):  # in batches
        tally.add(*(column[start : start + 50] for column in (targets, this, other)))
    found = tally.difference()
    rows = [row for row in zip(targets, this, other, strict=True) if none or row[0] >= 0]
    right = [(own == first, own == second) for own, first, second in rows]
    assert found.only_this_right == sum(first and not second for first, second in right)
    assert found.only_other_right == sum(second and not first for first, second in right)

    def minus(drawn: list[tuple[int, int, int]]) -> list[float]:
        own, first, second = (list(column) for column in zip(*drawn, strict=True))
        pairs = zip(scores_of(own, first, 3, none=none), scores_of(own, second, 3, none=none), strict=True)
        return [mine - theirs for mine, theirs in pairs]

    measured, draw = minus(rows), random.Random(13)
    scores = np.array([minus([draw.choice(rows) for _ in rows]) for _ in range(300)])
    ends_of = np.quantile(scores, [0.025, 0.975], axis=0) - scores.mean(axis=0) + measured
    for one, value, low, high in zip(found[:2], measured, *ends_of, strict=True):
        assert one == pytest.approx((value, low, high), abs=0.03)


def test_rows_that_both_answer_alike_narrow_the_difference():
    # Two models of the same errors: what differs is known better than either score.
    targets, this = rows_of_labels(400, 4, 0.6, seed=14)
    other = [answer if row % 10 else target for row, (answer, target) in enumerate(zip(this, targets, strict=True))]
    tally = PairedTally(4)
    tally.add(targets, other, this)
    found, alone = tally.difference(), score_intervals(tallied(targets, this, 4).counts)
    assert found.only_other_right == 0
    for difference, score in zip(found[:2], alone, strict=True):
        low, high = ends(difference)
        assert low > 0
        assert high - low < 0.7 * (ends(score)[1] - ends(score)[0])


def ends(interval: Interval) -> tuple[float, float]:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low, interval.high


def test_the_interval_of_a_difference_in_accuracy_is_newcombes():
    # The example of the paper: 20 rows right in both, 12 and 2 in one alone, 16 in none.
    targets = [0] * 50
    tally = PairedTally(2)
    tally.add(targets, [0] * 32 + [1] * 18, [0] * 20 + [1] * 12 + [0] * 2 + [1] * 16)
    assert tally.difference().accuracy == pytest.approx((0.2, 0.0562, 0.3292), abs=1e-4)


@settings(max_examples=60)
@given(counts=st.tuples(*[st.integers(0, 40)] * 4).filter(any))
def test_the_interval_of_a_difference_holds_it_and_stays_within_minus_1_and_1(counts):
    both, this, other, neither = counts
    tally = PairedTally(2)
    first = [0] * (both + this) + [1] * (other + neither)
    second = [0] * both + [1] * this + [0] * other + [1] * neither
    tally.add([0] * sum(counts), first, second)
    found = tally.difference().accuracy
    low, high = ends(found)
    assert -1 <= low <= found.value <= high <= 1 + 1e-12
    assert high - low > 0


@pytest.mark.parametrize("differing", [1, 2, 3, 4, 5])
def test_a_few_rows_that_differ_do_not_tell_two_models_apart(differing):
    for rows in (10, 25, 100, 400):
        targets = [row % 2 for row in range(rows)]
        this = [1 - target if row % 7 == 6 else target for row, target in enumerate(targets)]
        other = [1 - answer if row < differing else answer for row, answer in enumerate(this)]
        tally = PairedTally(2)
        tally.add(targets, this, other)
        found = tally.difference()
        assert (found.only_this_right, found.only_other_right) == (differing, 0)
        assert found.macro_f1.low is found.macro_f1.high is None
        assert ends(found.accuracy)[0] <= 0 or differing == 5


def test_where_labels_have_few_rows_a_difference_lies_within_its_interval():
    # This model abstains where it would be wrong, so draws lower its score otherwise than the other's.
    targets, other = rows_of_labels(3_000, 1_000, 0.6, seed=18)
    this = [answer if answer == target else -1 for answer, target in zip(other, targets, strict=True)]
    tally = PairedTally(1_000)
    tally.add(targets, this, other)
    found = tally.difference().macro_f1
    low, high = ends(found)
    assert low < found.value < high


def test_models_that_answer_no_row_alike_have_no_interval_in_macro_f1():
    tally = PairedTally(2)
    tally.add([0, 1] * 6, [0, 1] * 6, [1, 0] * 6)
    found = tally.difference()
    assert found.macro_f1 == (1, None, None)
    assert ends(found.accuracy)[0] > 0.5


@pytest.mark.slow
def test_two_models_that_do_not_differ_are_seldom_told_apart():
    told = np.zeros(2)
    for seed in range(200):
        targets, this = rows_of_labels(60, 3, 0.8, seed=seed)
        draw = random.Random(1000 + seed)
        other = [target if draw.random() < 0.8 else draw.randrange(-1, 3) for target in targets]
        tally = PairedTally(3)
        tally.add(targets, this, other)
        told += [one.low is not None and not one.low <= 0 <= one.high for one in tally.difference()[:2]]
    assert (told <= 22).all(), told  # 5 % of 200 are 10; 22 is beyond chance


def test_rows_are_counted_the_same_however_they_come(monkeypatch):
    targets, this = rows_of_labels(500, 3, 0.7, seed=16)
    _, other = rows_of_labels(500, 3, 0.7, seed=17)
    whole = PairedTally(3)
    whole.add(targets, this, other)
    monkeypatch.setattr("labelspace.evaluate.intervals.HELD", 20)
    parts = PairedTally(3)
    for start in range(0, 500, 7):
        parts.add(*(column[start : start + 7] for column in (targets, this, other)))
    assert parts.difference() == whole.difference()


def test_two_models_of_the_same_answers_do_not_differ():
    targets, this = rows_of_labels(50, 3, 0.6, seed=15)
    tally = PairedTally(3)
    tally.add(targets, this, this)
    found = tally.difference()
    assert found.macro_f1 == (0, None, None)
    low, high = ends(found.accuracy)
    assert -low == pytest.approx(high)
    assert (found.only_this_right, found.only_other_right) == (0, 0)


# ---- a bootstrap of any score


def interval_by_hand(targets: list[int], predicted: list[int], labels: int, metric: str, repeats: int, seed: int):
    """Draw rows with replacement, score each draw with the evaluation's own tally, sort."""
    draw = random.Random(seed)
    scores = []
    for _ in range(repeats):
        rows = [draw.randrange(len(targets)) for _ in targets]
        tally = Tally([str(label) for label in range(labels)])
        tally.add([targets[row] for row in rows], [predicted[row] for row in rows])
        scores.append(getattr(tally.metrics(), metric))
    return np.quantile(scores, [0.025, 0.975]) - np.mean(scores)


@pytest.mark.slow
@pytest.mark.parametrize("metric", SCORES)
def test_an_interval_equals_that_of_a_loop_over_rows(metric):
    targets, predicted = rows_of_labels(150, 4, 0.6, seed=1)
    low, high = interval_by_hand(targets, predicted, 4, metric, repeats=300, seed=2)
    value = getattr(tallied(targets, predicted, 4).metrics(), metric)
    fast = interval(targets, predicted, 4, metric=metric, repeats=4000)
    # The loop's own bounds vary by about 0.006 between seeds, at a width of 0.15.
    assert fast == pytest.approx((value, value + low, value + high), abs=0.025)


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=30),
    metric=st.sampled_from(SCORES),
)
def test_the_score_of_a_draw_equals_the_score_of_its_rows(rows, metric):
    cells = sorted(set(rows))
    counts = [sum(row == cell for row in rows) for cell in cells]
    tally = Tally(list("abcd"))
    tally.add([own for own, _ in rows], [answer for _, answer in rows])
    got = cell_scores(np.array(cells), np.array([counts, counts]), 4, metric)
    assert got == pytest.approx([getattr(tally.metrics(), metric)] * 2, abs=1e-12)


def test_an_interval_holds_the_score_and_narrows_with_rows():
    widths = []
    for count in (50, 500, 5000):
        targets, predicted = rows_of_labels(count, 3, 0.7, seed=count)
        accuracy = sum(own == answer for own, answer in zip(targets, predicted, strict=True)) / count
        value, low, high = interval(targets, predicted, 3, metric="accuracy")
        assert low is not None
        assert high is not None
        assert low < value == accuracy < high
        widths.append(high - low)
    # Each step has ten times the rows, so the width shrinks by the square root of ten.
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(10), rel=0.25)
    assert widths[1] / widths[2] == pytest.approx(math.sqrt(10), rel=0.25)


@pytest.mark.parametrize("wrong", [0, 5, 95, 100])
def test_rows_that_are_nearly_all_right_or_all_wrong_tell_no_macro_f1_but_the_accuracy(wrong):
    targets, predicted = [0, 1] * 50, [1, 0] * 50
    predicted[wrong:] = targets[wrong:]
    assert interval(targets, predicted, 2, metric="macro_f1") == (pytest.approx(1 - wrong / 100, abs=0.01), None, None)
    value, low, high = interval(targets, predicted, 2, metric="accuracy")
    assert low is not None
    assert high is not None
    assert (value, high - low > 0.03, low <= value <= high) == (pytest.approx(1 - wrong / 100), True, True)


def test_labels_without_a_row_lower_no_score():
    assert interval([0, 1] * 9, [0, 1] * 9, 77).value == 1.0


def test_the_seed_fixes_the_interval():
    targets, predicted = rows_of_labels(100, 3, 0.5, seed=3)
    first, again, other = (interval(targets, predicted, 3, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_bounded_memory_gives_a_similar_interval(monkeypatch):
    targets, predicted = rows_of_labels(100, 3, 0.5, seed=5)
    whole = interval(targets, predicted, 3)
    monkeypatch.setattr("labelspace.evaluate.intervals.BLOCK", 30)
    assert interval(targets, predicted, 3) == pytest.approx(whole, abs=1e-12)


def test_ten_thousand_rows_of_77_labels_are_fast():
    targets, predicted = rows_of_labels(10_000, 77, 0.6, seed=6)
    started = time.perf_counter()
    interval(targets, predicted, 77)
    assert time.perf_counter() - started < 10  # a loop over rows takes minutes


@pytest.mark.parametrize(
    ("targets", "predicted", "error", "message"),
    [
        ([0, 1], [0], ShapeError, "one number per target"),
        ([[0], [1]], [[0], [1]], ShapeError, "one number per target"),
        ([], [], InputError, "no rows"),
        ([0, 2], [0, 1], ShapeError, "targets must be column numbers from 0 to 1. Got 2"),
        ([0, -1], [0, 1], ShapeError, "targets must be column numbers from 0 to 1. Got -1"),
        ([0, 1], [0, -2], ShapeError, "predicted must be column numbers from -1 to 1. Got -2"),
    ],
    ids=["too few", "matrix", "nothing", "target above", "target missing", "answer below"],
)
def test_malformed_rows_are_refused(targets, predicted, error, message):
    with pytest.raises(error, match=message):
        interval(targets, predicted, 2)


@pytest.mark.parametrize("option", [{"metric": "f1"}, {"repeats": 0}], ids=str)
def test_invalid_options_are_refused(option):
    with pytest.raises(ConfigError):
        interval([0], [0], 2, **option)
