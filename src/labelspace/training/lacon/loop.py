"""The loop: batches of like length, AdamW at two rates, up and down again, and an early end on held-out rows."""

import math
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, final

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.metrics import f1_score
from torch import Tensor, nn

from labelspace.config import LaConConfig
from labelspace.encoders import Encoder
from labelspace.errors import TrainingError
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.batches import epoch_batches, sorting_window
from labelspace.training.callbacks import Callback
from labelspace.training.features import answers, backpropagate
from labelspace.training.lacon.head import LaConHead
from labelspace.training.lacon.objective import Objective, needs_two_views
from labelspace.training.rows import Rows, Targets, cut, cycle, draw_weighted
from labelspace.training.schedule import rate_factor
from labelspace.training.sweep import CHUNK_TOKENS
from labelspace.training.trainable import restore, snapshot, trainable_weights

# Most batches within which texts are sorted by length.
WINDOW = 50
# Held-out rows that are scored at a time: all at once would be rows times labels.
LOOKED_AT_ONCE = 4096
# A loss on held-out rows that falls by less counts as the same.
TOLERANCE = 1e-4


@final
@dataclass(frozen=True)
class Labelled:
    """Rows with their labels."""

    rows: Rows
    """The texts."""

    targets: Targets
    """[text], the label of each."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Sequence[int]) -> "Labelled":
        """Return some of the rows, in the order asked for."""
        return Labelled(self.rows.take(rows), self.targets[list(rows)])


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """One look at the held-out rows."""

    step: int
    """Updates made before it; 0: nothing was trained yet."""

    macro_f1_predicted: float
    """Of the held-out rows, over predicted labels too; see `evaluate.metrics`."""

    loss: float
    """Their mean cross-entropy, from the probabilities that `predict_proba` gives."""

    def better_than(self, other: "Look | None") -> bool:
        """True where that is higher, or the same at a lower loss: few held-out rows make many equal scores."""
        if other is None or self.macro_f1_predicted != other.macro_f1_predicted:
            return other is None or self.macro_f1_predicted > other.macro_f1_predicted
        return self.loss < other.loss - TOLERANCE


class Rates(NamedTuple):
    """A highest learning rate for each part of the model."""

    encoder: float
    head: float


@final
@dataclass(frozen=True, kw_only=True)
class LaConCurve:
    """How one training run went."""

    losses: tuple[float, ...] = field(repr=False)
    """The loss of every step."""

    looks: tuple[Look, ...] = field(repr=False)
    """Every look at held-out rows, the first before training; none without such rows."""

    learning_rate: float
    """Highest rate of the encoder."""

    head_learning_rate: float
    """Highest rate of what stands on it."""

    best_step: int
    """The step after which the kept weights were taken; 0: the weights as they came."""

    stop_reason: str
    """`"epochs"`, `"max_steps"`, `"patience"` or `"interrupted"`."""

    seconds: float
    """Wall-clock time of the loop."""

    @property
    def steps(self) -> int:
        """Optimizer updates made."""
        return len(self.losses)


def run(
    encoder: Encoder,
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
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
) -> LaConCurve:
    """Train encoder and head, and leave the best weights in place.

    Best are those of the best look at the held-out rows, and without such rows the last ones.

    Args:
        encoder: its weights are changed.
        head: so are its own.
        train: what is learnt from.
        held_out: what says when to stop, or None.
        descriptions: the texts of the prior, or None.
        config: objective, schedule, stopping rule.
        rates: the highest.
        heads: of eq. 4.
        prior: [label], weight of each label's descriptions; their mean is the share of the descriptions in the loss.
        class_weights: [label], how often rows of each label are drawn; None: all rows once an epoch.
        seed: of order, draws and dropout masks.
        callbacks: told losses and rates at every step, and every look.
        report: told the steps done.

    Raises:
        TrainingError: the loss is not finite; the weights are then those kept before.
    """
    backbone = encoder.backbone
    total = config.epochs * math.ceil(len(train) / config.batch_size)
    total = min(total, config.max_steps or total)
    losses: list[float] = []
    looks: list[Look] = []
    stop_reason = "epochs" if total < (config.max_steps or math.inf) else "max_steps"
    turns = _turns(prior[descriptions.targets], seed) if descriptions else iter(())
    share = float(prior.mean())
    started = time.perf_counter()
    with trainable_weights(backbone) as of_encoder:
        weights = [*of_encoder, *((f"head.{name}", values) for name, values in head.named_parameters())]
        optimizer = make_optimizer([values for _, values in of_encoder], list(head.parameters()), rates, config)
        kept, kept_step, kept_look = snapshot(weights), 0, None
        try:
            if held_out is not None:
                kept_look = _look(encoder, head, held_out, config, 0, looks, callbacks)
            for batches in _epochs(train, config, class_weights, total, seed):
                with backbone.training_mode(dropout=config.dropout):
                    for batch in batches:
                        step = len(losses)
                        factor = rate_factor(step, total, config.warmup)
                        for group in optimizer.param_groups:
                            group["lr"] = group["highest"] * factor
                        optimizer.zero_grad(set_to_none=True)
                        texts, some = train.take(batch), _next_of(descriptions, turns, config.batch_size)
                        loss, parts = update(encoder, head, texts, some, config, heads, share, seed=seed, step=step)
                        losses.append(_checked(loss, step, rates))
                        optimizer.step()
                        rate = rates.encoder * factor
                        for callback in callbacks:
                            callback(step + 1, {"loss": loss, "learning_rate": rate, **parts})
                        report(step + 1, total, f"loss {loss:.4f}")
                if held_out is None:
                    # The end of an epoch is where an interrupted run goes back to.
                    kept, kept_step = snapshot(weights), len(losses)
                    continue
                look = _look(encoder, head, held_out, config, len(losses), looks, callbacks)
                if look.better_than(kept_look):
                    kept, kept_step, kept_look = snapshot(weights), len(losses), look
                elif _looks_since(looks, kept_step) >= config.patience and len(losses) < total:
                    stop_reason = "patience"
                    break
        except KeyboardInterrupt:
            # It may have come in the middle of an update, so only the kept weights are sound.
            stop_reason = "interrupted"
        finally:
            restore(weights, kept)
            for values in head.parameters():
                values.grad = None
            backbone.weights_changed()
    return LaConCurve(
        losses=tuple(losses),
        looks=tuple(looks),
        learning_rate=rates.encoder,
        head_learning_rate=rates.head,
        best_step=kept_step,
        stop_reason=stop_reason,
        seconds=time.perf_counter() - started,
    )


def make_optimizer(
    of_encoder: list[nn.Parameter], of_head: list[nn.Parameter], rates: Rates, config: LaConConfig
) -> torch.optim.Optimizer:
    """Make AdamW with the two highest rates; each group keeps its own as `"highest"`."""
    groups = [
        {"params": of_encoder, "lr": rates.encoder, "highest": rates.encoder},
        {"params": of_head, "lr": rates.head, "highest": rates.head},
    ]
    return torch.optim.AdamW(groups, weight_decay=config.weight_decay, fused=True)


def _epochs(
    train: Labelled, config: LaConConfig, class_weights: NDArray[np.float64] | None, total: int, seed: int
) -> Iterator[list[list[int]]]:
    """Yield the batches of each epoch, `total` of them in all."""
    lengths = train.rows.lengths
    done = 0
    for epoch in range(config.epochs):
        rows = list(range(len(train)))
        if class_weights is not None:
            rows = draw_weighted(train.targets, class_weights, seed=seed, epoch=epoch)
        drawn = [lengths[row] for row in rows]
        window = sorting_window(len(drawn), config.batch_size, most=WINDOW)
        places = epoch_batches(drawn, config.batch_size, window=window, seed=child_seed(seed, "order"), epoch=epoch)
        batches = [[rows[place] for place in batch] for batch in places][: total - done]
        done += len(batches)
        if batches:
            yield batches


def update(
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
    """Add the gradients of one update.

    Args:
        encoder: inside its `training_mode`.
        head: what stands on it.
        texts: the batch.
        descriptions: those of the prior that go with it, or None.
        config: objective and weights.
        heads: of eq. 4.
        prior: share of the descriptions in the loss.
        seed: of the dropout masks, with `step`.
        step: the update's number, from 0.

    Returns:
        The loss, and its parts by name.

    Raises:
        TrainingError: the loss is not finite.
    """
    device = encoder.backbone.device
    rows = texts.rows + texts.rows if needs_two_views(config) else texts.rows
    if descriptions is not None:
        rows = rows + descriptions.rows
    objective = Objective(
        head,
        config,
        heads,
        targets=_tensor(texts.targets, device),
        description_targets=_tensor(descriptions.targets if descriptions else np.zeros(0, np.intp), device),
        prior=prior,
    )
    loss = backpropagate(
        encoder.backbone,
        cut(encoder.backbone, rows, min(CHUNK_TOKENS, config.max_tokens_in_memory)),
        objective,
        words=head.shape.words,
        seed=child_seed(seed, "step", step),
        max_tokens_in_memory=config.max_tokens_in_memory,
    )
    return loss, objective.parts


def _checked(loss: float, step: int, rates: Rates) -> float:
    if not math.isfinite(loss):
        raise TrainingError(
            f"the loss is {loss} at step {step + 1} with learning rate {rates.encoder:.1e}; use a lower learning_rate, "
            f"for example {rates.encoder / 10:.0e}, a lower head_learning_rate, or an encoder with dtype='float32'."
        )
    return loss


def _turns(weights: NDArray[np.float64], seed: int) -> Iterator[int]:
    """Yield descriptions without end, each as often as it weighs: those of the greatest weight in every turn."""
    draw = random.Random(child_seed(seed, "turns"))
    chances = weights / weights.max()
    for place in cycle(len(weights), seed=child_seed(seed, "descriptions")):
        if draw.random() < chances[place]:
            yield place


def _next_of(descriptions: Labelled | None, turns: Iterator[int], most: int) -> Labelled | None:
    """As many descriptions as a batch has texts, all of them in turn, so that they cost no more than the texts do."""
    if descriptions is None:
        return None
    drawn = [next(turns) for _ in range(min(most, len(descriptions)))]
    # One may be the last of a turn and the first of the next: once is enough.
    return descriptions.take(list(dict.fromkeys(drawn)))


def _look(
    encoder: Encoder,
    head: LaConHead,
    held_out: Labelled,
    config: LaConConfig,
    step: int,
    looks: list[Look],
    callbacks: Sequence[Callback],
) -> Look:
    predicted, losses = [], []
    for start in range(0, len(held_out.targets), LOOKED_AT_ONCE):
        window = range(start, min(start + LOOKED_AT_ONCE, len(held_out.targets)))
        table = answers(
            encoder,
            held_out.rows.take(window),
            lambda features: head.table(features, config.temperature),
            words=head.shape.words,
            width=head.shape.labels,
        ).astype(np.float64)
        own = table[np.arange(len(table)), held_out.targets[window.start : window.stop]]
        peak = table.max(axis=1)
        losses.append(peak + np.log(np.exp(table - peak[:, None]).sum(axis=1)) - own)
        predicted.append(table.argmax(axis=1))
    score = float(f1_score(held_out.targets, np.concatenate(predicted), average="macro"))
    look = Look(step=step, macro_f1_predicted=score, loss=float(np.concatenate(losses).mean()))
    looks.append(look)
    for callback in callbacks:
        callback(step, {"held_out_macro_f1_predicted": look.macro_f1_predicted, "held_out_loss": look.loss})
    return look


def _looks_since(looks: list[Look], step: int) -> int:
    return sum(look.step > step for look in looks)


def _tensor(targets: Targets, device: torch.device) -> Tensor:
    return torch.from_numpy(np.asarray(targets, dtype=np.int64)).to(device)
