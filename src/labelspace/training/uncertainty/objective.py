"""A Gaussian head as an objective: batches of token states, and the loss of one."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import final

import numpy as np
import torch
from torch import Tensor

from labelspace.config import UncertaintyConfig
from labelspace.encoders.state_cache import TokenStates
from labelspace.heads import GaussianHead, sample
from labelspace.losses import labelwise_loss, self_supervised_contrastive, supervised_contrastive
from labelspace.seeds import child_seed
from labelspace.training.batches import Epochs, epoch_batches, sorting_window
from labelspace.training.gradients import backward
from labelspace.training.objective import Group, Plan
from labelspace.training.rows import Targets
from labelspace.training.schedule import rate_factor

# Maximum number of batches within which texts are sorted by length.
WINDOW = 20
# `epochs="auto"`.
PAPER_EPOCHS = 3
MOST_EPOCHS = 30
FEWEST_UPDATES = 400
# `learning_rate="auto"`, by extractor.
RATES = {"textcnn": 8e-4, "mlp": 8e-4, "mean": 3e-3, "cls": 3e-3, "eos": 3e-3, "attention": 3e-3}


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """The end of an epoch; after a kill or Ctrl-C, training goes back to the last one."""

    step: int
    """Number of updates made."""

    seconds: float
    """Duration of the epoch in seconds; after resuming, of its remaining part."""


def choose_epochs(config: UncertaintyConfig, texts: int) -> int:
    """Return the number of epochs; see `UncertaintyConfig.epochs`.

    Example:
        >>> [choose_epochs(UncertaintyConfig(), texts) for texts in (12_000, 4_000, 64)]
        [3, 7, 30]
    """
    if not isinstance(config.epochs, str):
        return config.epochs
    updates = math.ceil(texts / config.batch_size)
    return max(PAPER_EPOCHS, min(MOST_EPOCHS, math.ceil(FEWEST_UPDATES / updates)))


def choose_rate(config: UncertaintyConfig) -> float:
    """Return the peak learning rate; see `UncertaintyConfig.learning_rate`.

    Example:
        >>> choose_rate(UncertaintyConfig()), choose_rate(UncertaintyConfig(extractor="attention"))
        (0.0008, 0.003)
    """
    return RATES[config.extractor] if isinstance(config.learning_rate, str) else config.learning_rate


@final
class UncertaintyObjective:
    """A head alone, on token states of a frozen encoder. Keeps the weights of the end of the last full epoch.

    Args:
        head: on `device`; its weights are changed.
        states: token states of all texts.
        rows: the training texts.
        targets: [text], the label of every text in `states`.
        config: objective and schedule.
        device: where to compute.
        dtype: number format of the states as the head's input.
        seed: seed of order, dropout and sampling.
    """

    def __init__(
        self,
        head: GaussianHead,
        states: TokenStates,
        rows: Sequence[int],
        targets: Targets,
        config: UncertaintyConfig,
        *,
        device: torch.device,
        dtype: torch.dtype,
        seed: int,
    ) -> None:
        self._head, self._states, self._rows, self._targets, self._config = head, states, rows, targets, config
        self._device, self._dtype = device, dtype
        self._noise = torch.Generator().manual_seed(child_seed(seed, "noise"))
        per_epoch = math.ceil(len(rows) / config.batch_size)
        plan = partial(
            epoch_batches,
            [int(states.lengths[row]) for row in rows],
            config.batch_size,
            window=sorting_window(len(rows), config.batch_size, most=WINDOW),
            seed=seed,
        )
        self._epochs = Epochs(plan, per_epoch)
        self._began = time.perf_counter()
        epochs = choose_epochs(config, len(rows))
        total = epochs * per_epoch
        self.plan = Plan(
            groups=[Group("learning_rate", list(head.named_parameters()), choose_rate(config))],
            total=total,
            factor=partial(rate_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            epochs=epochs,
            noise=self._noise,
            look_every=per_epoch,
            look=Look,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of a batch."""
        texts = [self._rows[place] for place in self._epochs.batch(step)]
        values, mask = self._states.take(texts)
        loss, parts = batch_loss(
            self._head,
            values.to(self._device, self._dtype),
            mask.to(self._device),
            torch.from_numpy(np.asarray(self._targets[texts], dtype=np.int64)).to(self._device),
            self._config,
            self._noise,
        )
        return backward(loss), parts

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Look:  # noqa: ARG002
        """Measure the time since the last look."""
        began, self._began = self._began, time.perf_counter()
        return Look(step=made, seconds=self._began - began)


def batch_loss(
    head: GaussianHead,
    states: Tensor,
    mask: Tensor,
    targets: Tensor,
    config: UncertaintyConfig,
    noise: torch.Generator,
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of one batch and its parts by name (eq. 6, or a replacement for eq. 3 from table 4).

    Args:
        head: head in training, with gradients.
        states: [text token dim].
        mask: [text token].
        targets: [text].
        config: parts of the loss and their weights.
        noise: draws dropout and the sampled vectors.
    """
    mean, std = head(states, mask, noise=noise)
    vectors = sample(mean, std, noise)
    labelwise = config.contrastive == "label-wise"
    loss = labelwise_loss(
        head.logits(vectors),
        vectors,
        targets,
        mean,
        std,
        contrastive_weight=config.contrastive_weight if labelwise else 0.0,
        kl_weight=config.kl_weight,
        temperature=config.contrastive_temperature,
    )
    parts = {"softmax": loss.softmax.item(), "kl": loss.kl.item()}
    if labelwise:
        return loss.total, {**parts, "contrastive": loss.contrastive.item()}
    if config.contrastive == "none":
        return loss.total, parts
    if config.contrastive == "supervised":
        # "Processes all samples deterministically" (section 5.5): on the mean, not on a sample.
        contrastive = supervised_contrastive(mean, targets, config.contrastive_temperature)
    else:
        other_mean, other_std = head(states, mask, noise=noise)
        again = sample(other_mean, other_std, noise)
        contrastive = self_supervised_contrastive(vectors, again, config.contrastive_temperature)
    weight = config.contrastive_weight
    total = (1 - weight) * loss.softmax + weight * contrastive + config.kl_weight * loss.kl
    return total, {**parts, "contrastive": contrastive.item()}
