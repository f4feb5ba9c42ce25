"""The label-wise losses say what their equations say, a text counts for itself, and KL is what sampling finds."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from jaxtyping import TypeCheckError
from torch import Tensor

from labelspace import losses as plain
from labelspace.errors import ConfigError, ShapeError
from losses.checked import losses as checked
from losses.oracles import Table, cosine_by_hand, rows_by_hand

TEMPERATURE = 0.5


# ---- the equations, term by term, in Python floats


def contrastive_by_hand(
    vectors: Table, targets: Sequence[int], t: float, *, itself_above: bool = True, itself_below: bool = True
) -> float:
    """Equation 3; whether j = i counts above and below is what the paper leaves open."""
    total = 0.0
    for i, one in enumerate(vectors):
        above, below = 0.0, 0.0
        for j, other in enumerate(vectors):
            term = math.exp(cosine_by_hand(one, other) / t)
            if targets[j] == targets[i] and (j != i or itself_above):
                above += term
            if j != i or itself_below:
                below += term
        total -= math.log(above / below)
    return total / len(vectors)


def kl_by_hand(mean: Table, std: Table) -> float:
    """Equation 5, in closed form."""
    total = 0.0
    for row, spread in zip(mean, std, strict=True):
        for mu, sigma in zip(row, spread, strict=True):
            total += 0.5 * (mu**2 + sigma**2 - 1 - math.log(sigma**2))
    return total / len(mean)


# ---- batches


BATCHES = {
    "uneven": [0, 0, 0, 1, 3, 3, 3, 3],
    "pairs": [0, 1, 0, 1],
    "each alone": [2, 0, 1],
    "all of one label": [1, 1, 1],
    "one text": [0],
    "two texts": [0, 1],
}
each_batch = pytest.mark.parametrize("which", BATCHES)
LABELS = 4


def drawn(rows: int, columns: int, seed: int) -> Tensor:
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]


def batch(which: str, dim: int = 5) -> Batch:
    """Logits, vectors, targets, means and stds, not tied to one another, so that none can stand for another."""
    targets = torch.tensor(BATCHES[which])
    rows = len(targets)
    return drawn(rows, LABELS, 1), drawn(rows, dim, 2), targets, drawn(rows, dim, 3), drawn(rows, dim, 4).exp()


def on_the_circle(degrees: Sequence[float], dtype: torch.dtype = torch.float64) -> Tensor:
    angles = torch.tensor(degrees, dtype=torch.float64).deg2rad()
    return torch.stack([angles.cos(), angles.sin()], dim=1).to(dtype)


Loss = Callable[..., Tensor]
# Every loss as a function of a whole batch, so that one test can go over all of them.
LOSSES: dict[str, Callable[[Any], Loss]] = {
    "labelwise_contrastive": lambda m: lambda o, z, y, mu, s: m.labelwise_contrastive(z, y, TEMPERATURE),
    "gaussian_kl": lambda m: lambda o, z, y, mu, s: m.gaussian_kl(mu, s),
    "labelwise_loss": lambda m: lambda o, z, y, mu, s: m.labelwise_loss(o, z, y, mu, s, 0.6, 0.1, TEMPERATURE).total,
    "labelwise_loss, certain": lambda m: lambda o, z, y, mu, s: m.labelwise_loss(o, z, y, mu, None).total,
}
each_loss = pytest.mark.parametrize("name", LOSSES)


# ---- values


@each_batch
@pytest.mark.parametrize("t", [0.05, 2.0])
def test_the_contrastive_loss_equals_the_sum_written_out(which: str, t: float):
    _, vectors, targets, _, _ = batch(which)
    expected = contrastive_by_hand(vectors.tolist(), BATCHES[which], t)
    found = checked.labelwise_contrastive(vectors, targets, t).item()
    assert found == pytest.approx(expected, rel=1e-10, abs=1e-12)


def test_the_temperature_is_that_of_the_paper_if_none_is_given():
    logits, vectors, targets, mean, std = batch("uneven")
    expected = contrastive_by_hand(vectors.tolist(), BATCHES["uneven"], 2.0)
    assert checked.labelwise_contrastive(vectors, targets).item() == pytest.approx(expected, rel=1e-10)
    loss = checked.labelwise_loss(logits, vectors, targets, mean, std)
    assert loss.contrastive.item() == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("which", ["uneven", "one text"])
def test_the_divergence_equals_the_sum_written_out(which: str):
    *_, mean, std = batch(which)
    expected = kl_by_hand(mean.tolist(), std.tolist())
    assert checked.gaussian_kl(mean, std).item() == pytest.approx(expected, rel=1e-12)


@each_batch
@pytest.mark.parametrize(("share", "kl_weight", "t"), [(0.9, 0.5, 0.1), (0.25, 3.0, 1.0)])
def test_the_sum_of_equation_6_is_that_of_its_weighted_parts(which: str, share: float, kl_weight: float, t: float):
    logits, vectors, targets, mean, std = batch(which)
    loss = checked.labelwise_loss(logits, vectors, targets, mean, std, share, kl_weight, t)
    parts = [
        rows_by_hand(logits.tolist(), BATCHES[which]),
        contrastive_by_hand(vectors.tolist(), BATCHES[which], t),
        kl_by_hand(mean.tolist(), std.tolist()),
    ]
    assert loss._fields == ("total", "softmax", "contrastive", "kl")
    assert [part.item() for part in loss[1:]] == pytest.approx(parts, rel=1e-10, abs=1e-12)
    expected = (1 - share) * parts[0] + share * parts[1] + kl_weight * parts[2]
    assert loss.total.item() == pytest.approx(expected, rel=1e-10)


def test_without_weights_they_are_those_of_the_papers_first_encoder():
    loss = checked.labelwise_loss(*batch("uneven"))
    assert loss.total.item() == pytest.approx((0.4 * loss.softmax + 0.6 * loss.contrastive + 1e-3 * loss.kl).item())


@pytest.mark.parametrize(
    ("share", "left"), [(0, "softmax"), (1, "contrastive"), (0.0, "softmax"), (1.0, "contrastive")]
)
def test_a_weight_of_0_or_1_leaves_one_of_the_two_parts_that_share_it(share: float, left: str):
    """Whole numbers too, as a configuration file may bring them, which the hook takes for no floats."""
    loss = plain.labelwise_loss(*batch("uneven"), contrastive_weight=share, kl_weight=0)
    assert torch.equal(loss.total, getattr(loss, left))


def test_without_a_std_the_divergence_is_zero_and_the_mean_counts_for_nothing():
    logits, vectors, targets, mean, std = batch("uneven")
    loss = checked.labelwise_loss(logits, vectors, targets, mean, None, kl_weight=7.0)
    assert loss.kl.item() == 0.0
    assert torch.equal(loss.total, checked.labelwise_loss(logits, vectors, targets, mean, std, kl_weight=0.0).total)
    assert torch.equal(loss.total, checked.labelwise_loss(logits, vectors, targets, 9 * mean, None).total)


# ---- j = i


@pytest.mark.parametrize(
    "other_reading",
    [
        {"itself_above": False, "itself_below": True},
        {"itself_above": False, "itself_below": False},
    ],
    ids=["below only", "nowhere"],
)
def test_a_text_counts_for_itself_above_and_below(other_reading: dict[str, bool]):
    """In pairs, where each reading is finite."""
    _, vectors, targets, _, _ = batch("pairs")
    expected = contrastive_by_hand(vectors.tolist(), BATCHES["pairs"], TEMPERATURE)
    other = contrastive_by_hand(vectors.tolist(), BATCHES["pairs"], TEMPERATURE, **other_reading)
    assert abs(other - expected) > 0.1
    assert checked.labelwise_contrastive(vectors, targets, TEMPERATURE).item() == pytest.approx(expected, rel=1e-10)


def test_a_text_alone_with_its_label_has_the_value_of_the_docstring():
    """At a right angle to its two neighbours: log(exp(1/t) + 2) - 1/t; without itself above it would be infinite."""
    alone = math.log(math.exp(1 / TEMPERATURE) + 2) - 1 / TEMPERATURE
    pair = math.log(2 * math.exp(1 / TEMPERATURE) + 1) - math.log(2 * math.exp(1 / TEMPERATURE))
    vectors = on_the_circle([0, 90, 90])
    loss = checked.labelwise_contrastive(vectors, torch.tensor([0, 1, 1]), TEMPERATURE)
    assert loss.item() == pytest.approx((alone + 2 * pair) / 3, rel=1e-12)


def test_a_text_alone_with_its_label_is_pushed_away_from_the_others_and_by_itself_from_nowhere():
    vectors = on_the_circle([0, 30]).requires_grad_()
    checked.labelwise_contrastive(vectors, torch.tensor([0, 1]), TEMPERATURE).backward()
    assert vectors.grad is not None
    assert vectors.grad[0, 1] > 0  # a step down the gradient turns the first clockwise, away from the second
    alone = on_the_circle([40]).requires_grad_()
    checked.labelwise_contrastive(alone, torch.tensor([0]), TEMPERATURE).backward()
    assert alone.grad is not None
    assert torch.equal(alone.grad, torch.zeros(1, 2, dtype=torch.float64))


# ---- bounds


def test_the_contrastive_loss_reaches_the_bounds_of_its_docstring():
    one_direction, lengths = on_the_circle([25] * 6), torch.tensor([[1.0], [2], [3], [0.1], [50], [7]])
    highest = checked.labelwise_contrastive(one_direction * lengths, torch.arange(6), 0.1)
    assert highest.item() == pytest.approx(math.log(6), rel=1e-12)
    lowest = checked.labelwise_contrastive(drawn(6, 3, seed=0), torch.full((6,), 3), 0.1)
    assert lowest.item() == 0.0


@pytest.mark.parametrize("t", [0.01, 0.1, 2.0])
def test_the_contrastive_loss_never_leaves_its_bounds(t: float):
    generator = torch.Generator().manual_seed(0)
    for trial in range(60):
        count = 2 + trial % 9
        vectors = torch.randn(count, 2, generator=generator, dtype=torch.float64)
        targets = torch.randint(0, 4, (count,), generator=generator)
        loss = checked.labelwise_contrastive(vectors, targets, t).item()
        assert -1e-12 < loss < math.log(count) + 1e-12
        if t == 2.0:  # colder, the terms of other labels may be lost in rounding
            assert (loss > 1e-12) == (len(set(targets.tolist())) > 1)


# ---- the divergence


def test_the_divergence_is_what_sampling_finds():
    """E_q[log q - log p] over seeded draws, within four of its standard errors; each is under 1% of the value."""
    draws = 200_000
    for row, (mean, std) in enumerate(
        [([0.5, -1.0, 0.0], [1.0, 0.3, 2.0]), ([0.0, 0.0, 0.0], [0.1, 1.0, 3.0]), ([2.0, 1.0, -3.0], [1.0, 1.0, 1.0])]
    ):
        mu, sigma = torch.tensor([mean], dtype=torch.float64), torch.tensor([std], dtype=torch.float64)
        z = mu + sigma * drawn(draws, 3, seed=row)
        log_q = torch.distributions.Normal(mu, sigma).log_prob(z).sum(dim=1)
        log_p = torch.distributions.Normal(0.0, 1.0).log_prob(z).sum(dim=1)
        terms = log_q - log_p
        error = (terms.std() / math.sqrt(draws)).item()
        found = checked.gaussian_kl(mu, sigma).item()
        assert error < 0.01 * found
        assert abs(terms.mean().item() - found) < 4 * error


def test_the_divergence_is_zero_for_the_standard_normal_and_for_no_other():
    mean, std = torch.zeros(4, 3), torch.ones(4, 3)
    assert checked.gaussian_kl(mean, std).item() == 0.0
    for changed in (-0.1, 0.1):
        for place in [(0, 0), (3, 2)]:
            shift = torch.zeros(4, 3)
            shift[place] = changed
            assert checked.gaussian_kl(mean + shift, std).item() == pytest.approx(0.5 * 0.01 / 4, rel=1e-5)
            # 0.5 * ((1 + c)^2 - 1) - log(1 + c) is near c^2 for a small c
            assert checked.gaussian_kl(mean, std + shift).item() == pytest.approx(0.01 / 4, rel=0.1)


def test_the_gradient_of_the_divergence_is_that_of_its_formula_and_holds_std_away_from_zero():
    mean, std = drawn(4, 3, seed=0).requires_grad_(), drawn(4, 3, seed=1).exp().requires_grad_()
    checked.gaussian_kl(mean, std).backward()
    torch.testing.assert_close(mean.grad, mean.detach() / 4)
    torch.testing.assert_close(std.grad, (std.detach() - 1 / std.detach()) / 4)
    assert checked.gaussian_kl(torch.zeros(1, 1), torch.full((1, 1), 1e-3)) > 6


def test_the_divergence_is_a_sum_over_coordinates_and_a_mean_over_texts():
    mean, std = drawn(1, 3, seed=0), drawn(1, 3, seed=1).exp()
    one = checked.gaussian_kl(mean, std)
    torch.testing.assert_close(checked.gaussian_kl(mean.repeat(1, 5), std.repeat(1, 5)), 5 * one)
    torch.testing.assert_close(checked.gaussian_kl(mean.repeat(5, 1), std.repeat(5, 1)), one)


# ---- symmetries


@each_loss
def test_the_order_of_the_texts_changes_nothing(name: str):
    whole = batch("uneven")
    order = torch.tensor([5, 2, 7, 0, 1, 6, 4, 3])
    loss = LOSSES[name](checked)
    torch.testing.assert_close(loss(*(part[order] for part in whole)), loss(*whole))


@each_loss
def test_the_order_of_the_labels_changes_nothing(name: str):
    logits, vectors, targets, mean, std = batch("uneven")
    order = torch.tensor([2, 0, 3, 1])
    loss = LOSSES[name](checked)
    moved = loss(logits[:, order], vectors, order.argsort()[targets], mean, std)
    torch.testing.assert_close(moved, loss(logits, vectors, targets, mean, std))


def test_the_contrastive_loss_knows_labels_by_being_equal_only():
    _, vectors, targets, _, _ = batch("uneven")
    names = torch.tensor([1000, 7, 0, 3])
    expected = checked.labelwise_contrastive(vectors, targets, TEMPERATURE)
    assert torch.equal(checked.labelwise_contrastive(vectors, names[targets], TEMPERATURE), expected)


def test_the_length_of_a_vector_changes_nothing_in_the_contrastive_part():
    logits, vectors, targets, mean, std = batch("uneven")
    lengths = torch.tensor([0.01, 1, 7, 300, 2, 1e-3, 1e3, 5], dtype=torch.float64)[:, None]
    for loss in (
        lambda z: checked.labelwise_contrastive(z, targets, TEMPERATURE),
        lambda z: checked.labelwise_loss(logits, z, targets, mean, std).total,
    ):
        torch.testing.assert_close(loss(vectors * lengths), loss(vectors))


def test_a_constant_added_to_the_logits_of_a_text_changes_nothing():
    logits, *rest = batch("uneven")
    shifted = logits + drawn(8, 1, seed=9)
    torch.testing.assert_close(
        checked.labelwise_loss(shifted, *rest).total, checked.labelwise_loss(logits, *rest).total
    )


# ---- gradients


@each_loss
@pytest.mark.parametrize("which", ["uneven", "one text"])
def test_the_gradient_is_that_of_finite_differences(name: str, which: str):
    logits, vectors, targets, mean, std = batch(which, dim=3)
    leaves = tuple(leaf.requires_grad_() for leaf in (logits, vectors, mean, std))
    loss = LOSSES[name](checked)
    assert torch.autograd.gradcheck(lambda o, z, mu, s: loss(o, z, targets, mu, s) + 0 * (o.sum() + s.sum()), leaves)


def test_a_step_down_the_gradient_brings_labels_together_and_apart_from_the_others():
    _, vectors, targets, _, _ = batch("uneven")
    own = targets[:, None] == targets
    start = plain.cosine_scores(vectors, vectors)
    for _ in range(200):
        vectors.requires_grad_()
        (slope,) = torch.autograd.grad(plain.labelwise_contrastive(vectors, targets, TEMPERATURE), vectors)
        vectors = vectors.detach() - slope
    end = plain.cosine_scores(vectors, vectors)
    assert end[own].mean() > start[own].mean() + 0.1
    assert end[~own].mean() < start[~own].mean() - 0.3


# ---- precision and extremes


@pytest.mark.parametrize("t", [1e-30, 1e-3, 1e6])
def test_loss_and_gradient_stay_finite_at_extreme_temperatures_in_float32(t: float):
    """Scores up to +-1e30, where exp alone would overflow at 89."""
    vectors = on_the_circle([0, 0, 180, 180, 90, 91, 270, 5], torch.float32)
    targets = torch.tensor(BATCHES["uneven"])
    leaves = (torch.ones(8, LABELS), vectors, vectors.clone(), torch.ones(8, 2))
    logits, z, mean, std = (leaf.requires_grad_() for leaf in leaves)
    loss = plain.labelwise_loss(logits, z, targets, mean, std, temperature=t)
    loss.total.backward()
    assert loss.total.dtype is torch.float32
    assert all(torch.isfinite(part) for part in loss)
    assert all(leaf.grad is not None and torch.isfinite(leaf.grad).all() for leaf in leaves)


def test_the_limits_of_cold_and_hot_are_those_known():
    """Cold: each text sees those who lie on it. Hot: it sees all alike, so its term is log(n / texts of its label)."""
    vectors = on_the_circle([0, 0, 180, 90])
    targets = torch.tensor([0, 1, 0, 1])
    assert plain.labelwise_contrastive(vectors, targets, 1e-3).item() == pytest.approx(math.log(2) / 2, rel=1e-9)
    assert plain.labelwise_contrastive(vectors, targets, 1e9).item() == pytest.approx(math.log(2), rel=1e-6)
    targets = torch.tensor([0, 0, 0, 1])
    expected = (3 * math.log(4 / 3) + math.log(4)) / 4
    assert plain.labelwise_contrastive(vectors, targets, 1e9).item() == pytest.approx(expected, rel=1e-6)


@each_loss
def test_bfloat16_comes_out_as_float32(name: str):
    logits, vectors, targets, mean, std = batch("uneven")
    narrow = [part.bfloat16() for part in (logits, vectors, mean, std)]
    wide = [part.double() for part in narrow]
    found = LOSSES[name](checked)(narrow[0], narrow[1], targets, *narrow[2:])
    assert found.dtype is torch.float32
    expected = LOSSES[name](checked)(wide[0], wide[1], targets, *wide[2:])
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


def test_every_part_of_bfloat16_is_float32():
    logits, vectors, targets, mean, std = batch("uneven")
    narrow = [part.bfloat16() for part in (logits, vectors, mean, std)]
    for spread in (narrow[3], None):
        loss = plain.labelwise_loss(narrow[0], narrow[1], targets, narrow[2], spread)
        assert [part.dtype for part in loss] == [torch.float32] * 4


@each_loss
def test_float32_agrees_with_float64(name: str):
    logits, vectors, targets, mean, std = batch("uneven")
    found = LOSSES[name](checked)(logits.float(), vectors.float(), targets, mean.float(), std.float())
    expected = LOSSES[name](checked)(logits, vectors, targets, mean, std)
    assert (found.dtype, expected.dtype) == (torch.float32, torch.float64)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=1e-5)


# ---- shapes and options

MATRIX, LOGITS, TARGETS = torch.ones(3, 6), torch.ones(3, 4), torch.tensor([0, 1, 1])
WRONG_VECTORS = {
    "one target too many": (MATRIX, torch.tensor([0, 1, 1, 0])),
    "targets as a table": (MATRIX, torch.tensor([[0], [1], [1]])),
    "one vector": (torch.ones(6), TARGETS),
    "a third axis": (torch.ones(3, 6, 1), TARGETS),
    "no text": (torch.ones(0, 6), torch.ones(0, dtype=torch.int64)),
    "no coordinate": (torch.ones(3, 0), TARGETS),
}
WRONG_GAUSSIANS = {
    "two widths": (MATRIX, torch.ones(3, 5)),
    "two counts": (MATRIX, torch.ones(2, 6)),
    "one std for all": (MATRIX, torch.ones(1, 6)),
    "vectors": (torch.ones(6), torch.ones(6)),
    "no text": (torch.ones(0, 6), torch.ones(0, 6)),
    "no coordinate": (torch.ones(3, 0), torch.ones(3, 0)),
}
WRONG_SUMS = {
    "logits of other texts": (torch.ones(2, 4), MATRIX, TARGETS, MATRIX, MATRIX),
    "one row of logits": (torch.ones(4), MATRIX, TARGETS, MATRIX, MATRIX),
    "vectors of other texts": (LOGITS, torch.ones(2, 6), TARGETS, MATRIX, MATRIX),
    "targets of other texts": (LOGITS, MATRIX, torch.tensor([0, 1]), MATRIX, MATRIX),
    "means of other texts": (LOGITS, MATRIX, TARGETS, torch.ones(2, 6), torch.ones(2, 6)),
    "means of another width": (LOGITS, MATRIX, TARGETS, torch.ones(3, 7), torch.ones(3, 7)),
    "means of another width, no std": (LOGITS, MATRIX, TARGETS, torch.ones(3, 7), None),
    "stds of other texts": (LOGITS, MATRIX, TARGETS, MATRIX, torch.ones(2, 6)),
}
CALLS = {
    **{f"labelwise_contrastive, {wrong}": given for wrong, given in WRONG_VECTORS.items()},
    **{f"gaussian_kl, {wrong}": given for wrong, given in WRONG_GAUSSIANS.items()},
    **{f"labelwise_loss, {wrong}": given for wrong, given in WRONG_SUMS.items()},
}


@pytest.mark.parametrize("call", CALLS)
def test_a_wrong_shape_is_refused(call: str):
    with pytest.raises(ShapeError, match=r"Got shapes? \(.*\) (and \(.*\) )?instead"):
        getattr(plain, call.split(",")[0])(*CALLS[call])


def test_the_shape_hook_catches_what_our_own_check_does_not_see():
    with pytest.raises(TypeCheckError, match="targets"):
        checked.labelwise_contrastive(MATRIX, TARGETS.double())
    with pytest.raises(TypeCheckError, match="std"):
        checked.gaussian_kl(MATRIX, MATRIX.long())


@pytest.mark.parametrize("t", [0, -0.1, math.nan, math.inf])
def test_a_temperature_out_of_range_is_refused(t: float):
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        plain.labelwise_contrastive(MATRIX, TARGETS, t)
    with pytest.raises(ConfigError, match="temperature must be a number above 0"):
        plain.labelwise_loss(LOGITS, MATRIX, TARGETS, MATRIX, MATRIX, temperature=t)


@pytest.mark.parametrize(
    ("option", "values", "message"),
    [
        ("contrastive_weight", (-0.1, 1.1, math.nan), "at least 0 and at most 1"),
        ("kl_weight", (-1e-3, math.inf, math.nan), "at least 0"),
    ],
)
def test_a_weight_out_of_range_is_refused(option: str, values: tuple[float, ...], message: str):
    for value in values:
        with pytest.raises(ConfigError, match=f"{option} must be a number {message}"):
            plain.labelwise_loss(LOGITS, MATRIX, TARGETS, MATRIX, MATRIX, **{option: value})
