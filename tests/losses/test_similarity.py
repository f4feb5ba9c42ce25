"""Cosine scores: the dot product of unit vectors over the temperature, wide enough to keep its digits."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from jaxtyping import TypeCheckError

from labelspace.errors import ShapeError
from labelspace.losses import cosine_scores
from losses.checked import losses as checked
from losses.oracles import cosine_by_hand

coordinate = st.floats(-100, 100, width=32).filter(lambda value: value == 0 or abs(value) > 1e-3)


@st.composite
def two_matrices(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]]]:
    width = draw(st.integers(1, 5))
    row = st.lists(coordinate, min_size=width, max_size=width).filter(any)
    return draw(st.lists(row, min_size=1, max_size=4)), draw(st.lists(row, min_size=1, max_size=4))


@given(two_matrices(), st.sampled_from([1.0, 0.07, 0.001]))
@settings(max_examples=60)
def test_every_score_equals_the_cosine_written_out(
    matrices: tuple[list[list[float]], list[list[float]]], temperature: float
):
    anchors, others = matrices
    found = checked.cosine_scores(
        torch.tensor(anchors, dtype=torch.float64), torch.tensor(others, dtype=torch.float64), temperature
    )
    for i, anchor in enumerate(anchors):
        for j, other in enumerate(others):
            expected = cosine_by_hand(anchor, other) / temperature
            assert found[i, j].item() == pytest.approx(expected, rel=1e-9, abs=1e-9 / temperature)


def test_length_does_not_matter_and_scores_stay_within_one_over_the_temperature():
    anchors, others = torch.tensor([[3.0, 4.0], [-1e-3, 0.0]]), torch.tensor([[0.6, 0.8], [100.0, 0.0]])
    found = cosine_scores(anchors, others, temperature=0.07)
    torch.testing.assert_close(found, cosine_scores(10 * anchors, 0.1 * others, temperature=0.07))
    torch.testing.assert_close(found[0, 0].item(), 1 / 0.07, rtol=1e-6, atol=0)
    torch.testing.assert_close(found[1, 1].item(), -1 / 0.07, rtol=1e-6, atol=0)


def test_bfloat16_embeddings_are_multiplied_in_float32():
    """Two vectors whose cosines differ by less than bfloat16 can tell apart from 1."""
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(4, 256, generator=generator).bfloat16()
    others = torch.randn(3, 256, generator=generator).bfloat16()
    found = cosine_scores(anchors, others, temperature=0.07)
    expected = cosine_scores(anchors.double(), others.double(), temperature=0.07)
    assert found.dtype is torch.float32
    assert expected.dtype is torch.float64
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)
    in_bfloat16 = torch.nn.functional.normalize(anchors, dim=-1) @ torch.nn.functional.normalize(others, dim=-1).T
    assert (in_bfloat16.double() / 0.07 - expected).abs().max() > 1e-3  # so the test can fail


def test_the_gradient_is_that_of_finite_differences():
    generator = torch.Generator().manual_seed(0)
    anchors = torch.randn(3, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    others = torch.randn(2, 4, generator=generator, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda a, b: checked.cosine_scores(a, b, 0.5), (anchors, others))


def test_a_vector_of_zeros_scores_zero_and_not_nan():
    found = cosine_scores(torch.zeros(1, 3), torch.eye(3), temperature=0.07)
    assert found.tolist() == [[0.0, 0.0, 0.0]]


def test_the_coldest_temperature_stays_finite():
    found = cosine_scores(torch.eye(2), torch.eye(2), temperature=1e-30)
    assert torch.isfinite(found).all()
    assert math.isclose(found[0, 0].item(), 1e30, rel_tol=1e-6)


WRONG = {
    "two widths": (torch.zeros(3, 2), torch.zeros(3, 4)),
    "a vector": (torch.zeros(3), torch.zeros(3, 4)),
    "a third axis": (torch.zeros(3, 4), torch.zeros(3, 4, 1)),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_a_wrong_shape_is_refused(wrong: str):
    with pytest.raises(ShapeError, match="two matrices of one width"):
        cosine_scores(*WRONG[wrong])


@pytest.mark.parametrize("wrong", WRONG)
def test_the_shape_hook_catches_a_wrong_shape_too(wrong: str):
    with pytest.raises(TypeCheckError):
        checked.cosine_scores(*WRONG[wrong])
