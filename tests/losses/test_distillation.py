"""Cross-entropy against a teacher's probabilities."""

import pytest
import torch

from labelspace.errors import ShapeError
from labelspace.losses import infonce_rows, soft_cross_entropy


def test_it_is_the_slow_loop():
    torch.manual_seed(0)
    scores, targets, weights = torch.randn(5, 3), torch.randn(5, 3).softmax(dim=1), torch.rand(5)
    total = 0.0
    for row in range(5):
        for label in range(3):
            log_probability = scores[row, label] - scores[row].exp().sum().log()
            total -= weights[row] * targets[row, label] * log_probability
    assert soft_cross_entropy(scores, targets, weights).item() == pytest.approx(
        (total / weights.sum()).item(), rel=1e-5
    )


def test_with_sure_answers_of_equal_weight_it_is_infonce():
    scores, columns = torch.randn(6, 4), torch.tensor([0, 1, 2, 3, 0, 1])
    sure = torch.nn.functional.one_hot(columns, 4).float()
    assert soft_cross_entropy(scores, sure, torch.ones(6)).item() == pytest.approx(infonce_rows(scores, columns).item())


def test_a_text_without_weight_teaches_nothing():
    scores = torch.randn(2, 3, requires_grad=True)
    soft_cross_entropy(scores, torch.full((2, 3), 1 / 3), torch.tensor([1.0, 0.0])).backward()
    assert scores.grad is not None
    assert scores.grad[1].abs().sum() == 0


@pytest.mark.parametrize("shapes", [((2, 3), (2, 2), (2,)), ((2, 3), (2, 3), (3,)), ((6,), (6,), (6,))])
def test_shapes_that_do_not_fit_are_refused(shapes):
    with pytest.raises(ShapeError, match="one shape"):
        soft_cross_entropy(*(torch.ones(shape) for shape in shapes))


def test_arrays_and_float64_targets_have_the_bits_of_float32_ones():
    generator = torch.Generator().manual_seed(0)
    scores, targets = torch.randn(5, 3, generator=generator), torch.randn(5, 3, generator=generator).softmax(dim=1)
    weights = torch.rand(5, generator=generator)
    expected = soft_cross_entropy(scores, targets, weights)
    for given in ((targets.numpy(), weights.numpy()), (targets.double(), weights.double())):
        assert torch.equal(soft_cross_entropy(scores, *given), expected)
    half = soft_cross_entropy(scores.bfloat16(), targets, weights)
    assert torch.equal(half, soft_cross_entropy(scores.bfloat16().float(), targets, weights))


def test_a_label_that_is_masked_counts_for_nothing_where_the_teacher_gives_it_nothing():
    scores = torch.tensor([[1.0, 2.0, -torch.inf]], requires_grad=True)
    loss = soft_cross_entropy(scores, torch.tensor([[0.25, 0.75, 0.0]]), torch.ones(1))
    without = soft_cross_entropy(scores[:, :2], torch.tensor([[0.25, 0.75]]), torch.ones(1))
    assert loss.item() == pytest.approx(without.item())
    (gradient,) = torch.autograd.grad(loss, scores)
    torch.testing.assert_close(gradient, torch.autograd.grad(without, scores)[0])
