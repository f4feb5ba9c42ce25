"""Uniformity is equation 4, alignment its counterpart, and the pairs are distinct, uniform and repeatable."""

import math
from collections import Counter

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from labelspace.errors import ConfigError, ShapeError
from labelspace.geometry import alignment, sample_pairs, uniformity
from losses.checked import geometry as checked
from losses.oracles import alignment_by_hand, uniformity_by_hand


def unit(rows: int, width: int, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.nn.functional.normalize(torch.randn(rows, width, generator=generator, dtype=torch.float64), dim=1)


# ---- uniformity


@pytest.mark.parametrize("t", [0.5, 2.0, 5.0])
@pytest.mark.parametrize(("rows", "pairs"), [(2, 1), (7, 100), (40, 50)])
def test_uniformity_equals_the_sum_written_out(rows: int, pairs: int, t: float):
    embeddings, drawn = unit(rows, 5), sample_pairs(rows, pairs, seed=3)
    expected = uniformity_by_hand(embeddings.tolist(), [tuple(pair) for pair in drawn.tolist()], t)
    assert checked.uniformity(embeddings, drawn, t).item() == pytest.approx(expected, rel=1e-12)


def test_t_is_two_unless_said_otherwise_as_in_the_paper():
    embeddings, drawn = unit(9, 4), sample_pairs(9, 100, seed=0)
    assert uniformity(embeddings, drawn).item() == uniformity(embeddings, drawn, 2.0).item()


def test_all_on_one_point_is_zero_and_all_opposite_is_minus_four_t():
    assert checked.uniformity(torch.ones(4, 1), sample_pairs(4, 100, seed=0)).item() == 0.0
    opposite = torch.tensor([[1.0, 0.0], [-1.0, 0.0]])
    assert checked.uniformity(opposite, torch.tensor([[0, 1]]), 3.0).item() == pytest.approx(-12.0)


@given(st.integers(0, 10_000), st.integers(2, 8), st.integers(2, 6))
@settings(max_examples=40)
def test_uniformity_lies_between_its_bounds_and_ignores_rotation_and_order(seed: int, rows: int, width: int):
    embeddings, drawn = unit(rows, width, seed), sample_pairs(rows, 1000, seed=0)
    found = checked.uniformity(embeddings, drawn).item()
    assert -8.0 - 1e-9 <= found <= 1e-12
    rotation, _ = torch.linalg.qr(unit(width, width, seed + 1))
    assert checked.uniformity(embeddings @ rotation, drawn).item() == pytest.approx(found, rel=1e-9, abs=1e-9)
    assert checked.uniformity(embeddings.flip(0), drawn).item() == pytest.approx(found, rel=1e-9, abs=1e-9)


def test_a_collapsed_space_is_higher_than_a_spread_one():
    spread = unit(50, 8)
    collapsed = torch.nn.functional.normalize(spread + 10 * spread[0], dim=1)
    drawn = sample_pairs(50, 10_000, seed=0)
    assert uniformity(collapsed, drawn).item() > uniformity(spread, drawn).item() + 1


def test_a_very_large_scale_stays_finite():
    """exp(-2000 * distance) alone is zero in float32, and its logarithm minus infinity."""
    assert uniformity(torch.eye(2), torch.tensor([[0, 1]]), 1000.0).item() == pytest.approx(-2000.0)


def test_bfloat16_vectors_are_compared_in_float32():
    low = unit(20, 16).bfloat16()
    drawn = sample_pairs(20, 1000, seed=0)
    found = uniformity(low, drawn)
    assert found.dtype is torch.float32
    assert found.item() == pytest.approx(uniformity(low.double(), drawn).item(), rel=1e-6)


def test_the_gradient_of_both_is_that_of_finite_differences():
    embeddings, drawn = unit(5, 3).requires_grad_(), sample_pairs(5, 100, seed=0)
    assert torch.autograd.gradcheck(lambda z: checked.uniformity(z, drawn), embeddings)
    assert torch.autograd.gradcheck(lambda z: checked.alignment(z, unit(5, 3, seed=1)), embeddings)


# ---- pairs


def test_where_all_pairs_fit_each_comes_once_and_the_value_is_exact():
    """Equation 4's expectation over i != j, without sampling: the mean over ordered pairs, written out."""
    drawn = sample_pairs(6, 15, seed=0)
    assert sorted(map(tuple, drawn.tolist())) == [(i, j) for i in range(6) for j in range(i + 1, 6)]
    embeddings = unit(6, 4)
    ordered = [(i, j) for i in range(6) for j in range(6) if i != j]
    assert uniformity(embeddings, drawn).item() == pytest.approx(uniformity_by_hand(embeddings.tolist(), ordered, 2.0))


@given(st.integers(2, 50), st.integers(1, 200), st.integers(0, 2**63 - 1))
@settings(max_examples=25)
def test_pairs_are_distinct_indices_in_range_and_never_more_than_asked_for(count: int, pairs: int, seed: int):
    drawn = checked.sample_pairs(count, pairs, seed)
    assert drawn.shape[1] == 2
    assert len(drawn) == min(pairs, count * (count - 1) // 2)
    assert (drawn[:, 0] != drawn[:, 1]).all()
    assert 0 <= int(drawn.min()) <= int(drawn.max()) < count


def test_the_seed_decides_the_pairs():
    assert torch.equal(sample_pairs(1000, 500, seed=1), sample_pairs(1000, 500, seed=1))
    assert not torch.equal(sample_pairs(1000, 500, seed=1), sample_pairs(1000, 500, seed=2))


def test_every_ordered_pair_is_drawn_equally_often():
    """Chi-squared over the 2,450 ordered pairs of 50 texts, 1,200 draws being fewer than the 1,225 pairs: 200 seeds."""
    counts: Counter[tuple[int, int]] = Counter()
    for seed in range(200):
        counts.update(map(tuple, sample_pairs(50, 1200, seed=seed).tolist()))
    expected = 200 * 1200 / (50 * 49)
    chi_squared = sum((counts[i, j] - expected) ** 2 / expected for i in range(50) for j in range(50) if i != j)
    freedom = 50 * 49 - 1
    assert abs(chi_squared - freedom) < 5 * math.sqrt(2 * freedom)


def test_a_sample_comes_near_the_value_of_all_pairs():
    embeddings = unit(300, 8)
    every = uniformity(embeddings, sample_pairs(300, 10**6, seed=0)).item()
    assert uniformity(embeddings, sample_pairs(300, 20_000, seed=0)).item() == pytest.approx(every, abs=0.05)


def test_one_text_makes_no_pair():
    with pytest.raises(ShapeError, match=r"at least two texts\. Got 1 instead"):
        sample_pairs(1, 10, seed=0)


# ---- alignment


@pytest.mark.parametrize("alpha", [1.0, 2.0, 3.0])
def test_alignment_equals_the_mean_written_out(alpha: float):
    first, second = unit(6, 4), unit(6, 4, seed=1)
    expected = alignment_by_hand(first.tolist(), second.tolist(), alpha)
    assert checked.alignment(first, second, alpha).item() == pytest.approx(expected, rel=1e-12)


def test_alignment_is_zero_for_the_same_points_and_four_for_opposite_ones():
    points = unit(6, 4)
    assert alignment(points, points).item() == 0.0
    assert alignment(points, -points).item() == pytest.approx(4.0)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 1.5, 2.0])
