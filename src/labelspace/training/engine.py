"""The training loop: it knows steps, looks and checkpoints, but no method.

    an update       gradients, one step of AdamW at the scheduled rates, callbacks, progress
    a look          an evaluation, or a mean of recent losses; better weights are kept, then the stopping rule applies
    a checkpoint    about twenty per run, at looks, so that a kill loses little and writing costs little
    the end         however training ends, the kept weights are restored

What is trained, on which data and at which rates, comes from an `Objective`; each kind of training has one. An update
depends only on the weights, the run's seed and its number (and on a generator whose state is in the checkpoint), so a
resumed run is bit-identical to one that was never interrupted.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor

from labelspace.errors import ConfigError, warn
from labelspace.notebook import Plain
from labelspace.progress import Progress, silent
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Checkpoint, Place, clear, looks_of, optimizer_tensors, restore_optimizer
from labelspace.training.objective import Group, Objective, check_finite, diverged
from labelspace.training.trainable import restore, snapshot

CHECKPOINTS = 20
"""Approximate number of checkpoints per run; each is several times the size of the weights."""

FINISHED = ("epochs", "max_steps", "patience")


@final
@dataclass(frozen=True, kw_only=True)
class Training(Plain):
    """Record of a training run; the trained modules hold the kept weights."""

    losses: tuple[float, ...] = field(repr=False)
    """The loss of every update, and the loss that used up the patience, after which no update was made."""

    looks: tuple[Any, ...] = field(repr=False)
    """The looks, each with its `step`; empty if nothing is measured."""

    learning_rate: float
    """Peak learning rate; the encoder's, if head and encoder have their own."""

    head_learning_rate: float | None
    """Peak learning rate of the head; None if it has no rate of its own."""

    steps: int
    """Optimizer updates made."""

    best_step: int
    """Number of updates that the kept weights had received: the last look's if looks are not compared, and 0 for the
    initial weights."""

    stop_reason: str
    """`"epochs"` or `"max_steps"` (all updates made), `"patience"`, `"max_seconds"` or `"interrupted"`."""

    total_steps: int
    """Number of updates that the schedule covers."""

    epochs: int | None
    """Planned epochs; None if there are no rows."""

    seconds: float
    """Wall-clock time of the loop, over all resumptions."""

    @property
    def finished(self) -> bool:
        """Whether there is nothing left to resume."""
        return self.stop_reason in FINISHED


@final
class EarlyStopping:
    """Stops after `patience` looks in a row without improvement.

    Example:
        >>> stopping = EarlyStopping(2, lambda loss, best: best is None or loss <= best - 0.1)
        >>> [stopping.improved(loss) for loss in (1.0, 0.5, 0.45, 0.44)], stopping.exhausted
        ([True, True, False, False], True)
    """

    def __init__(self, patience: int | None, better: Callable[[Any, Any], bool] | None) -> None:
        self._patience, self._better = patience, better
        self.best: Any = None
        self.looks_without = 0

    def improved(self, look: Any) -> bool:
        """Record a look; return whether it is the best so far."""
        if self._better is None or self._better(look, self.best):
            self.best, self.looks_without = look, 0
            return True
        self.looks_without += 1
        return False

    @property
    def exhausted(self) -> bool:
        """Whether patience has run out."""
        return self._patience is not None and self.looks_without >= self._patience


def train(
    objective: Objective,
    *,
    checkpoint: Place | None = None,
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
    max_seconds: float | None = None,
) -> Training:
    """Train an objective until it stops, and leave the kept weights in place.

    Args:
        objective: what is trained, and on which data.
        checkpoint: where to write checkpoints, and whether to resume from the existing one; None: no checkpoints.
        callbacks: called with the loss, the rate and the objective's own parts at every step, and with every look.
        report: called with the number of updates made.
        max_seconds: stop at the first look after this many seconds; None: no limit.

    Returns:
        Losses, looks and the reason for stopping. Ctrl-C is a reason, not an error.

    Raises:
        TrainingError: a loss or a weight is not finite; the weights kept before are restored.
        ConfigError: torch's inference mode is on, or a weight was made in it.
        ConfigError, ModelFolderError: the checkpoint belongs to another run, or is damaged.
        OutputError: a checkpoint cannot be written.
    """
    weights = [weight for group in objective.plan.groups for _, weight in group.weights]
    if torch.is_inference_mode_enabled() or any(weight.is_inference() for weight in weights):
        raise ConfigError(
            "torch.inference_mode() keeps no gradients; load the encoder and fit outside it, or use torch.no_grad()."
        )
    # Notebooks turn gradients off for all cells.
    with torch.enable_grad():
        return _Run(objective, checkpoint, callbacks, report, max_seconds).train()


