"""REZE's phase 2 (Algorithm 1) as an objective: mixed batches, main loss and regularizer, a cosine schedule."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

from torch import Tensor, nn

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs, mixed_batches
from labelspace.encoders import Encoder
from labelspace.losses import pair_infonce, reze_loss
from labelspace.seeds import child_seed
from labelspace.training.batches import Epochs
from labelspace.training.features import Features
from labelspace.training.gradients import backpropagate
from labelspace.training.objective import Group, Plan
from labelspace.training.prefinetune.offline import Targets
from labelspace.training.rows import cut, tokenize
from labelspace.training.schedule import cosine_factor

LOOKS = 20
"""Number of looks per run."""


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """Mean losses at one point of the run."""

    step: int
    """Number of updates made."""

    loss: float
    """Mean loss of the updates since the last look (eq. 10), with dropout."""

    main: float
    """The main loss in it (eq. 9)."""

    regularizer: float | None
    """The regularizer (eq. 8), before its weight; None if the weight is 0."""

    learning_rate: float
    """Learning rate of the last update."""


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
        encoder: inside its `training_mode`; the only module with gradients.
        anchors: anchor texts.
        positives: the positive of each anchor.
        target: [pair relation], debiased reference relations; None: the main loss alone.
        config: temperature, weight of the regularizer, tokens in memory.
        seed: seed of the dropout masks; the same for every `max_tokens_in_memory` of at least 2,048, a chunk's size.

    Returns:
        The loss, its main part, and the regularizer before its weight. If the loss is not finite, no gradient is
        computed.
    """
    rows = tokenize(encoder, [*anchors, *positives])
    chunks = cut(encoder.backbone, rows, config.max_tokens_in_memory)
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
class PrefinetuneObjective:
    """Pairs of several sources in mixed batches. Keeps the weights of the last look.

    Args:
        encoder: its weights are changed.
        weights: trainable weights, from `trainable_weights`.
        pairs: training pairs.
        targets: debiased relations; None: plain pre-finetuning.
        config: loss and schedule.
        seed: seed of the order and of the dropout masks.
    """

    def __init__(
        self,
        encoder: Encoder,
        weights: Sequence[tuple[str, nn.Parameter]],
        pairs: Pairs,
        targets: Targets | None,
        config: PrefinetuneConfig,
        *,
        seed: int,
    ) -> None:
        self._encoder, self._pairs, self._targets, self._config, self._seed = encoder, pairs, targets, config, seed
        per_epoch = math.ceil(len(pairs) / config.batch_size)
        self._epochs = Epochs(partial(mixed_batches, pairs, config.batch_size, seed=seed), per_epoch)
        total = per_epoch * config.epochs
        self.plan = Plan(
            groups=[Group("learning_rate", weights, config.learning_rate)],
            total=total,
            factor=partial(cosine_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            epochs=config.epochs,
            training=partial(encoder.backbone.training_mode, encoder_dropout=config.encoder_dropout),
            look_every=max(1, round(total / LOOKS)),
            look=Look,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of a batch."""
        rows = self._epochs.batch(step)
        loss, main, regularizer = batch_gradient(
            self._encoder,
            [self._pairs.anchors[row] for row in rows],
            [self._pairs.positives[row] for row in rows],
            None if self._targets is None else self._targets.take(rows),
            self._config,
            seed=child_seed(self._seed, "prefinetune", step),
        )
        return loss, {"main": main} if regularizer is None else {"main": main, "regularizer": regularizer}

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Look:
        """Return the means since the last look."""
        regularizers = [each["regularizer"] for each in parts if "regularizer" in each]
        return Look(
            step=made,
            loss=sum(losses[-len(parts) :]) / len(parts),
            main=sum(each["main"] for each in parts) / len(parts),
            regularizer=sum(regularizers) / len(parts) if regularizers else None,
            learning_rate=self._config.learning_rate * self.plan.factor(made - 1),
        )
