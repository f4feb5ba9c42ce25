"""REZE's phase 2 (Algorithm 1): mixed batches, the main loss and the regularizer, AdamW, a cosine schedule.

A run is decided by its seed alone: the order of pairs and every dropout mask are named child seeds of it and of the
step, so a run that goes on from a checkpoint makes the same bits as one that was never interrupted.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor, nn

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs, mixed_batches
from labelspace.encoders import Encoder
from labelspace.errors import TrainingError
from labelspace.losses import pair_infonce, reze_loss
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import (
    Checkpoint,
    looks_of,
    optimizer_tensors,
    restore_optimizer,
    write_checkpoint,
)
from labelspace.training.features import Features, backpropagate
from labelspace.training.prefinetune.offline import Targets
from labelspace.training.rows import cut, tokenize
from labelspace.training.schedule import cosine_factor
from labelspace.training.sweep import CHUNK_TOKENS
from labelspace.training.trainable import restore, snapshot

LOOKS = 20
"""Times that a run writes down its mean loss, and a checkpoint where it has a place for one."""


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """How the losses stood at one point of the way."""

    step: int
    """Updates made."""

    loss: float
    """Mean of the updates since the last look (eq. 10), with dropout."""

    main: float
    """Of it the main loss (eq. 9)."""

    regularizer: float | None
    """The regularizer (eq. 8), before its weight; None where that is 0."""

    learning_rate: float
    """Of the last update."""


@final
@dataclass(frozen=True, kw_only=True)
class Training:
    """How a training went; the encoder then holds the weights of the last look."""

    total_steps: int
    """Updates that the schedule covers."""

    kept_step: int
    """The update after which the weights were taken; less than `total_steps` where it was interrupted."""

    stop_reason: str
    """`"epochs"` (all updates made) or `"interrupted"`."""

    looks: tuple[Look, ...] = field(repr=False)
    """The loss on the way."""

    seconds: float
    """Wall-clock time of the updates, over all resumptions."""

    @property
    def finished(self) -> bool:
        """True where there is nothing to resume."""
        return self.stop_reason == "epochs"


def batch_gradient(
    encoder: Encoder,
    anchors: Sequence[str],
    positives: Sequence[str],
    target: Tensor | None,
    config: PrefinetuneConfig,
    *,
    seed: int,
) -> tuple[float, float, float | None]:
    """Add the gradient of one batch to the encoder's weights, exactly and in bounded memory.

    Args:
        encoder: inside its `training_mode`; the only thing that a gradient reaches.
        anchors: texts.
        positives: the positive of each.
        target: [pair relation], debiased relations of the reference; None: the main loss alone.
        config: temperature, weight of the regularizer, tokens in memory.
        seed: of the dropout masks, the same for every `max_tokens_in_memory` of 2,048 (the size of a chunk) or more.

    Returns:
        The loss, and of it the main loss and the regularizer before its weight. Where the loss is not finite no
        gradient is computed.
    """
    rows = tokenize(encoder, [*anchors, *positives])
    chunks = cut(encoder.backbone, rows, min(CHUNK_TOKENS, config.max_tokens_in_memory))
    parts: list[Tensor | None] = []

    def loss(features: Features) -> Tensor:
        first, second = features.values[: len(anchors)], features.values[len(anchors) :]
        if target is None:
            main = pair_infonce(first, second, config.temperature)
            parts[:] = [main.detach(), None]
            return main
        found = reze_loss(first, second, target.to(first.device), config.regularizer_weight, config.temperature)
        parts[:] = [found.main.detach(), found.regularizer.detach()]
        return found.total

    value = backpropagate(
        encoder.backbone, chunks, loss, words=False, seed=seed, max_tokens_in_memory=config.max_tokens_in_memory
    )
    main, regularizer = (None if part is None else part.item() for part in parts)
    return value, value if main is None else main, regularizer


@final
class TrainingRun:
    """One training under way.

    Args:
        encoder: its weights are changed.
        weights: what learns, from `trainable_weights`.
        pairs: what is learnt from.
        targets: debiased relations; None: plain pre-finetuning.
        config: loss and schedule.
        seed: of the order and of the dropout masks.
        folder: where every look writes its checkpoint; None: nowhere.
        run: what run this is, for the checkpoint.
    """

    def __init__(
        self,
        encoder: Encoder,
        weights: list[tuple[str, nn.Parameter]],
        pairs: Pairs,
        targets: Targets | None,
        config: PrefinetuneConfig,
        *,
        seed: int,
        folder: Path | None = None,
        run: dict[str, Any] | None = None,
    ) -> None:
        self._encoder, self._weights, self._pairs, self._targets = encoder, weights, pairs, targets
        self._config, self._seed, self._folder, self._run = config, seed, folder, run or {}
        self._per_epoch = math.ceil(len(pairs) / config.batch_size)
        self._total = self._per_epoch * config.epochs
        self._every = max(1, round(self._total / LOOKS))
        self._optimizer = torch.optim.AdamW(
            [weight for _, weight in weights],
            lr=config.learning_rate,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self._looks: list[Look] = []
        self._sound, self._seconds = snapshot(weights), 0.0
        self._epoch, self._batches = -1, list[list[int]]()

    def go_on(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was written."""
        restore(self._weights, checkpoint.weights)
        restore_optimizer(self._optimizer, [name for name, _ in self._weights], checkpoint.optimizer)
        self._looks = looks_of(Look, checkpoint)
        self._sound, self._seconds = snapshot(self._weights), checkpoint.seconds

    def train(self, callbacks: Sequence[Callback] = (), report: Progress = silent) -> Training:
        """Make all updates that are left, or fewer where it is interrupted.

        Args:
            callbacks: told the losses and the rate at every step.
            report: told the updates made.

        Raises:
            TrainingError: the loss is not finite; the weights are then those of the last look.
            OutputError: a checkpoint cannot be written.
        """
        first = self._looks[-1].step if self._looks else 0
        before, started = self._seconds, time.perf_counter()
        stop_reason, losses = "epochs", []

        def seconds() -> float:
            return before + time.perf_counter() - started

        try:
            with self._encoder.backbone.training_mode(dropout=self._config.dropout):
                for step in range(first, self._total):
                    losses.append(self._update(step))
                    self._tell(step, losses[-1], callbacks)
                    report(step + 1, self._total, f"loss {losses[-1][0]:.4f}")
                    if (step + 1) % self._every == 0 or step + 1 == self._total:
                        self._look(step, losses, seconds())
                        losses = []
        except KeyboardInterrupt:
            # It may have come in the middle of an update, so only the weights of the last look are sound.
            stop_reason = "interrupted"
        finally:
            restore(self._weights, self._sound)
            self._optimizer.zero_grad(set_to_none=True)
            self._encoder.backbone.weights_changed()
        kept = self._looks[-1].step if self._looks else 0
        return Training(
            total_steps=self._total,
            kept_step=kept,
            stop_reason="epochs" if kept == self._total else stop_reason,
            looks=tuple(self._looks),
            seconds=seconds(),
        )

    def _rate(self, step: int) -> float:
        return self._config.learning_rate * cosine_factor(step, self._total, self._config.warmup)

    def _update(self, step: int) -> tuple[float, float, float | None]:
        epoch, place = divmod(step, self._per_epoch)
        if epoch != self._epoch:
            batches = mixed_batches(self._pairs, self._config.batch_size, seed=self._seed, epoch=epoch)
            self._epoch, self._batches = epoch, list(batches)
        rows = self._batches[place]
        self._optimizer.param_groups[0]["lr"] = self._rate(step)
        self._optimizer.zero_grad(set_to_none=True)
        found = batch_gradient(
            self._encoder,
            [self._pairs.anchors[row] for row in rows],
            [self._pairs.positives[row] for row in rows],
            None if self._targets is None else self._targets.take(rows),
            self._config,
            seed=child_seed(self._seed, "prefinetune", step),
        )
        if not math.isfinite(found[0]):
            raise TrainingError(self._diverged(f"the loss is {found[0]}", step))
        self._optimizer.step()
        return found

    def _diverged(self, what: str, step: int) -> str:
        rate = self._config.learning_rate / 10
        return f"{what} at step {step + 1}; use a lower rate, for example learning_rate={rate:.0e}, or dtype='float32'."

    def _tell(self, step: int, found: tuple[float, float, float | None], callbacks: Sequence[Callback]) -> None:
        loss, main, regularizer = found
        values = {"loss": loss, "main": main, "learning_rate": self._rate(step)}
        for callback in callbacks:
            callback(step + 1, values if regularizer is None else {**values, "regularizer": regularizer})

    def _look(self, step: int, losses: list[tuple[float, float, float | None]], seconds: float) -> None:
        loss, main = (sum(each[part] or 0.0 for each in losses) / len(losses) for part in (0, 1))
        regularizers = [each[2] for each in losses if each[2] is not None]
        look = Look(
            step=step + 1,
            loss=loss,
            main=main,
            regularizer=sum(regularizers) / len(losses) if regularizers else None,
            learning_rate=self._rate(step),
        )
        sound = snapshot(self._weights)
        if not all(torch.isfinite(values).all() for values in sound.values()):
            raise TrainingError(self._diverged("a weight is no longer finite", step))
        self._sound, self._looks = sound, [*self._looks, look]
        if self._folder is None:
            return
        names = [name for name, _ in self._weights]
        write_checkpoint(
            self._folder,
            Checkpoint(
                run={**self._run, "total_steps": self._total},
                looks=[asdict(each) for each in self._looks],
                best_step=look.step,
                seconds=seconds,
                weights=sound,
                best=sound,
                optimizer=optimizer_tensors(self._optimizer, names),
            ),
        )
