"""Intervals, rank correlation and AUROC equal slow reference implementations."""

import itertools
import math
import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.bench.cards import METRICS
from labelspace.bench.statistics import (
    auroc,
    bootstrap_interval,
    cell_scores,
    kendall_tau,
    regression,
)
from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.evaluate.metrics import Tally


def rows_of_labels(count: int, labels: int, right: float, seed: int) -> tuple[list[int], list[int]]:
    """Targets, and predictions that are right with a given probability and otherwise random, including "none"."""
    draw = random.Random(seed)
    targets = [draw.randrange(labels) for _ in range(count)]
    predicted = [target if draw.random() < right else draw.randrange(-1, labels) for target in targets]
    return targets, predicted


def interval_by_hand(targets: list[int], predicted: list[int], labels: int, metric: str, repeats: int, seed: int):
    """Draw rows with replacement, score each draw with the evaluation's own tally, sort."""
    draw = random.Random(seed)
    scores = []
    for _ in range(repeats):
        rows = [draw.randrange(len(targets)) for _ in targets]
        tally = Tally([str(label) for label in range(labels)])
        tally.add([targets[row] for row in rows], [predicted[row] for row in rows])
        scores.append(getattr(tally.metrics(), metric))
    return tuple(np.quantile(scores, [0.025, 0.975]))


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_an_interval_equals_that_of_a_loop_over_rows(metric):
    targets, predicted = rows_of_labels(150, 4, 0.6, seed=1)
    slow = interval_by_hand(targets, predicted, 4, metric, repeats=300, seed=2)
    fast = bootstrap_interval(targets, predicted, 4, metric=metric, repeats=4000)
    # The loop's own bounds vary by about 0.006 between seeds, at a width of 0.15.
    assert fast == pytest.approx(slow, abs=0.025)


@settings(max_examples=40)
@given(
    rows=st.lists(st.tuples(st.integers(0, 3), st.integers(-1, 3)), min_size=1, max_size=30),
    metric=st.sampled_from(METRICS),
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
        low, high = bootstrap_interval(targets, predicted, 3, metric="accuracy")
        assert low < accuracy < high
        widths.append(high - low)
    # Each step has ten times the rows, so the width shrinks by the square root of ten.
    assert widths[0] / widths[1] == pytest.approx(math.sqrt(10), rel=0.25)
    assert widths[1] / widths[2] == pytest.approx(math.sqrt(10), rel=0.25)


def test_the_interval_of_perfect_predictions_has_no_width():
    assert bootstrap_interval([0, 1, 2], [0, 1, 2], 3) == (1.0, 1.0)


def test_labels_without_a_row_lower_no_score():
    assert bootstrap_interval([0, 1] * 9, [0, 1] * 9, 77) == (1.0, 1.0)


def test_the_seed_fixes_the_interval():
    targets, predicted = rows_of_labels(100, 3, 0.5, seed=3)
    first, again, other = (bootstrap_interval(targets, predicted, 3, seed=seed) for seed in (1, 1, 2))
    assert first == again != other


def test_a_higher_level_gives_a_wider_interval():
    targets, predicted = rows_of_labels(100, 3, 0.5, seed=4)
    low, high = bootstrap_interval(targets, predicted, 3, level=0.5)
    wide_low, wide_high = bootstrap_interval(targets, predicted, 3, level=0.99)
    assert wide_low < low < high < wide_high


def test_bounded_memory_gives_a_similar_interval(monkeypatch):
    targets, predicted = rows_of_labels(100, 3, 0.5, seed=5)
    whole = bootstrap_interval(targets, predicted, 3)
    monkeypatch.setattr("labelspace.bench.statistics.BLOCK", 30)
    assert bootstrap_interval(targets, predicted, 3) == pytest.approx(whole, abs=1e-12)


def test_ten_thousand_rows_of_77_labels_are_fast():
    targets, predicted = rows_of_labels(10_000, 77, 0.6, seed=6)
    started = time.perf_counter()
    bootstrap_interval(targets, predicted, 77)
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
        bootstrap_interval(targets, predicted, 2)


@pytest.mark.parametrize("option", [{"metric": "f1"}, {"repeats": 0}, {"level": 0}, {"level": 1.5}], ids=str)
def test_invalid_options_are_refused(option):
    with pytest.raises(ConfigError):
        bootstrap_interval([0], [0], 2, **option)


def tau_by_hand(a: list[float], b: list[float]) -> float:
    """Concordant less discordant pairs, over the geometric mean of the pairs not tied in each list."""
    total = first = second = 0
    for i, j in itertools.combinations(range(len(a)), 2):
        left, right = np.sign(a[i] - a[j]), np.sign(b[i] - b[j])
        total += left * right
        first += left != 0
        second += right != 0
    return total / math.sqrt(first * second)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5)), min_size=2, max_size=12))