def test_a_pair_on_one_point_has_no_slope_and_leaves_the_others_theirs(alpha: float):
    first, second = unit(6, 4), unit(6, 4, seed=1)
    second[2] = first[2]
    expected = alignment_by_hand(first.tolist(), second.tolist(), alpha)
    leaf = first.clone().requires_grad_()
    loss = alignment(leaf, second, alpha)
    loss.backward()
    assert leaf.grad is not None
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    for pair in range(6):
        apart = first[pair] - second[pair]
        slope = alpha / 6 * apart.norm() ** (alpha - 2) * apart if pair != 2 else torch.zeros_like(apart)
        torch.testing.assert_close(leaf.grad[pair], slope)


def test_arrays_have_the_values_of_tensors_and_half_precision_is_widened():
    first, second, drawn = unit(6, 4), unit(6, 4, seed=1), sample_pairs(6, 10, seed=0)
    array = first.numpy()
    array.flags.writeable = False
    assert checked.alignment(array, second.numpy()).item() == alignment(first, second).item()
    assert checked.uniformity(array, drawn).item() == uniformity(first, drawn).item()
    half = alignment(first.bfloat16(), second.bfloat16())
    assert half.dtype is torch.float32
    assert half.item() == alignment(first.bfloat16().float(), second.bfloat16().float()).item()


def test_scales_and_draws_without_meaning_are_refused():
    points = unit(6, 4)
    for value in (0, -1.0, math.nan):
        with pytest.raises(ConfigError, match="alpha must be a number above 0"):
            alignment(points, points, value)
        with pytest.raises(ConfigError, match="t must be a number above 0"):
            uniformity(points, PAIRS, value)
    for seed in (-1, None):
        with pytest.raises(ConfigError, match="seed must be"):
            sample_pairs(6, 3, seed=seed)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="pairs must be"):
        sample_pairs(6, -1, seed=0)


# ---- shapes

ROWS, PAIRS = torch.zeros(3, 2), torch.tensor([[0, 1]])
WRONG = {
    "embeddings as a vector": (torch.zeros(3), PAIRS),
    "pairs of three": (ROWS, torch.tensor([[0, 1, 2]])),
    "pairs as a vector": (ROWS, torch.tensor([0, 1])),
}


@pytest.mark.parametrize("wrong", [*WRONG, "no pair at all"])
def test_uniformity_refuses_a_wrong_shape(wrong: str):
    none_at_all = (ROWS, torch.zeros((0, 2), dtype=torch.long))
    with pytest.raises(ShapeError, match="uniformity needs embeddings"):
        uniformity(*WRONG.get(wrong, none_at_all))


def test_alignment_refuses_two_shapes():
    with pytest.raises(ShapeError, match="two matrices of one shape"):
        alignment(torch.zeros(3, 2), torch.zeros(2, 2))
    with pytest.raises(ShapeError, match="one pair at least"):
        alignment(torch.zeros(0, 2), torch.zeros(0, 2))


@pytest.mark.parametrize("wrong", WRONG)
def test_the_shape_hook_catches_a_wrong_shape(wrong: str):
    with pytest.raises(TypeCheckError):
        checked.uniformity(*WRONG[wrong])
