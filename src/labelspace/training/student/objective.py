"""A student as an objective: documents against a teacher's probabilities, descriptions against their labels."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from labelspace.config import StudentConfig
from labelspace.encoders import Encoder
from labelspace.losses import cosine_scores, infonce_rows, soft_cross_entropy
from labelspace.seeds import child_seed
from labelspace.training.batches import Epochs, epoch_batches, sorting_window
from labelspace.training.features import Features
from labelspace.training.gradients import backpropagate
from labelspace.training.objective import Group, Plan
from labelspace.training.rows import Labelled, Rows, cut
from labelspace.training.schedule import rate_factor

# Maximum number of batches within which texts are sorted by length.
WINDOW = 50


@final
@dataclass(frozen=True)
class SoftLabelled:
    """Documents with a teacher's answers."""

    rows: Rows
    """The documents."""

    probabilities: NDArray[np.float32]
    """[text label], the teacher's."""

    weights: NDArray[np.float32]
    """[text], how much each document counts."""


@final
class StudentObjective:
    """An encoder on a teacher's probabilities. The labels' anchors stay where they were, and so hold the space.

    Args:
        encoder: its weights are changed.
        weights: the encoder's trainable weights, from `trainable_weights`.
        anchors: [label dim], what documents and descriptions are compared with.
        documents: documents with the teacher's answers.
        descriptions: descriptions with their labels.
        config: schedule and weights of the losses.
        learning_rate: peak learning rate.
        seed: seed of order, draws and dropout masks.
    """

    def __init__(
        self,
        encoder: Encoder,
        weights: Sequence[tuple[str, nn.Parameter]],
        anchors: Tensor,
        documents: SoftLabelled,
        descriptions: Labelled,
        config: StudentConfig,
        *,
        learning_rate: float,
        seed: int,
    ) -> None:
        self._encoder, self._anchors, self._documents = encoder, anchors, documents
        self._descriptions, self._config, self._seed = descriptions, config, seed
        per_epoch = math.ceil(len(documents.rows) / config.batch_size)
        self._epochs = Epochs(partial(_batches, documents.rows.lengths, config.batch_size, seed), per_epoch)
        count = min(config.batch_size, len(descriptions))
        every = math.ceil(len(descriptions) / count)
        self._turns = Epochs(partial(_batches, descriptions.rows.lengths, count, child_seed(seed, "turns")), every)
        total = config.epochs * per_epoch
        self.plan = Plan(
            groups=[Group("learning_rate", weights, learning_rate)],
            total=total,
            factor=partial(rate_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            epochs=config.epochs,
            training=partial(encoder.backbone.training_mode, encoder_dropout=config.encoder_dropout),
            look_every=max(1, total // 20),
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of a batch of documents and of at most as many descriptions."""
        backbone, config = self._encoder.backbone, self._config
        drawn = self._epochs.batch(step)
        own = self._descriptions.take(self._turns.batch(step))
        probabilities = torch.from_numpy(self._documents.probabilities[drawn]).to(backbone.device)
        weights = torch.from_numpy(self._documents.weights[drawn]).to(backbone.device)
        targets = torch.from_numpy(own.targets.astype(np.int64)).to(backbone.device)

        def loss(features: Features) -> Tensor:
            scores = cosine_scores(features.values, self._anchors, config.temperature)
            by_teacher = soft_cross_entropy(scores[: len(drawn)], probabilities, weights)
            by_descriptions = infonce_rows(scores[len(drawn) :], targets)
            return (1 - config.description_weight) * by_teacher + config.description_weight * by_descriptions

        rows = self._documents.rows.take(drawn) + own.rows
        value = backpropagate(
            backbone,
            cut(backbone, rows, config.max_tokens_in_memory),
            loss,
            words=False,
            seed=child_seed(self._seed, "step", step),
            max_tokens_in_memory=config.max_tokens_in_memory,
        )
        return value, {}

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> None:
        """Measure nothing: all updates are made, because no label says which weights are better."""


def _batches(lengths: Sequence[int], size: int, seed: int, epoch: int) -> list[list[int]]:
    window = sorting_window(len(lengths), size, most=WINDOW)
    return epoch_batches(lengths, size, window=window, seed=child_seed(seed, "order"), epoch=epoch)