def test_tau_counts_pairs(pairs):
    a, b = ([float(value) for value in values] for values in zip(*pairs, strict=True))
    if len(set(a)) < 2 or len(set(b)) < 2:
        with pytest.raises(InputError, match="different scores"):
            kendall_tau(a, b)
    else:
        assert kendall_tau(a, b).tau == pytest.approx(tau_by_hand(a, b))


def test_tau_of_equal_and_reversed_orders_is_plus_and_minus_one():
    assert kendall_tau([1, 2, 3, 4, 5], [2, 3, 5, 7, 11]).tau == pytest.approx(1)
    assert kendall_tau([1, 2, 3, 4, 5], [5, 4, 3, 2, 1]).tau == pytest.approx(-1)
    assert kendall_tau(range(20), range(20)).p < 1e-6


@pytest.mark.parametrize(
    ("a", "b", "error"),
    [([1, 2], [1], ShapeError), ([1], [1], InputError), ([1, math.nan], [1, 2], InputError)],
    ids=["lengths", "one model", "nan"],
)
def test_rankings_that_cannot_be_compared_are_refused(a, b, error):
    with pytest.raises(error):
        kendall_tau(a, b)


@settings(max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 4), st.booleans()), min_size=2, max_size=20))
def test_auroc_is_the_share_of_pairs_in_the_right_order(rows):
    yes = [score for score, kind in rows if kind]
    no = [score for score, kind in rows if not kind]
    scores, kinds = zip(*rows, strict=True)
    if not yes or not no:
        with pytest.raises(InputError, match="both kinds"):
            auroc(scores, kinds)
    else:
        by_hand = sum((a > b) + (a == b) / 2 for a in yes for b in no) / (len(yes) * len(no))
        assert auroc(scores, kinds) == pytest.approx(by_hand)


def test_auroc_refuses_what_is_not_finite():
    with pytest.raises(InputError, match=r"must be finite numbers\. Got nan"):
        auroc([0.1, math.nan], [True, False])


# ---- the line of a figure


def test_the_line_is_that_of_least_squares():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=12), rng.normal(size=12)
    slope, base = np.polyfit(x, y, 1)
    places = [-3.0, 0.0, 5.0]
    assert regression(x, y, places).at == pytest.approx([base + slope * place for place in places])


def test_the_interval_of_the_line_covers_the_true_mean_in_95_percent_of_draws():
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 4, size=7)
    held = 0
    for _ in range(1000):
        line = regression(x, 0.3 * x + 0.1 * rng.normal(size=7), [3.5])
        held += abs(line.at[0] - 0.3 * 3.5) <= line.half_width[0]
    assert held / 1000 == pytest.approx(0.95, abs=0.021)  # three standard errors


def test_a_line_through_two_points_has_no_interval():
    line = regression([0, 2], [1, 2], [1])
    assert line.at.tolist() == [1.5]
    assert line.half_width is None
    with pytest.raises(InputError, match=r"two different places\. Got 2 points at one"):
        regression([1, 1], [1, 2], [1])
    with pytest.raises(InputError, match="finite"):
        regression([1, 2], [1, math.nan], [1])
