"""The training loop: AdamW, linear warm-up, early stopping on the loss, the best state kept."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import final

import torch
from torch import Tensor, nn

from labelspace.config import TrainingConfig
from labelspace.encoders.backbone import Backbone
from labelspace.errors import TrainingError
from labelspace.losses import cosine_scores, infonce_columns, infonce_rows, symmetric_infonce
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.callbacks import Callback
from labelspace.training.gradients import SweepLoss, backpropagate
from labelspace.training.sweep import Sweep
from labelspace.training.trainable import restore, snapshot

OBJECTIVES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "both": symmetric_infonce,
    "rows": infonce_rows,
    "columns": infonce_columns,
}


@final
@dataclass(frozen=True, kw_only=True)
class Curve:
    """How one training run went."""

    learning_rate: float
    """The rate at the end of the warm-up."""

    losses: tuple[float, ...] = field(repr=False)
    """The loss of every step."""

    best_step: int
    """The step after which the kept weights were taken; 0: the weights as they came."""

    stop_reason: str
    """`"patience"`, `"max_steps"` or `"interrupted"`."""

    seconds: float
    """Wall-clock time of the loop."""

    @property
    def steps(self) -> int:
        """Optimizer updates made."""
        return len(self.losses)


@final
class EarlyStopping:
    """Patience on the loss: stop after `patience` looks in a row without a fall of `tolerance`.

    Each look compares the mean loss of the steps since the last one: under dropout a single step's loss
    can be low by luck.

    Example:
        >>> stopping = EarlyStopping(patience=2, tolerance=0.1)
        >>> [stopping.improved(loss) for loss in (1.0, 0.5, 0.45, 0.44)], stopping.exhausted
        ([True, True, False, False], True)
    """

    def __init__(self, patience: int, tolerance: float) -> None:
        self.patience = patience
        self.tolerance = tolerance
        self.best = math.inf
        self.looks_without = 0

    def improved(self, loss: float) -> bool:
        """Take note of a look; True where the loss fell by at least the tolerance."""
        if loss <= self.best - self.tolerance or self.best == math.inf:
            self.best = loss
            self.looks_without = 0
            return True
        self.looks_without += 1
        return False

    @property
    def exhausted(self) -> bool:
        """True when patience is at its end."""
        return self.looks_without >= self.patience


def sweep_loss(objective: str, temperature: float) -> SweepLoss:
    """Return the loss of a sweep as a function of its embeddings (description-only supervision, eq. 1-3)."""
    formula = OBJECTIVES[objective]

    def loss(descriptions: Tensor, verbalizers: Tensor, targets: Tensor) -> Tensor:
        return formula(cosine_scores(descriptions, verbalizers, temperature), targets)

    return loss


def warmup_factor(step: int, warmup_steps: int) -> float:
    """Share of the learning rate at a step, counted from 0: linear up to 1, then 1.

    Example:
        >>> [warmup_factor(step, 4) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]
    """
    return min(1.0, (step + 1) / warmup_steps) if warmup_steps > 0 else 1.0


def run(
    backbone: Backbone,
    weights: list[tuple[str, nn.Parameter]],
    sweep: Sweep,
    config: TrainingConfig,
    *,
    learning_rate: float,
    seed: int,
    max_steps: int | None = None,
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
) -> Curve:
    """Train until the loss stops falling, and leave the best weights in place.

    Args:
        backbone: the encoder; put into training mode for the time of the run.
        weights: what learns, from `trainable_weights`.
        sweep: the texts of one update.
        config: objective, schedule, stopping rule.
        learning_rate: reached at the end of the warm-up.
        seed: of the dropout masks.
        max_steps: in place of the configuration's, for short warm-up runs.
        callbacks: told loss and rate at every step.
        report: told the steps done.

    Raises:
        TrainingError: the loss is not finite; the weights are then those of the best step before.
    """
    total = max_steps or config.max_steps
    warmup_steps = math.ceil(config.warmup * total)
    parameters = [parameter for _, parameter in weights]
    optimizer = torch.optim.AdamW(parameters, lr=learning_rate, weight_decay=config.weight_decay, fused=True)
    loss_of = sweep_loss(config.objective, config.temperature)
    stopping = EarlyStopping(config.patience, config.tolerance)
    losses: list[float] = []
    best, best_step, stop_reason = snapshot(weights), 0, "max_steps"
    started = time.perf_counter()
    try:
        with backbone.training_mode(dropout=config.dropout):
            for step in range(total):
                rate = learning_rate * warmup_factor(step, warmup_steps)
                optimizer.param_groups[0]["lr"] = rate
                optimizer.zero_grad(set_to_none=True)
                step_seed = child_seed(seed, "step", step)
                loss = backpropagate(
                    backbone, sweep, loss_of, seed=step_seed, max_tokens_in_memory=config.max_tokens_in_memory
                )
                _check_finite(loss, step, rate)
                losses.append(loss)
                # The loss belongs to the weights before the update: look first, then move on.
                if len(losses) % config.check_every == 0:
                    if stopping.improved(sum(losses[-config.check_every :]) / config.check_every):
                        best, best_step = snapshot(weights), step
                    if stopping.exhausted:
                        stop_reason = "patience"
                        break
                optimizer.step()
                for callback in callbacks:
                    callback(step + 1, {"loss": loss, "learning_rate": rate})
                report(step + 1, total, f"loss {loss:.4f}")
            # Nobody looks at the last update any more; it counts unless the loss was on its way up.
            latest = losses[-config.check_every :]
            if stop_reason == "max_steps" and sum(latest) / len(latest) <= stopping.best:
                best, best_step = snapshot(weights), len(losses)
    except KeyboardInterrupt:
        # It may have come in the middle of an update, so only the weights of the best look are sound.
        stop_reason = "interrupted"
    finally:
        restore(weights, best)
        backbone.weights_changed()
    return Curve(
        learning_rate=learning_rate,
        losses=tuple(losses),
        best_step=best_step,
        stop_reason=stop_reason,
        seconds=time.perf_counter() - started,
    )


def _check_finite(loss: float, step: int, rate: float) -> None:
    if not math.isfinite(loss):
        raise TrainingError(
            f"the loss is {loss} at step {step + 1} with learning rate {rate:.1e}; "
            f"use a lower one, for example learning_rate={rate / 10:.0e}, or dtype='float32'."
        )
