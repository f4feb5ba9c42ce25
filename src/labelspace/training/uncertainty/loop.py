"""The loop: batches of token states, AdamW on the head alone."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import final

import numpy as np
import torch
from torch import Tensor

from labelspace.config import UncertaintyConfig
from labelspace.encoders.state_cache import TokenStates
from labelspace.errors import TrainingError
from labelspace.heads import GaussianHead, sample
from labelspace.losses import labelwise_loss, self_supervised_contrastive, supervised_contrastive
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.batches import epoch_batches, sorting_window
from labelspace.training.callbacks import Callback
from labelspace.training.rows import Targets
from labelspace.training.schedule import rate_factor
from labelspace.training.trainable import restore, snapshot

# Batches within which texts are sorted by length.
WINDOW = 20
# `epochs="auto"`.
PAPER_EPOCHS = 3
MOST_EPOCHS = 30
FEWEST_UPDATES = 400
# `learning_rate="auto"`, by extractor.
RATES = {"textcnn": 8e-4, "mlp": 8e-4, "mean": 3e-3, "cls": 3e-3, "eos": 3e-3, "attention": 3e-3}


@final
@dataclass(frozen=True, kw_only=True)
class UncertaintyCurve:
    """What a training run did."""

    losses: tuple[float, ...] = field(repr=False)
    """The loss of each update."""

    epochs: int
    """Times that each text was to be seen."""

    learning_rate: float
    """The highest rate."""

    best_step: int
    """The update after which the weights were kept: the last one, or the end of the last whole epoch."""

    stop_reason: str
    """`"epochs"` or `"interrupted"`."""

    seconds: float
    """Of the loop."""

    epoch_seconds: tuple[float, ...]
    """Of each whole epoch."""

    @property
    def steps(self) -> int:
        """Optimizer updates made."""
        return len(self.losses)


def choose_epochs(config: UncertaintyConfig, texts: int) -> int:
    """Return how often each text is seen; see `UncertaintyConfig.epochs`.

    Example:
        >>> [choose_epochs(UncertaintyConfig(), texts) for texts in (12_000, 4_000, 64)]
        [3, 7, 30]
    """
    if not isinstance(config.epochs, str):
        return config.epochs
    updates = math.ceil(texts / config.batch_size)
    return max(PAPER_EPOCHS, min(MOST_EPOCHS, math.ceil(FEWEST_UPDATES / updates)))


def choose_rate(config: UncertaintyConfig) -> float:
    """Return the highest rate; see `UncertaintyConfig.learning_rate`.

    Example:
        >>> choose_rate(UncertaintyConfig()), choose_rate(UncertaintyConfig(extractor="attention"))
        (0.0008, 0.003)
    """
    return RATES[config.extractor] if isinstance(config.learning_rate, str) else config.learning_rate


def run(
    head: GaussianHead,
    states: TokenStates,
    rows: Sequence[int],
    targets: Targets,
    config: UncertaintyConfig,
    *,
    device: torch.device,
    dtype: torch.dtype,
    seed: int,
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
) -> UncertaintyCurve:
    """Train the head, in place.

    Args:
        head: on `device`; its weights are changed.
        states: token states of all texts.
        rows: the texts to train on.
        targets: [text], the label of every text of `states`.
        config: objective and schedule.
        device: where to compute.
        dtype: the type of the states that the head sees.
        seed: of order, dropout and sampling.
        callbacks: told losses and the rate at every step.
        report: told how many updates are done.

    Returns:
        The curve. After a KeyboardInterrupt the head is as it was at the end of the last whole epoch.

    Raises:
        TrainingError: the loss is not finite.
    """
    epochs = choose_epochs(config, len(rows))
    total = epochs * math.ceil(len(rows) / config.batch_size)
    highest = choose_rate(config)
    optimizer = torch.optim.AdamW(head.parameters(), lr=highest, weight_decay=config.weight_decay, fused=True)
    lengths = [int(states.lengths[row]) for row in rows]
    window = sorting_window(len(rows), config.batch_size, most=WINDOW)
    noise = torch.Generator().manual_seed(child_seed(seed, "noise"))
    weights = list(head.named_parameters())
    losses: list[float] = []
    seconds: list[float] = []
    kept, kept_step, stop_reason = snapshot(weights), 0, "epochs"
    started = time.perf_counter()
    try:
        for epoch in range(epochs):
            began = time.perf_counter()
            for batch in epoch_batches(lengths, config.batch_size, window=window, seed=seed, epoch=epoch):
                texts = [rows[place] for place in batch]
                rate = highest * rate_factor(len(losses), total, config.warmup)
                for group in optimizer.param_groups:
                    group["lr"] = rate
                optimizer.zero_grad(set_to_none=True)
                values, mask = states.take(texts)
                loss, parts = objective(
                    head,
                    values.to(device, dtype),
                    mask.to(device),
                    torch.from_numpy(np.asarray(targets[texts], dtype=np.int64)).to(device),
                    config,
                    noise,
                )
                losses.append(_checked(loss, len(losses) + 1, highest))
                loss.backward()
                optimizer.step()
                for callback in callbacks:
                    callback(len(losses), {"loss": losses[-1], "learning_rate": rate, **parts})
                report(len(losses), total, f"loss {losses[-1]:.4f}")
            kept, kept_step = snapshot(weights), len(losses)
            seconds.append(time.perf_counter() - began)
    except KeyboardInterrupt:
        # It may have come in the middle of an update, so only the kept weights are sound.
        stop_reason = "interrupted"
    finally:
        restore(weights, kept)
        for values in head.parameters():
            values.grad = None
    return UncertaintyCurve(
        losses=tuple(losses),
        epochs=epochs,
        learning_rate=highest,
        best_step=kept_step,
        stop_reason=stop_reason,
        seconds=time.perf_counter() - started,
        epoch_seconds=tuple(seconds),
    )


def objective(
    head: GaussianHead,
    states: Tensor,
    mask: Tensor,
    targets: Tensor,
    config: UncertaintyConfig,
    noise: torch.Generator,
) -> tuple[Tensor, dict[str, float]]:
    """Return the loss of one batch and its parts by name (eq. 6, or what stands for eq. 3 in table 4).

    Args:
        head: with gradients.
        states: [text token dim].
        mask: [text token].
        targets: [text].
        config: which parts, and their weights.
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
        # "Processes all samples deterministically" (section 5.5): on the mean, not on what is drawn.
        contrastive = supervised_contrastive(mean, targets, config.contrastive_temperature)
    else:
        other_mean, other_std = head(states, mask, noise=noise)
        again = sample(other_mean, other_std, noise)
        contrastive = self_supervised_contrastive(vectors, again, config.contrastive_temperature)
    weight = config.contrastive_weight
    total = (1 - weight) * loss.softmax + weight * contrastive + config.kl_weight * loss.kl
    return total, {**parts, "contrastive": contrastive.item()}


def _checked(loss: Tensor, step: int, rate: float) -> float:
    value = loss.item()
    if not math.isfinite(value):
        raise TrainingError(
            f"the loss is {value} at step {step} with learning rate {rate:.1e}; use a lower "
            f"learning_rate, for example {rate / 10:.0e}, or an encoder with dtype='float32'."
        )
    return value
