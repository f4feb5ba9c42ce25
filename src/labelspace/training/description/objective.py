"""Description-only training as an objective: one sweep per update, linear warm-up, early stopping on the loss."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, final

from torch import nn

from labelspace.config import TrainingConfig
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place
from labelspace.training.description.sweep import Sweep, sweep_gradient, sweep_loss
from labelspace.training.engine import Training, train
from labelspace.training.objective import Group, Plan
from labelspace.training.schedule import warmup_factor

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """The mean loss of the latest updates: under dropout a single loss can be low by chance."""

    step: int
    """Number of updates that the judged weights had received."""

    loss: float
    """Mean loss of the last `check_every` updates, or of all if there are fewer."""


@final
class DescriptionObjective:
    """All descriptions against all verbalizers, at every update.

    Args:
        backbone: the encoder; in training mode during the run.
        weights: trainable weights, from `trainable_weights`.
        sweep: the texts of one update.
        config: objective, schedule, stopping rule.
        learning_rate: peak rate, at the end of the warm-up.
        seed: seed of the dropout masks.
        max_steps: replaces the configuration's value, for short search runs.
    """

    def __init__(
        self,
        backbone: "Backbone",
        weights: Sequence[tuple[str, nn.Parameter]],
        sweep: Sweep,
        config: TrainingConfig,
        *,
        learning_rate: float,
        seed: int,
        max_steps: int | None = None,
    ) -> None:
        self._backbone, self._sweep, self._config, self._seed = backbone, sweep, config, seed
        self._loss = sweep_loss(config.objective, config.temperature)
        total = max_steps or config.max_steps
        self.plan = Plan(
            groups=[Group("learning_rate", weights, learning_rate)],
            total=total,
            factor=partial(warmup_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            end="max_steps",
            training=partial(backbone.training_mode, encoder_dropout=config.encoder_dropout),
            look_every=config.check_every,
            judges_loss=True,
            look=Look,
            better=partial(_better, total, config.tolerance),
            patience=config.patience,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of one sweep."""
        loss = sweep_gradient(
            self._backbone,
            self._sweep,
            self._loss,
            seed=child_seed(self._seed, "step", step),
            max_tokens_in_memory=self._config.max_tokens_in_memory,
        )
        return loss, {}

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Look:  # noqa: ARG002
        """Return the mean of the latest losses."""
        latest = losses[-self._config.check_every :]
        return Look(step=made, loss=sum(latest) / len(latest))


def _better(total: int, tolerance: float, look: Look, best: Look | None) -> bool:
    """Return whether the loss fell by `tolerance`; at the last update, whether it did not rise."""
    return best is None or look.loss <= best.loss - (0 if look.step == total else tolerance)


def run(
    backbone: "Backbone",
    weights: Sequence[tuple[str, nn.Parameter]],
    sweep: Sweep,
    config: TrainingConfig,
    *,
    learning_rate: float,
    seed: int,
    max_steps: int | None = None,
    checkpoint: Place | None = None,
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
) -> Training:
    """Train until the loss stops falling, and leave the best weights in place; see `DescriptionObjective`, `train`."""
    objective = DescriptionObjective(
        backbone, weights, sweep, config, learning_rate=learning_rate, seed=seed, max_steps=max_steps
    )
    try:
        return train(objective, checkpoint=checkpoint, callbacks=callbacks, report=report)
    finally:
        backbone.weights_changed()
