"""LaCon as an objective: batches of similar length with descriptions, early stopping on held-out rows."""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch import Tensor, nn

from labelspace.config import LaConConfig
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError
from labelspace.seeds import child_seed
from labelspace.training.batches import Epochs, epoch_batches, sorting_window
from labelspace.training.features import answers
from labelspace.training.gradients import backpropagate
from labelspace.training.lacon.head import LaConHead
from labelspace.training.lacon.loss import BatchLoss, needs_two_views
from labelspace.training.objective import Group, Plan, check_finite
from labelspace.training.rows import Labelled, Targets, cut, cycle, draw_weighted
from labelspace.training.schedule import rate_factor

# Maximum number of batches within which texts are sorted by length.
WINDOW = 50
# Held-out rows scored at a time, so that the [rows label] table of all is never in memory.
LOOKED_AT_ONCE = 4096
# A smaller fall of the held-out loss does not count.
TOLERANCE = 1e-4
MOST_HEADS = 6


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at the held-out rows."""

    step: int
    """Number of updates before it; 0: before training."""

    macro_f1_predicted: float
    """Macro-F1 of the held-out rows, over predicted labels too; see `evaluate.metrics`."""

    loss: float
    """Mean cross-entropy of the held-out rows, from the probabilities of `predict_proba`."""

    def better_than(self, other: "Look | None") -> bool:
        """Return whether macro-F1 is higher, or equal at a lower loss: with few held-out rows, ties are common."""
        if other is None or self.macro_f1_predicted != other.macro_f1_predicted:
            return other is None or self.macro_f1_predicted > other.macro_f1_predicted
        return self.loss < other.loss - TOLERANCE

    def told(self) -> dict[str, float]:
        """Return the values for callbacks."""
        return {"held_out_macro_f1_predicted": self.macro_f1_predicted, "held_out_loss": self.loss}


class Rates(NamedTuple):
    """Peak learning rate of each part of the model."""

    encoder: float
    head: float


@final
class LaConObjective:
    """Encoder and head on labelled rows. Keeps the best look's weights, or the last ones without held-out rows.

    Args:
        encoder: its weights are changed.
        weights: the encoder's trainable weights, from `trainable_weights`.
        head: its weights are changed.
        train: training rows.
        held_out: held-out rows, which decide when to stop, or None.
        descriptions: descriptions of the prior, or None.
        config: objective, schedule, stopping rule.
        rates: peak learning rates.
        heads: number of slices in eq. 4.
        prior: [label], weight of each label's descriptions; the mean is the share of the descriptions in the loss.
        class_weights: [label], relative frequency of each label's rows; None: every row once per epoch.
        seed: seed of order, draws and dropout masks.
    """

    def __init__(
        self,
        encoder: Encoder,
        weights: Sequence[tuple[str, nn.Parameter]],
        head: LaConHead,
        train: Labelled,
        held_out: Labelled | None,
        descriptions: Labelled | None,
        config: LaConConfig,
        *,
        rates: Rates,
        heads: int,
        prior: NDArray[np.float64],
        class_weights: NDArray[np.float64] | None,
        seed: int,
    ) -> None:
        self._encoder, self._head, self._train, self._held_out = encoder, head, train, held_out
        self._descriptions, self._config, self._heads, self._seed = descriptions, config, heads, seed
        self._share = float(prior.mean())
        self._turns = Turns(prior[descriptions.targets], seed) if descriptions is not None else None
        per_epoch = math.ceil(len(train) / config.batch_size)
        self._epochs = Epochs(partial(_batches_of, train, config, class_weights, seed), per_epoch)
        whole = config.epochs * per_epoch
        total = min(whole, config.max_steps or whole)
        self.plan = Plan(
            groups=groups_of(weights, head, rates),
            total=total,
            factor=partial(rate_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            end="epochs" if total < (config.max_steps or math.inf) else "max_steps",
            epochs=config.epochs,
            training=partial(encoder.backbone.training_mode, encoder_dropout=config.encoder_dropout),
            look_every=per_epoch,
            looks_first=held_out is not None,
            look=Look,
            better=Look.better_than,
            patience=config.patience,
            told=Look.told,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of a batch and of at most as many descriptions, which then cost no more than the texts."""
        some = None
        if self._descriptions is not None and self._turns is not None:
            count = min(self._config.batch_size, len(self._descriptions))
            # A description can end one turn and start the next; it is needed only once.
            some = self._descriptions.take(list(dict.fromkeys(self._turns.take(step * count, count))))
        texts = self._train.take(self._epochs.batch(step))
        return batch_gradient(
            *(self._encoder, self._head, texts, some, self._config, self._heads, self._share),
            seed=self._seed,
            step=step,
        )

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Look | None:  # noqa: ARG002
        """Score the held-out rows, if there are any."""
        if self._held_out is None:
            return None
        predicted, found = [], []
        targets = self._held_out.targets
        for start in range(0, len(targets), LOOKED_AT_ONCE):
            window = range(start, min(start + LOOKED_AT_ONCE, len(targets)))
            table = answers(
                self._encoder,
                self._held_out.rows.take(window),
                lambda features: self._head.table(features, self._config.temperature),
                words=self._head.shape.words,
                width=self._head.shape.labels,
            ).astype(np.float64)
            own = table[np.arange(len(table)), targets[window.start : window.stop]]
            peak = table.max(axis=1)
            found.append(peak + np.log(np.exp(table - peak[:, None]).sum(axis=1)) - own)
            predicted.append(table.argmax(axis=1))
        score = float(f1_score(targets, np.concatenate(predicted), average="macro"))
        loss = float(np.concatenate(found).mean())
        check_finite(loss, "the held-out loss", made, self.plan)
        return Look(step=made, macro_f1_predicted=score, loss=loss)


