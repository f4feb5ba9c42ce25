"""The learning rates: special steps, the formula, and the rates per size of backbone."""

import math
from itertools import pairwise

import pytest

from labelspace.training.nli.schedule import BASE, LARGE, highest_rates
from labelspace.training.schedule import cosine_factor, rate_factor, warmup_factor


def factor_by_hand(step: int, total: int) -> float:
    """Compute appendix C.1 with the paper's numbers."""
    if step < 0.1 * total:
        return step / (0.1 * total)
    return (1 + math.cos(math.pi * (step - 0.1 * total) / (0.9 * total))) / 2


@pytest.mark.parametrize("total", [2, 7, 10, 100, 1234])
def test_every_step_equals_the_formula(total):
    for step in range(total + 1):
        assert cosine_factor(step, total) == pytest.approx(factor_by_hand(step, total), abs=1e-12)


def test_the_first_the_peak_and_the_last_step():
    assert cosine_factor(0, 1000) == 0
    assert cosine_factor(50, 1000) == pytest.approx(0.5)
    assert cosine_factor(100, 1000) == pytest.approx(1)
    assert cosine_factor(550, 1000) == pytest.approx(0.5)
    assert cosine_factor(1000, 1000) == pytest.approx(0, abs=1e-15)


def test_it_rises_then_falls_and_stays_between_0_and_1():
    factors = [cosine_factor(step, 200) for step in range(201)]
    top = factors.index(max(factors))
    assert top == 20
    assert all(a < b for a, b in pairwise(factors[: top + 1]))
    assert all(a > b for a, b in pairwise(factors[top:]))
    assert min(factors) >= 0
    assert max(factors) <= 1


@pytest.mark.parametrize("factor", [rate_factor, cosine_factor])
@pytest.mark.parametrize("total", [0, 1, 10])
def test_behind_the_last_update_the_rate_stays_zero(factor, total):
    assert [factor(step, total, 0.1) for step in range(total, 3 * total + 2)] == [0.0] * (2 * total + 2)
    assert factor(max(total - 1, 0), total, 0.1) > 0 or not total


@pytest.mark.parametrize("factor", [warmup_factor, rate_factor])
def test_a_share_that_is_a_whole_number_of_updates_is_exact(factor):
    assert [factor(step, 100, 0.07) for step in (0, 6)] == [1 / 7, 1]
    # The shares in recorded results give the same number of updates as before.
    for warmup in (0.0, 0.06, 0.1, 0.5, 1.0):
        for total in range(1, 2000):
            rise = math.ceil(warmup * total)
            assert factor(0, total, warmup) == (1 / rise if rise else 1)


def test_a_single_update_is_made_at_the_peak():
    assert [cosine_factor(0, 1, warmup=warmup) for warmup in (0, 0.1, 0.9)] == [1, 1, 1]


def test_without_warmup_the_rate_starts_at_the_peak():
    assert cosine_factor(0, 10, warmup=0) == 1


@pytest.mark.parametrize(("width", "expected"), [(384, BASE), (1023, BASE), (1024, LARGE), (4096, LARGE)])
def test_the_width_chooses_the_rates(width, expected):
    assert highest_rates(width) == expected


def test_the_rates_are_those_of_the_paper():
    assert tuple(BASE) == (2e-5, 1e-4)
    assert tuple(LARGE) == (8e-6, 4e-5)


def test_a_given_rate_replaces_only_its_own_default():
    assert highest_rates(384, learning_rate=1e-3) == (1e-3, BASE.head)
    assert highest_rates(384, head_learning_rate=1e-3) == (BASE.backbone, 1e-3)
