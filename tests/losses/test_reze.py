"""REZE's losses say what equations 8 to 10 say, and the target is a target: nothing flows back into it."""

import math
from collections.abc import Callable

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

from labelspace.errors import ConfigError, ShapeError
from labelspace.losses import cosine_scores, infonce_rows
from losses.checked import losses as checked
from losses.oracles import Table, cosine_by_hand, pairs_by_hand

TEMPERATURE = 0.05


# ---- the equations, term by term, in Python floats


def relation_by_hand(current: Table, target: Table) -> float:
    """REZE, equation 8."""
    total = 0.0
    for one, other in zip(current, target, strict=True):
        total += 1 - cosine_by_hand(one, other)
    return total / len(current)


def vectors(rows: int, dim: int, seed: int) -> Tensor:
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def batch(rows: int, dim: int = 4) -> tuple[Tensor, Tensor, Tensor]:
    return vectors(rows, dim, seed=1), vectors(rows, dim, seed=2), vectors(rows, 2 * dim, seed=3)


# ---- values


@pytest.mark.parametrize("rows", [1, 2, 7])
def test_the_regularizer_equals_the_sum_written_out(rows: int):
    current, target = vectors(rows, 6, seed=1), vectors(rows, 6, seed=2)
    expected = relation_by_hand(current.tolist(), target.tolist())
    assert checked.relation_cosine(current, target).item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 7])
@pytest.mark.parametrize("t", [TEMPERATURE, 0.5])
def test_the_main_loss_equals_the_sum_written_out(rows: int, t: float):
    anchors, positives, _ = batch(rows)
    expected = pairs_by_hand(anchors.tolist(), positives.tolist(), t)
    assert checked.pair_infonce(anchors, positives, t).item() == pytest.approx(expected, rel=1e-10, abs=1e-12)


@pytest.mark.parametrize("weight", [0.0, 0.5, 1.0, 10.0])
def test_the_objective_is_the_main_loss_and_the_weighted_regularizer_of_anchor_beside_positive(weight: float):
    anchors, positives, target = batch(5)
    loss = checked.reze_loss(anchors, positives, target, weight, 0.2)
    relations = [a + p for a, p in zip(anchors.tolist(), positives.tolist(), strict=True)]
    main = pairs_by_hand(anchors.tolist(), positives.tolist(), 0.2)
    regularizer = relation_by_hand(relations, target.tolist())
    assert loss.main.item() == pytest.approx(main, rel=1e-10)
    assert loss.regularizer.item() == pytest.approx(regularizer, rel=1e-10)
    assert loss.total.item() == pytest.approx(main + weight * regularizer, rel=1e-10)
    assert loss._fields == ("total", "main", "regularizer")


def test_weight_and_temperature_are_the_papers_unless_said_otherwise():
    anchors, positives, target = batch(5)
    assert checked.reze_loss(anchors, positives, target) == checked.reze_loss(anchors, positives, target, 1.0, 0.05)
    assert checked.pair_infonce(anchors, positives) == checked.pair_infonce(anchors, positives, 0.05)


def test_the_regularizer_is_0_on_the_target_1_at_a_right_angle_and_2_opposite():
    relations = vectors(3, 4, seed=1)
    turned = relations[:, [1, 0, 3, 2]] * torch.tensor([1.0, -1.0, 1.0, -1.0])
    assert checked.relation_cosine(3 * relations, relations).item() == pytest.approx(0.0, abs=1e-12)
    assert checked.relation_cosine(turned, relations).item() == pytest.approx(1.0)
    assert checked.relation_cosine(-relations, relations).item() == pytest.approx(2.0)


def test_equal_scores_give_the_log_of_the_batch_size_and_one_pair_gives_nothing():
    assert checked.pair_infonce(torch.ones(6, 3), torch.ones(6, 3)).item() == pytest.approx(math.log(6), rel=1e-6)
    assert checked.pair_infonce(vectors(1, 3, seed=0), vectors(1, 3, seed=1)).item() == 0.0


def test_the_main_loss_is_infonce_on_the_diagonal():
    anchors, positives, _ = batch(5)
    rows = infonce_rows(cosine_scores(anchors, positives, TEMPERATURE), torch.arange(5))
    assert torch.equal(checked.pair_infonce(anchors, positives), rows)


def test_two_pairs_with_one_positive_are_negatives_of_each_other():
    anchors = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    assert checked.pair_infonce(anchors, anchors).item() == pytest.approx(math.log(2))


# ---- symmetries


def test_the_order_of_the_pairs_changes_nothing():
    anchors, positives, target = batch(6)
    order = torch.tensor([5, 2, 0, 1, 4, 3])
    moved = checked.reze_loss(anchors[order], positives[order], target[order])
    torch.testing.assert_close(tuple(moved), tuple(checked.reze_loss(anchors, positives, target)))


