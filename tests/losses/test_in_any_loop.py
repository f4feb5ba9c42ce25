"""What every loss keeps in a training loop that is not ours: precision in autocast, targets, a learnt temperature."""

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from labelspace import losses
from labelspace.errors import ConfigError, InputError, ShapeError
from losses import oracles

TARGETS = torch.tensor([0, 0, 0, 1, 2, 2, 2, 2])


def vectors(count: int, seed: int) -> Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


Loss = Callable[[Tensor, Tensor, Tensor, float | Tensor], Tensor]

# They take 8 texts, 3 labels, the targets and the temperature.
WITH_TARGETS: dict[str, Loss] = {
    "infonce_rows": lambda x, y, own, t: losses.infonce_rows(losses.cosine_scores(x, y, t), own),
    "infonce_columns": lambda x, y, own, t: losses.infonce_columns(losses.cosine_scores(x, y, t), own),
    "symmetric_infonce": lambda x, y, own, t: losses.symmetric_infonce(losses.cosine_scores(x, y, t), own),
    "infonce_in_blocks": losses.infonce_in_blocks,
    "instance_centred": lambda x, y, own, t: losses.instance_centred(x, y, own, t, heads=2),
    "label_centred": losses.label_centred,
    "lacon_loss": lambda x, y, own, t: losses.lacon_loss(x, y, own, t).total,
    "supervised_contrastive": lambda x, y, own, t: losses.supervised_contrastive(x, own, t),
    "labelwise_contrastive": lambda x, y, own, t: losses.labelwise_contrastive(x, own, t),
    "labelwise_loss": lambda x, y, own, t: (
        losses.labelwise_loss(losses.cosine_scores(x, y, t), x, own, x, x.exp(), temperature=t).total
    ),
}
ALL: dict[str, Loss] = {
    **WITH_TARGETS,
    "cosine_scores": lambda x, y, own, t: losses.cosine_scores(x, y, t).square().sum(),
    "label_regularizer": lambda x, y, own, t: losses.label_regularizer(x),
    "self_supervised_contrastive": lambda x, y, own, t: losses.self_supervised_contrastive(x, x.flip(1), t),
    "pair_infonce": lambda x, y, own, t: losses.pair_infonce(x, x.flip(1), t),
    "reze_loss": lambda x, y, own, t: losses.reze_loss(x, x.flip(1), torch.ones(8, 12), temperature=t).total,
}
WITH_TEMPERATURE = sorted({*ALL} - {"label_regularizer"})


def found(name: str, *, narrow: bool) -> list[Tensor]:
    leaves = [vectors(8, 0).requires_grad_(), vectors(3, 1).requires_grad_()]
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        loss = ALL[name](*leaves, TARGETS, 0.05)
    gradients = torch.autograd.grad(loss, leaves, allow_unused=True)
    return [loss.detach(), *(gradient for gradient in gradients if gradient is not None)]


@pytest.mark.parametrize("name", ALL)
def test_autocast_changes_no_bit_of_value_or_gradient(name: str):
    for inside, outside in zip(found(name, narrow=True), found(name, narrow=False), strict=True):
        assert inside.dtype is torch.float32
        assert torch.equal(inside, outside)


@pytest.mark.parametrize("name", ["label_regularizer", "infonce_in_blocks"])
def test_autocast_around_the_backward_pass_changes_no_bit_of_a_second_derivative_s_gradient(name: str):
    def gradient(*, narrow: bool) -> Tensor:
        leaf = vectors(8, 0).requires_grad_()
        with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
            loss = ALL[name](leaf, vectors(3, 1), TARGETS, 0.5)
            return torch.autograd.grad(loss, leaf, create_graph=True)[0]

    assert torch.equal(gradient(narrow=True), gradient(narrow=False))


@pytest.mark.parametrize("name", WITH_TEMPERATURE)
def test_a_temperature_can_be_learnt(name: str):
    log = torch.tensor(0.5, dtype=torch.float64).log().requires_grad_()
    leaves = vectors(8, 0).double(), vectors(3, 1).double()
    loss = ALL[name](*leaves, TARGETS, log.exp())
    assert loss.item() == pytest.approx(ALL[name](*leaves, TARGETS, 0.5).item(), rel=1e-12)
    (slope,) = torch.autograd.grad(loss, log)
    above, below = (ALL[name](*leaves, TARGETS, 0.5 * math.exp(step)).item() for step in (1e-5, -1e-5))
    assert slope.item() == pytest.approx((above - below) / 2e-5, rel=1e-5)


@pytest.mark.parametrize("name", WITH_TEMPERATURE)
@pytest.mark.parametrize("temperature", [0, -1.0, math.nan])
def test_a_number_that_is_no_temperature_is_refused(name: str, temperature: float):
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        ALL[name](vectors(8, 0), vectors(3, 1), TARGETS, temperature)


def test_a_temperature_for_each_label_is_refused():
    with pytest.raises(ConfigError, match=r"temperature must be a tensor without axes\. Got shape \(3,\) instead"):
        losses.cosine_scores(vectors(8, 0), vectors(3, 1), torch.ones(3))


