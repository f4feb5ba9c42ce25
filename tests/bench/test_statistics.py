"""Rank correlation, the line and AUROC equal slow reference implementations."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace.bench.statistics import (
    auroc,
    kendall_tau,
    regression,
)
from labelspace.errors import InputError, ShapeError


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