def _batches_of(
    train: Labelled, config: LaConConfig, class_weights: NDArray[np.float64] | None, seed: int, epoch: int
) -> list[list[int]]:
    """Plan the batches of an epoch."""
    rows = list(range(len(train)))
    if class_weights is not None:
        rows = draw_weighted(train.targets, class_weights, seed=seed, epoch=epoch)
    every = train.rows.lengths
    drawn = [every[row] for row in rows]
    window = sorting_window(len(drawn), config.batch_size, most=WINDOW)
    order = child_seed(seed, "order")
    batches = epoch_batches(drawn, config.batch_size, window=window, seed=order, epoch=epoch)
    return [[rows[place] for place in batch] for batch in batches]


def batch_gradient(
    encoder: Encoder,
    head: LaConHead,
    texts: Labelled,
    descriptions: Labelled | None,
    config: LaConConfig,
    heads: int,
    prior: float,
    *,
    seed: int,
    step: int,
) -> tuple[float, dict[str, float]]:
    """Add the gradient of one update.

    Args:
        encoder: inside its `training_mode`.
        head: trainable module on the encoder.
        texts: the batch.
        descriptions: descriptions of the prior in this update, or None.
        config: objective and weights.
        heads: number of slices in eq. 4.
        prior: share of the descriptions in the loss.
        seed: with `step`, seed of the dropout masks.
        step: number of the update, from 0.

    Returns:
        The loss, and its parts by name. If it is not finite, no gradient is computed.
    """
    device = encoder.backbone.device
    rows = texts.rows + texts.rows if needs_two_views(config) else texts.rows
    if descriptions is not None:
        rows = rows + descriptions.rows
    loss = BatchLoss(
        head,
        config,
        heads,
        targets=_tensor(texts.targets, device),
        description_targets=_tensor(descriptions.targets if descriptions else np.zeros(0, np.intp), device),
        prior=prior,
    )
    value = backpropagate(
        encoder.backbone,
        cut(encoder.backbone, rows, config.max_tokens_in_memory),
        loss,
        words=head.shape.words,
        seed=child_seed(seed, "step", step),
        max_tokens_in_memory=config.max_tokens_in_memory,
    )
    return value, loss.parts


def groups_of(weights: Sequence[tuple[str, nn.Parameter]], head: LaConHead, rates: Rates) -> list[Group]:
    """Return the parameter groups: the encoder and the head, each at its own rate."""
    of_head = [(f"head.{name}", values) for name, values in head.named_parameters()]
    return [Group("learning_rate", weights, rates.encoder), Group("head_learning_rate", of_head, rates.head)]


def choose_heads(heads: int | None, dim: int) -> int:
    """Return the number of slices in eq. 4: the one given, or the largest divisor of the width up to 6.

    Raises:
        ConfigError: the number given does not divide the width.

    Example:
        >>> choose_heads(None, 384), choose_heads(None, 32), choose_heads(2, 32)
        (6, 4, 2)
    """
    if heads is None:
        return max(count for count in range(1, MOST_HEADS + 1) if dim % count == 0)
    if dim % heads:
        raise ConfigError(f"heads must divide the width of the encoder, {dim}. Got {heads} instead; None chooses one.")
    return heads


@final
class Turns:
    """An endless sequence of descriptions, each in proportion to its weight; the heaviest appear in every turn.

    Args:
        weights: [desc], above 0.
        seed: seed of the order and the draws.

    Example:
        >>> sorted(Turns(np.array([1.0, 1.0]), 0).take(0, 4))
        [0, 0, 1, 1]
    """

    def __init__(self, weights: NDArray[np.float64], seed: int) -> None:
        self._drawn, self._places = 0, _places(weights, seed)

    def take(self, start: int, count: int) -> list[int]:
        """Return `count` descriptions from position `start`, which must not lie before what was taken already."""
        while self._drawn < start:
            next(self._places)
            self._drawn += 1
        self._drawn += count
        return [next(self._places) for _ in range(count)]


def _places(weights: NDArray[np.float64], seed: int) -> Iterator[int]:
    draw = random.Random(child_seed(seed, "turns"))
    chances = weights / weights.max()
    for place in cycle(len(weights), seed=child_seed(seed, "descriptions")):
        if draw.random() < chances[place]:
            yield place


def _tensor(targets: Targets, device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(targets, dtype=np.int64)).to(device)