# ---- targets


@pytest.mark.parametrize("name", WITH_TARGETS)
@pytest.mark.parametrize("kind", [torch.int32, torch.int16, torch.int8, torch.uint8])
def test_targets_may_be_integers_of_any_width(name: str, kind: torch.dtype):
    given = vectors(8, 0), vectors(3, 1)
    expected = WITH_TARGETS[name](*given, TARGETS, 0.5)
    assert torch.equal(WITH_TARGETS[name](*given, TARGETS.to(kind), 0.5), expected)


@pytest.mark.parametrize("name", WITH_TARGETS)
def test_targets_that_are_no_tensor_of_integers_are_refused(name: str):
    for targets in (TARGETS.float(), TARGETS.bool(), TARGETS.numpy()):
        with pytest.raises(InputError, match=rf"targets must be a torch tensor of whole.*of {targets.dtype} instead"):
            WITH_TARGETS[name](vectors(8, 0), vectors(3, 1), targets, 0.5)  # pyright: ignore[reportArgumentType]


# ---- in blocks


@pytest.mark.parametrize("objective", ["rows", "columns", "both"])
@pytest.mark.parametrize("learnt", [(True, True), (True, False), (False, True)])
def test_blocks_have_the_second_derivative_of_the_whole_table(
    objective: str, learnt: tuple[bool, bool], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setitem(losses.infonce_in_blocks.__globals__, "BLOCK_SCORES", 9)
    whole = {"rows": "infonce_rows", "columns": "infonce_columns", "both": "symmetric_infonce"}[objective]

    def second(loss: Callable[[Tensor, Tensor], Tensor]) -> list[Tensor]:
        leaves = [vectors(8, 0).double().requires_grad_(learnt[0]), vectors(3, 1).double().requires_grad_(learnt[1])]
        own = [leaf for leaf in leaves if leaf.requires_grad]
        # Through another step, so that the embeddings are no leaves.
        first = torch.autograd.grad(loss(2 * leaves[0], leaves[1].sinh()), own, create_graph=True)
        return [*first, *torch.autograd.grad(torch.stack([part.square().sum() for part in first]).sum(), own)]

    blocks = second(lambda x, y: losses.infonce_in_blocks(x, y, TARGETS, 0.5, objective))
    table = second(lambda x, y: getattr(losses, whole)(losses.cosine_scores(x, y, 0.5), TARGETS))
    torch.testing.assert_close(blocks, table)


def test_blocks_have_the_gradient_of_labels_that_are_means_of_the_texts():
    texts = vectors(8, 0).double().requires_grad_()
    means = torch.stack([texts[label == TARGETS].mean(dim=0) for label in range(3)])
    table = losses.symmetric_infonce(losses.cosine_scores(texts, means, 0.5), TARGETS)
    blocks = losses.infonce_in_blocks(texts, means, TARGETS, 0.5)
    for again in (True, False):  # whether a second derivative may follow
        one, other = (
            torch.autograd.grad(loss, texts, create_graph=again, retain_graph=True) for loss in (blocks, table)
        )
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(
    ("texts", "labels", "targets"),
    [
        ((8, 6), (3, 5), 8),
        ((8,), (3, 6), 8),
        ((8, 6, 1), (3, 6), 8),
        ((8, 6), (3, 6), 1),
        ((8, 6), (3, 6), 9),
        ((8, 6), (0, 6), 8),
        ((0, 6), (3, 6), 0),
    ],
)
def test_blocks_refuse_a_wrong_shape(texts: tuple[int, ...], labels: tuple[int, ...], targets: int):
    with pytest.raises(ShapeError, match="Got shape"):
        losses.infonce_in_blocks(torch.ones(texts), torch.ones(labels), torch.zeros(targets).long(), 0.5)


def test_blocks_refuse_an_objective_that_does_not_exist():
    with pytest.raises(ConfigError, match="objective must be one of 'rows', 'columns', 'both'"):
        losses.infonce_in_blocks(vectors(8, 0), vectors(3, 1), TARGETS, 0.5, "row")


def test_the_labels_of_the_batch_alone_have_the_columns_written_out():
    """The cure that `infonce_columns` names for a label without a description."""
    scores, targets = losses.cosine_scores(vectors(8, 0), vectors(5, 1), 0.5).double(), 2 * (TARGETS % 2)
    present, columns = targets.unique(return_inverse=True)
    loss = losses.infonce_columns(scores[:, present], columns)
    table = [[row[0], row[2]] for row in scores.tolist()]
    assert loss.item() == pytest.approx(oracles.columns_by_hand(table, (TARGETS % 2).tolist()))
    assert losses.infonce_columns(scores, targets).item() == math.inf


def test_logits_that_are_no_matrix_are_called_logits():
    with pytest.raises(ShapeError, match="logits must be a matrix"):
        losses.labelwise_loss(torch.ones(8), vectors(8, 0), TARGETS, vectors(8, 0), None)