def clear_finished(folder: str | Path | None, training: Training | None) -> None:
    """Clear the checkpoint folder of a fit with nothing left to resume, so that the next fit starts afresh."""
    if folder is not None and training is not None and training.finished:
        clear(folder)


INTERRUPTED = "training was interrupted"
"""How the warning of an interrupted fit begins, for who throws its result away."""


def warn_of_interrupt(curve: Training, *, checkpoint: object, otherwise: str = "") -> None:
    """Warn which weights an interrupted run keeps; to be called by what a classifier's `fit` calls.

    Args:
        curve: the run.
        checkpoint: its folder for unfinished training, or None.
        otherwise: how to go on without that folder.
    """
    told = f"{INTERRUPTED} at step {curve.steps}; the weights of step {curve.best_step} are kept and can be saved."
    on = f"The same fit again goes on from {checkpoint}." if checkpoint is not None else otherwise
    warn(f"{told} {on}".rstrip())


def make_optimizer(groups: Sequence[Group], weight_decay: float) -> torch.optim.Optimizer:
    """Create AdamW with one parameter group per group of weights."""
    each = [{"params": [weight for _, weight in group.weights], "lr": group.rate} for group in groups]
    return torch.optim.AdamW(each, weight_decay=weight_decay, fused=True)


@final
class _Run:
    """State of a run in progress."""

    def __init__(
        self,
        objective: Objective,
        checkpoint: Place | None,
        callbacks: Sequence[Callback],
        report: Progress,
        max_seconds: float | None,
    ) -> None:
        self.objective, self.plan, self.place = objective, objective.plan, checkpoint
        self.callbacks, self.report, self.max_seconds = callbacks, report, max_seconds
        self.weights = [named for group in self.plan.groups for named in group.weights]
        self.optimizer = make_optimizer(self.plan.groups, self.plan.weight_decay)
        self.stopping = EarlyStopping(self.plan.patience, self.plan.better)
        self.losses: list[float] = []
        self.parts: list[dict[str, float]] = []
        self.looks: list[Any] = []
        self.made = self.written = 0
        self.kept, self.kept_step, self.looked_at = snapshot(self.weights), 0, 0
        self.before, self.started = 0.0, time.perf_counter()

    def train(self) -> Training:
        reason = "interrupted"
        try:
            if self.place is not None and self.place.resume:
                self._go_on(self.place.read())
            reason = self._updates()
        except KeyboardInterrupt:
            # The interrupt may have hit in the middle of an update, so only the kept weights are sound.
            if self.looked_at == self.plan.total:
                reason = self.plan.end
        finally:
            restore(self.weights, self.kept)
            self.optimizer.zero_grad(set_to_none=True)
        rates = {group.option: group.rate for group in self.plan.groups}
        return Training(
            losses=tuple(self.losses),
            looks=tuple(self.looks),
            learning_rate=rates["learning_rate"],
            head_learning_rate=rates.get("head_learning_rate"),
            steps=self.made,
            best_step=self.kept_step,
            stop_reason=reason,
            total_steps=self.plan.total,
            epochs=self.plan.epochs,
            seconds=self._seconds(),
        )

    def _updates(self) -> str:
        """Make the remaining updates, and return the reason for stopping."""
        if not self.made and self.plan.looks_first:
            self._look()
        while self.made < self.plan.total:
            if self.stopping.exhausted:
                return self._ended("patience")
            with self.plan.training():
                self._stretch()
            if not self.plan.judges_loss or self.made == self.plan.total:
                self._look()
            # Write the first look at once, so that Ctrl-C after it leaves something to resume.
            self._write(at_least=max(1, round(self.plan.total / CHECKPOINTS)) if self.written else 1)
            over = self.max_seconds is not None and time.perf_counter() - self.started > self.max_seconds
            if over and self.made < self.plan.total and not self.stopping.exhausted:
                return self._ended("max_seconds")
        return self._ended(self.plan.end)

    def _stretch(self) -> None:
        """Make updates up to the next look."""
        while True:
            factor = self.plan.factor(self.made)
            for group, own in zip(self.optimizer.param_groups, self.plan.groups, strict=True):
                group["lr"] = own.rate * factor
            self.optimizer.zero_grad(set_to_none=True)
            loss, parts = self.objective.update(self.made)
            check_finite(loss, "the loss", self.made + 1, self.plan)
            self.losses.append(loss)
            self.parts.append(parts)
            if self.plan.judges_loss and (self.made + 1) % self.plan.look_every == 0:
                self._look()
                if self.stopping.exhausted:
                    return
            self.optimizer.step()
            self.made += 1
            self._tell({"loss": loss, "learning_rate": self.plan.groups[0].rate * factor, **parts})
            self.report(self.made, self.plan.total, self._note())
            if self.made == self.plan.total or self.made % self.plan.look_every == 0:
                return

    def _look(self) -> None:
        look = self.objective.look(self.made, self.losses, self.parts)
        self.parts = []
        if look is None or self.stopping.improved(look):
            self.kept, self.kept_step = self._sound_weights(), self.made
        self.looked_at = self.made
        if look is not None:
            self.looks.append(look)
            self._tell(self._measured())

    def _sound_weights(self) -> dict[str, Tensor]:
        copied = snapshot(self.weights)
        # What is not finite stays so in a sum, which is far faster than a look at each weight.
        if self.made and not all(values.sum(dtype=torch.float32).isfinite() for values in copied.values()):
            raise diverged("a weight is no longer finite", self.made, self.plan)
        return copied

    def _tell(self, values: dict[str, float]) -> None:
        for callback in self.callbacks if values else ():
            callback(self.made, values)

    def _measured(self) -> dict[str, float]:
        """Return what callbacks receive about the last look."""
        return self.plan.told(self.looks[-1]) if self.plan.told is not None and self.looks else {}

    def _note(self) -> str:
        told = [f"{name} {value:.4f}" for name, value in self._measured().items()]
        best = [f"best {self.kept_step}"] if told else []
        return ", ".join([f"loss {self.losses[-1]:.4f}", *told, *best])

    def _ended(self, reason: str) -> str:
        self._write(at_least=1)
        return reason

    def _write(self, *, at_least: int) -> None:
        """Write a checkpoint if at least this many updates were made since the last one."""
        if self.place is None or self.made - self.written < at_least:
            return
        state = Checkpoint(
            step=self.made,
            looks=[asdict(look) for look in self.looks],
            losses=self.losses,
            best_step=self.kept_step,
            seconds=self._seconds(),
            weights={name: weight.data for name, weight in self.weights},
            best=self.kept,
            optimizer=optimizer_tensors(self.optimizer, [name for name, _ in self.weights]),
            noise=self.plan.noise.get_state() if self.plan.noise is not None else None,
        )
        self.place.write(state, total_steps=self.plan.total)
        self.written = self.made

    def _go_on(self, state: Checkpoint) -> None:
        """Restore the state of a checkpoint."""
        restore(self.weights, state.weights)
        restore_optimizer(self.optimizer, [name for name, _ in self.weights], state.optimizer)
        self.kept = {name: state.best[name].to(weight.device, copy=True) for name, weight in self.weights}
        self.kept_step = state.best_step
        self.looks = looks_of(self.plan.look, state)
        for look in self.looks:
            self.stopping.improved(look)
        self.losses, self.before = list(state.losses), state.seconds
        self.made = self.written = self.looked_at = state.step
        if self.plan.noise is not None and state.noise is not None:
            self.plan.noise.set_state(state.noise)

    def _seconds(self) -> float:
        return self.before + time.perf_counter() - self.started
