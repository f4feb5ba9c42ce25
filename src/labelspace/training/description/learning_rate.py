"""Learning-rate selection without labels: the rate after which the pool is spread most uniformly.

Too high a rate collapses the space; too low a rate does nothing. The uniformity of unlabelled documents
(description-only supervision, eq. 4, t = 2) reveals both.
"""

import math
from dataclasses import dataclass
from typing import Any, final

import torch
from torch import Tensor, nn

from labelspace.config import SearchConfig, TrainingConfig
from labelspace.corpus import Pool
from labelspace.encoders import Encoder
from labelspace.errors import TrainingError
from labelspace.geometry import sample_pairs, uniformity
from labelspace.notebook import Plain
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.description.objective import run
from labelspace.training.description.sweep import Sweep
from labelspace.training.trainable import restore, snapshot

# Candidates that the second round of successive halving runs to the end.
KEPT = 3


@final
@dataclass(frozen=True, kw_only=True)
class Trial:
    """One short warm-up run of the search."""

    learning_rate: float
    """The candidate learning rate."""

    steps: int
    """Updates before uniformity was measured."""

    uniformity: float
    """Uniformity of the pool after these updates; infinite if the loss was not finite."""

    loss: float
    """Loss of the last update."""


@final
@dataclass(frozen=True, kw_only=True)
class RateChoice(Plain):
    """A learning rate, and why it was chosen."""

    learning_rate: float
    """The rate to train with."""

    reason: str
    """`"given"`, `"base"` (published for the encoder), `"fallback"` (none is published), `"no pool"` or
    `"uniformity"`."""

    trials: tuple[Trial, ...] = ()
    """Every measurement of the search, in order."""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "RateChoice":
        """Build the choice from a result of `to_dict`."""
        return cls(**{**values, "trials": tuple(Trial(**trial) for trial in values["trials"])})


@final
class PoolUniformity:
    """Uniformity of a fixed sample of the pool, tokenized once, on the same pairs each time."""

    def __init__(self, encoder: Encoder, pool: Pool, search: SearchConfig, seed: int) -> None:
        self._encoder = encoder
        # The pool is already a random sample, so its first documents are one too.
        self._token_ids = encoder.tokenize(pool.texts[: search.documents])
        self._pairs = sample_pairs(len(self._token_ids), search.pairs, child_seed(seed, "uniformity pairs"))

    def __call__(self) -> float:
        vectors: Tensor = torch.from_numpy(self._encoder.embed(self._token_ids))
        return uniformity(vectors, self._pairs).item()


def choose_learning_rate(
    encoder: Encoder,
    weights: list[tuple[str, nn.Parameter]],
    sweep: Sweep,
    config: TrainingConfig,
    search: SearchConfig,
    measure: PoolUniformity,
    *,
    seed: int,
    report: Progress = silent,
) -> tuple[float, tuple[Trial, ...]]:
    """Train briefly with every candidate; return the rate with the lowest uniformity, and all trials.

    Args:
        encoder: trained briefly for each candidate, then restored.
        weights: trainable weights.
        sweep: the texts of one update.
        config: the schedule; the short runs warm up over the same share of their own length.
        search: candidates, strategy and sizes.
        measure: uniformity of the pool with the encoder's current weights.
        seed: seed of the run; each candidate gets the same dropout masks.
        report: called with the number of steps done.

    Raises:
        TrainingError: the loss was not finite with any candidate.
    """
    start = snapshot(weights)
    trials: list[Trial] = []

    def measured(rate: float, steps: int) -> float:
        try:
            training = run(encoder.backbone, weights, sweep, config, learning_rate=rate, seed=seed, max_steps=steps)
        except TrainingError:
            found, loss = math.inf, math.nan
        else:
            if training.stop_reason == "interrupted":
                raise KeyboardInterrupt
            found, loss = measure(), training.losses[-1]
        finally:
            restore(weights, start)
            encoder.backbone.weights_changed()
        trials.append(Trial(learning_rate=rate, steps=steps, uniformity=found, loss=loss))
        report(sum(trial.steps for trial in trials), None, f"rate {rate:.0e}: uniformity {found:.3f}")
        return found

    rates = sorted(search.rates)
    if search.strategy == "halving" and len(rates) > KEPT:
        short = max(1, search.steps // 4)
        scores = [measured(rate, short) for rate in rates]
        # Longer runs have lower best rates: a rate that is too low for the short run may be right, but one that is too
        # high stays too high.
        best = max(scores.index(min(scores)), KEPT - 1)
        rates = rates[best - KEPT + 1 : best + 1]
    scores = [measured(rate, search.steps) for rate in rates]
    if min(scores) == math.inf:
        raise TrainingError(
            f"the loss was not finite at any learning rate from {min(search.rates):.0e} to {max(search.rates):.0e}; "
            "give a lower learning_rate, or dtype='float32'."
        )
    return rates[scores.index(min(scores))], tuple(trials)