def test_a_common_length_of_anchor_and_positive_changes_nothing_and_an_own_length_turns_the_relation():
    anchors, positives, target = batch(4)
    lengths = torch.tensor([0.01, 1, 7, 300], dtype=torch.float64)[:, None]
    plain = checked.reze_loss(anchors, positives, target)
    torch.testing.assert_close(
        tuple(checked.reze_loss(anchors * lengths, positives * lengths, target / lengths)), tuple(plain)
    )
    longer = checked.reze_loss(10 * anchors, positives, target)
    assert longer.main.item() == pytest.approx(plain.main.item())
    assert longer.regularizer.item() != pytest.approx(plain.regularizer.item(), rel=1e-3)


# ---- gradients


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_the_gradient_is_that_of_finite_differences(rows: int):
    anchors, positives, target = batch(rows)
    leaves = (anchors.requires_grad_(), positives.requires_grad_())
    assert torch.autograd.gradcheck(lambda a, p: checked.reze_loss(a, p, target, 0.7, 0.2).total, leaves)
    assert torch.autograd.gradcheck(lambda a, p: checked.pair_infonce(a, p), leaves)
    relations = vectors(rows, 6, seed=4).requires_grad_()
    assert torch.autograd.gradcheck(lambda r: checked.relation_cosine(r, vectors(rows, 6, seed=5)), relations)


def test_no_gradient_flows_into_the_target():
    anchors, positives, target = batch(4)
    target.requires_grad_()
    checked.reze_loss(anchors.requires_grad_(), positives, target).total.backward()
    assert target.grad is None
    assert anchors.grad is not None


def test_steps_down_the_gradient_learn_the_pairs_and_stay_the_nearer_to_the_targets_the_more_these_weigh():
    ends = []
    for weight in (0.0, 1.0, 10.0):
        anchors, positives, target = batch(6)
        start = checked.reze_loss(anchors, positives, target)
        for _ in range(40):
            leaves = (anchors.requires_grad_(), positives.requires_grad_())
            gradients = torch.autograd.grad(checked.reze_loss(*leaves, target, weight, 0.2).total, leaves)
            anchors, positives = (v.detach() - 0.1 * g for v, g in zip(leaves, gradients, strict=True))
        end = checked.reze_loss(anchors, positives, target)
        assert end.main < start.main / 2
        ends.append(end.regularizer.item())
    assert ends[0] > ends[1] > ends[2]
    assert ends[2] < start.regularizer / 2


# ---- precision and extremes


def test_bfloat16_vectors_are_compared_in_float32():
    anchors, positives, target = (x.bfloat16() for x in batch(6, dim=16))
    loss = checked.reze_loss(anchors, positives, target)
    wide = checked.reze_loss(anchors.double(), positives.double(), target.double())
    assert {part.dtype for part in loss} == {torch.float32}
    assert [part.item() for part in loss] == pytest.approx([part.item() for part in wide], rel=1e-5)


def test_loss_and_gradient_stay_finite_at_the_coldest_temperature_in_float32():
    """Scores of +-1000, where exp alone would overflow at 89."""
    anchors = torch.tensor([[1.0, 0.0], [-1.0, 0.0]]).requires_grad_()
    positives = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    loss = checked.pair_infonce(anchors, positives, 1e-3)
    loss.backward()
    assert loss.item() == pytest.approx(2000.0, rel=1e-6)
    assert anchors.grad is not None
    assert anchors.grad.isfinite().all()


# ---- bad input

SHAPES: dict[str, Callable[[], object]] = {
    "two widths": lambda: losses_of(torch.zeros(2, 3), torch.zeros(2, 4), torch.zeros(2, 6)),
    "two counts": lambda: losses_of(torch.zeros(2, 3), torch.zeros(3, 3), torch.zeros(2, 6)),
    "no pair": lambda: losses_of(torch.zeros(0, 3), torch.zeros(0, 3), torch.zeros(0, 6)),
    "a vector": lambda: losses_of(torch.zeros(3), torch.zeros(3), torch.zeros(6)),
    "targets as wide as an embedding": lambda: losses_of(torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3)),
}


def losses_of(anchors: Tensor, positives: Tensor, target: Tensor) -> object:
    from labelspace.losses import reze_loss

    return reze_loss(anchors, positives, target)


@pytest.mark.parametrize("wrong", SHAPES)
def test_a_wrong_shape_is_refused(wrong: str):
    with pytest.raises(ShapeError, match="two matrices of one shape"):
        SHAPES[wrong]()


def test_the_shape_hook_catches_a_wrong_shape():
    with pytest.raises(TypeCheckError):
        checked.relation_cosine(torch.zeros(2, 3), torch.zeros(2, 4))


@pytest.mark.parametrize("temperature", [0.0, -1.0, math.nan])
def test_a_temperature_that_makes_no_sense_is_refused(temperature: float):
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        checked.pair_infonce(torch.eye(2), torch.eye(2), temperature)


def test_a_negative_weight_is_refused():
    with pytest.raises(ConfigError, match="regularizer_weight must be a number at least 0"):
        checked.reze_loss(torch.eye(2), torch.eye(2), torch.ones(2, 4), -1.0)
