"""What the paper leaves open about the deviation: its form, how KL is summed, what ranks documents, 512 tokens.

The deviation comes from the log-variance, as in the head, or through softplus. KL is a sum over the coordinates, as
in equation 5, or their mean. Documents are ranked by their mean deviation or by their mean variance.
"""

from collections.abc import Iterator
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from pieces import Piece
from torch import Tensor, nn
from torch.nn import functional as F

from labelspace.encoders.batching import plan_batches
from labelspace.evaluate import difficulty, rejection_curve
from labelspace.heads import GaussianHead
from uncertainty.experiments import answered, scored, trained_head
from uncertainty.settings import Settings
from uncertainty.states import both, opened, states_of
from uncertainty.variants import GRID_SETS, Options, full_config

FORMS = ("exp", "softplus")
KL = {"sum": (1e-4, 1e-3, 1e-2), "mean": (1e-3, 1e-1, 1.0)}
"""Weights by how KL is summed over the coordinates; the paper's weight is 0.001, and equation 5 does not say how."""

PAPER_TOKENS = 512
LONG_SETS = ("imdb",)
"""Sets that are run where texts are cut at the paper's 512 tokens."""

LONG_KL = {"sum": (1e-3,), "mean": (1e-3,)}


class Softplus(nn.Module):
    """In place of a head's layer for the log-variance: the deviation is softplus of that layer.

    Args:
        layer: the layer.
    """

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, features: Tensor) -> Tensor:
        """Return the log-variance of the deviation, [text dim]."""
        return 2 * F.softplus(self.layer(features)).log()


def with_softplus(head: GaussianHead) -> None:
    """Change the form of a new head's deviation."""
    assert head.log_variance is not None
    head.add_module("log_variance", Softplus(head.log_variance))


def deviation_pieces(settings: Settings) -> Iterator[Piece]:
    """Every form, sum and weight of KL, one seed after the other."""
    long = settings.max_tokens == PAPER_TOKENS
    sets = ("toxic_conversations",) if settings.small else LONG_SETS if long else GRID_SETS
    weights = [(over, weight) for over, values in (LONG_KL if long else KL).items() for weight in values]
    for seed, name, (over, weight), form in product(settings.seeds, sets, weights, FORMS):
        facts = {"form": form, "kl": over, "kl_weight": weight}
        variant = f"{form}-{over}-{weight:g}"
        yield Piece(
            part="deviation",
            name=f"{settings.short}_{name}_{variant}{'_512' * long}_seed{seed}",
            facts=settings.facts(name, variant=variant, seed=seed, **facts, config=full_config({})),
            work=partial(_run, settings, name, seed, **facts),
            seeds=(seed,),
            data=f"shared/data/mteb/{name}",
        )


def _run(settings: Settings, name: str, seed: int, form: str, kl: str, kl_weight: float) -> dict[str, Any]:
    rows, test = both(settings, name)
    dim = opened(settings).backbone.hidden_size
    options: Options = {"kl_weight": kl_weight if kl == "sum" else kl_weight / dim}
    change = with_softplus if form == "softplus" else None
    head, facts = trained_head(settings, name, options, seed, change=change)
    logits, deviations = outputs(settings, head, name)
    answers = answered(logits, deviations.mean(axis=1), test, sorted(set(rows.truth)))
    variance = np.square(deviations).mean(axis=1, dtype=np.float64)
    found = scored(logits, answers, test, sorted(set(rows.truth)))
    found["area"]["variance"] = rejection_curve(variance, answers.right).area
    levels = {band.level: band.documents for band in difficulty(answers.uncertainty, answers.right)}
    spread = np.quantile(answers.uncertainty, [0.05, 0.5, 0.95]).tolist()
    return {**found, "levels": levels, "std": spread, "last_loss": facts["last_loss"], "rows": len(rows)}


def outputs(settings: Settings, head: GaussianHead, name: str) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Return the logits of the scored rows, [text label], and their deviations, [text dim]."""
    encoder, states = opened(settings), states_of(settings, name)[1]
    lengths = states.lengths.tolist()
    logits = np.empty((len(lengths), head.classifier.out_features), dtype=np.float32)
    deviations = np.empty((len(lengths), head.dim), dtype=np.float32)
    for places in plan_batches(lengths, encoder.config.token_budget):
        values, mask = states.take(places)
        with torch.inference_mode():
            mean, std = head(values.to(encoder.backbone.device, encoder.backbone.dtype), mask)
            assert std is not None
            logits[places] = head.logits(mean).float().cpu().numpy()
            deviations[places] = std.float().cpu().numpy()
    return logits, deviations
