"""The loss of one batch: every part of equation 6 with its weight, and replacements for equation 3 in table 4."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from labelspace.config import UncertaintyConfig
from labelspace.heads import GaussianHead, sample
from labelspace.losses import self_supervised_contrastive, supervised_contrastive
from labelspace.training.uncertainty.objective import batch_loss
from losses.oracles import cosine_by_hand, rows_by_hand

KINDS = ("label-wise", "supervised", "self-supervised", "none")


def head_of(**options: Any) -> GaussianHead:
    return GaussianHead(8, 3, generator=torch.Generator().manual_seed(0), **options)


def a_batch() -> tuple[Tensor, Tensor, Tensor]:
    """Make seven texts of up to six tokens, eight wide; one label has a single text."""
    states = torch.randn(7, 6, 8, generator=torch.Generator().manual_seed(1))
    mask = torch.arange(6) < torch.tensor([6, 5, 4, 3, 2, 1, 6])[:, None]
    return states, mask, torch.tensor([0, 0, 1, 1, 0, 1, 2])


def equation_6(
    logits: Tensor, vectors: Tensor, mean: Tensor, std: Tensor | None, targets: Tensor, config: UncertaintyConfig
) -> dict[str, float]:
    """Compute the parts of equation 6 in Python floats, with the texts themselves in both sums of equation 3."""
    own, table, t = targets.tolist(), vectors.tolist(), config.contrastive_temperature
    contrastive = 0.0
    for row, one in enumerate(table):
        terms = [math.exp(cosine_by_hand(one, other) / t) for other in table]
        contrastive -= math.log(sum(x for x, y in zip(terms, own, strict=True) if y == own[row]) / sum(terms))
    kl = 0.0
    for mus, sigmas in zip(mean.tolist(), [] if std is None else std.tolist(), strict=std is not None):
        for mu, sigma in zip(mus, sigmas, strict=True):
            kl += 0.5 * (mu**2 + sigma**2 - 1 - math.log(sigma**2))
    return {
        "softmax": rows_by_hand(logits.tolist(), own),
        "contrastive": contrastive / len(own),
        "kl": kl / len(own),
    }


@pytest.mark.parametrize("uncertain", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_the_loss_is_the_sum_of_its_parts_each_with_its_weight(kind: str, uncertain: bool):
    states, mask, targets = a_batch()
    head = head_of(uncertain=uncertain)
    config = UncertaintyConfig(contrastive=kind, contrastive_weight=0.3, kl_weight=0.02, contrastive_temperature=0.7)
    loss, told = batch_loss(head, states, mask, targets, config, torch.Generator().manual_seed(5))

    noise = torch.Generator().manual_seed(5)  # repeats the draws: dropout, then the sampled vectors
    mean, std = head(states, mask, noise=noise)
    vectors = sample(mean, std, noise)
    parts = equation_6(head.logits(vectors), vectors, mean, std, targets, config)
    if kind == "supervised":
        parts["contrastive"] = supervised_contrastive(mean, targets, 0.7).item()
    elif kind == "self-supervised":
        again = sample(*head(states, mask, noise=noise), noise)
        parts["contrastive"] = self_supervised_contrastive(vectors, again, 0.7).item()
    if kind == "none":
        del parts["contrastive"]
        expected = parts["softmax"] + 0.02 * parts["kl"]
    else:
        expected = 0.7 * parts["softmax"] + 0.3 * parts["contrastive"] + 0.02 * parts["kl"]
    assert told == pytest.approx(parts, rel=1e-4)
    assert loss.item() == pytest.approx(expected, rel=1e-4)
    assert (std is None) == (parts["kl"] == 0) == (not uncertain)


@pytest.mark.parametrize(
    ("options", "classifier", "log_variance"),
    [
        ({"contrastive_weight": 1.0, "kl_weight": 0.0}, False, True),
        ({"contrastive_weight": 0.0, "kl_weight": 0.0}, True, True),
        ({"contrastive": "supervised", "contrastive_weight": 1.0, "kl_weight": 0.0}, False, False),
        ({"contrastive": "supervised", "contrastive_weight": 1.0, "kl_weight": 1.0}, False, True),
    ],
    ids=["contrastive alone", "softmax alone", "of the mean alone", "of the mean, and KL"],
)
def test_each_part_has_gradients_for_its_inputs_only(options: dict[str, Any], classifier: bool, log_variance: bool):
    """A part without weight has no gradient, and a part of the means alone has none for the std."""
    states, mask, targets = a_batch()
    head = head_of()
    batch_loss(head, states, mask, targets, UncertaintyConfig(**options), torch.Generator().manual_seed(5))[
        0
    ].backward()
    assert head.log_variance is not None

    def reached(layer: Any) -> bool:
        return layer.weight.grad is not None and bool(layer.weight.grad.abs().max() > 0)

    assert reached(head.mean)
    assert (reached(head.classifier), reached(head.log_variance)) == (classifier, log_variance)


def test_self_supervised_views_of_a_text_differ_by_dropout_and_noise():
    states, mask, targets = a_batch()
    config = UncertaintyConfig(contrastive="self-supervised", contrastive_temperature=0.1)

    def contrastive(**options: Any) -> float:
        noise = torch.Generator().manual_seed(5)
        return batch_loss(head_of(**options), states, mask, targets, config, noise)[1]["contrastive"]

    one_view = contrastive(dropout=0.0, uncertain=False)
    assert contrastive(dropout=0.5, uncertain=False) > one_view
    assert contrastive(dropout=0.0, uncertain=True) > one_view
