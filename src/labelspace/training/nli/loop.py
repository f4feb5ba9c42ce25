"""The training of a cross-encoder: AdamW, two rates, early stopping on the dev loss, the best state kept.

A run is decided by its seed alone: pairs, their order and every dropout mask are named child seeds of it and of the
step, so a run that goes on from a checkpoint makes the same bits as one that was never interrupted.
"""

import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional as F

from labelspace.encoders.batching import plan_batches
from labelspace.errors import ConfigError, TrainingError
from labelspace.heads.cross_encoder import entailment_score
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training.batches import epoch_batches
from labelspace.training.checkpoint import (
    Checkpoint,
    looks_of,
    optimizer_tensors,
    read_checkpoint,
    restore_optimizer,
    write_checkpoint,
)
from labelspace.training.gradients import seeded
from labelspace.training.loop import EarlyStopping
from labelspace.training.nli.config import NLIConfig
from labelspace.training.nli.data import Pairs
from labelspace.training.nli.model import NLIModel, PairTokens
from labelspace.training.nli.schedule import Rates, highest_rates
from labelspace.training.schedule import cosine_factor
from labelspace.training.trainable import restore, snapshot

DEV_TOKEN_BUDGET = 4096
STOPS = ("epochs", "patience", "max_seconds", "interrupted")


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """One evaluation on the way."""

    step: int
    """Updates made."""

    train_loss: float
    """Mean loss of the updates since the last evaluation, with dropout."""

    dev_loss: float
    """Mean loss of the dev pairs; early stopping looks at this."""

    dev_accuracy: float
    """Share of dev pairs put into their class: of two (binary) or three (triplet)."""

    dev_auroc: float | None
    """Chance that an entailed dev pair scores above one that is not; None where there is only one kind."""

    backbone_rate: float
    """Learning rate of the last update."""

    head_rate: float
    """The same of the head."""


@final
@dataclass(frozen=True, kw_only=True)
class NLIRun:
    """How a training went; the model then holds the weights of the best evaluation."""

    total_steps: int
    """Updates that the schedule covers."""

    looks: tuple[Look, ...] = field(repr=False)
    """Every evaluation, in order."""

    best_step: int
    """The update after which the kept weights were taken; 0: none was evaluated, the weights are as they came."""

    stop_reason: str
    """`"epochs"` (all updates made), `"patience"`, `"max_seconds"` or `"interrupted"`."""

    rates: Rates
    """The rates at the end of the warm-up."""

    seconds: float
    """Wall-clock time, over all resumptions."""

    @property
    def finished(self) -> bool:
        """True where there is nothing to resume."""
        return self.stop_reason in ("epochs", "patience")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        values = {name: getattr(self, name) for name in ("total_steps", "best_step", "stop_reason", "seconds")}
        return {**values, "rates": self.rates._asdict(), "looks": [asdict(look) for look in self.looks]}


def pair_loss(logits: Tensor, labels: Tensor, reduction: str = "mean") -> Tensor:
    """Binary cross-entropy for one logit (1: entailment, 0: neutral or contradiction), cross-entropy for three.

    Args:
        logits: [pair class], one or three columns.
        labels: [pair], 0 entailment, 1 neutral, 2 contradiction.
        reduction: `"mean"` for a scalar, `"none"` for [pair].

    Returns:
        A scalar, or [pair], zero or more.

    Example:
        >>> round(pair_loss(torch.zeros(2, 1), torch.tensor([0, 2])).item(), 4)
        0.6931

    Reference:
        BTZSC benchmark, appendix C.1.
    """
    if logits.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], (labels == 0).float(), reduction=reduction)
    return F.cross_entropy(logits, labels, reduction=reduction)


def train_nli(
    model: NLIModel,
    train: Pairs,
    dev: Pairs,
    config: NLIConfig,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    report: Progress = silent,
) -> NLIRun:
    """Train until the dev loss stops falling or all epochs are done, and leave the best weights in place.

    Args:
        model: from `NLIModel.from_encoder`, of the variant of `config`.
        train: the pairs to learn from; `max_pairs` is applied by `read_pairs`, not here.
        dev: the pairs whose loss decides when to stop, from `balanced_dev`.
        config: everything else.
        folder: where every evaluation writes its checkpoint; None: nowhere.
        resume: True goes on from the checkpoint in `folder`, to the same bits as an uninterrupted run.
        report: told the updates made.

    Returns:
        The evaluations, and why it stopped. Ctrl-C is one reason, and no error.

    Raises:
        ConfigError: model and configuration are of different variants, or the checkpoint is of another run.
        TrainingError: a loss is not finite; the weights are then those of the best evaluation before.
        OutputError: a checkpoint cannot be written.

    Example:
        >>> names = {"premises": ("a", "b") * 3, "hypotheses": ("a",) * 6, "sources": ("s",) * 6}
        >>> pairs = Pairs(labels=(0, 1) * 3, **names)
        >>> model = NLIModel.from_encoder("tests/data/tiny-bert", "binary", seed=0, dtype="float32", device="cpu")
        >>> train_nli(model, pairs, pairs, NLIConfig(epochs=2, batch_size=2)).total_steps
        6

    Reference:
        BTZSC benchmark, appendix C.1.
    """
    if model.variant != config.variant:
        raise ConfigError(f"the model is a {model.variant} one and the configuration says {config.variant!r}.")
    work = _Work(model, train, dev, config, None if folder is None else Path(folder))
    if resume:
        if work.folder is None:
            raise ConfigError("resume needs the folder with the checkpoint; pass folder.")
        work.go_on(read_checkpoint(work.folder, work.run))
    return work.train(report)


def dev_scores(model: NLIModel, pairs: Pairs) -> dict[str, Any]:
    """Score labelled pairs, all together and source by source.

    Args:
        model: in evaluation mode.
        pairs: with their labels.

    Returns:
        `{"all": scores, "sources": {name: scores}}`, scores being `pairs`, `loss`, `accuracy` and `auroc`.
    """
    labels = torch.tensor(pairs.labels)
    logits = score_pairs(model, model.tokenize(pairs.premises, pairs.hypotheses))
    sources = {}
    for source in pairs.counts():
        rows = torch.tensor([row for row, name in enumerate(pairs.sources) if name == source])
        sources[source] = _scores(logits[rows], labels[rows])
    return {"all": _scores(logits, labels), "sources": sources}


@torch.no_grad()
def score_pairs(model: NLIModel, tokens: PairTokens) -> Tensor:
    """Return the logits of pairs in their order, [pair class], on the CPU."""
    logits: list[Tensor] = []
    order: list[int] = []
    with model.autocast():
        for rows in plan_batches(tokens.lengths, DEV_TOKEN_BUDGET):
            logits.append(model(*model.pad(tokens, rows)).cpu())
            order += rows
    return torch.cat(logits)[torch.tensor(order).argsort()]


def _scores(logits: Tensor, labels: Tensor) -> dict[str, Any]:
    from sklearn.metrics import roc_auc_score

    entailed = labels == 0
    if logits.shape[1] == 1:
        right = (logits[:, 0] > 0) == entailed
    else:
        right = logits.argmax(dim=1) == labels
    score = entailment_score(logits)
    both = bool(entailed.any()) and not bool(entailed.all()) and bool(torch.isfinite(score).all())
    return {
        "pairs": len(labels),
        "loss": pair_loss(logits, labels).item(),
        "accuracy": right.float().mean().item(),
        "auroc": float(roc_auc_score(entailed.numpy(), score.numpy())) if both else None,
    }


@final
class _Work:
    """One run under way."""

    def __init__(self, model: NLIModel, train: Pairs, dev: Pairs, config: NLIConfig, folder: Path | None) -> None:
        self.model = model
        self.config = config
        self.folder = folder
        self.tokens = model.tokenize(train.premises, train.hypotheses)
        self.labels = torch.tensor(train.labels)
        self.dev_tokens = model.tokenize(dev.premises, dev.hypotheses)
        self.dev_labels = torch.tensor(dev.labels)
        self.per_epoch = math.ceil(len(train) / config.batch_size)
        every_step = self.per_epoch * config.epochs
        self.total = min(every_step, config.limit_steps or every_step)
        self.every = max(1, round(self.total * config.evaluate_every))
        self.rates = highest_rates(
            int(model.backbone.config.hidden_size),
            learning_rate=config.learning_rate,
            head_learning_rate=config.head_learning_rate,
        )
        backbone = [(f"backbone.{name}", weight) for name, weight in model.backbone.named_parameters()]
        head = [(f"head.{name}", weight) for name, weight in model.head.named_parameters()]
        self.weights = backbone + head
        self.optimizer = torch.optim.AdamW(
            [{"params": [weight for _, weight in part]} for part in (backbone, head)],
            betas=(0.9, 0.999),
            eps=1e-8,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.run = {
            "config": config.to_dict(),
            "encoder": model.header.get("encoder"),
            "the model's max_tokens": model.max_tokens,
            "train": train.fingerprint(),
            "dev": dev.fingerprint(),
        }
        self.looks: list[Look] = []
        self.best, self.best_step, self.seconds = snapshot(self.weights), 0, 0.0
        self._epoch, self._batches = -1, []

    def go_on(self, checkpoint: Checkpoint) -> None:
        """Continue where a checkpoint was written."""
        restore(self.weights, checkpoint.weights)
        restore_optimizer(self.optimizer, [name for name, _ in self.weights], checkpoint.optimizer)
        device = self.model.device
        self.best = {name: value.to(device) for name, value in checkpoint.best.items()}
        self.best_step, self.seconds = checkpoint.best_step, checkpoint.seconds
        self.looks = looks_of(Look, checkpoint)

    def train(self, report: Progress) -> NLIRun:
        """Make all updates that are left, or fewer."""
        stopping = EarlyStopping(self.config.patience, tolerance=0.0)
        for look in self.looks:
            stopping.improved(look.dev_loss)
        first = self.looks[-1].step if self.looks else 0
        before, started = self.seconds, time.perf_counter()
        stop_reason, losses = "epochs", []
        try:
            with self.model.training_mode():
                for step in range(first, 0 if stopping.exhausted else self.total):
                    losses.append(self._update(step))
                    report(step + 1, self.total, self._note(losses[-1]))
                    if (step + 1) % self.every and step + 1 < self.total:
                        continue
                    look = self._look(step, sum(losses) / len(losses))
                    losses = []
                    self.looks.append(look)
                    if stopping.improved(look.dev_loss):
                        self.best, self.best_step = snapshot(self.weights), look.step
                    self.seconds = before + time.perf_counter() - started
                    self._write_checkpoint()
                    if stopping.exhausted or step + 1 == self.total:
                        break
                    if self.config.max_seconds and time.perf_counter() - started > self.config.max_seconds:
                        stop_reason = "max_seconds"
                        break
        except KeyboardInterrupt:
            # It may have come in the middle of an update, so only the weights of the best evaluation are sound.
            stop_reason = "interrupted"
        finally:
            restore(self.weights, self.best)
            self.optimizer.zero_grad(set_to_none=True)
        if stop_reason == "epochs" and stopping.exhausted:
            stop_reason = "patience"
        return NLIRun(
            total_steps=self.total,
            looks=tuple(self.looks),
            best_step=self.best_step,
            stop_reason=stop_reason,
            rates=self.rates,
            seconds=before + time.perf_counter() - started,
        )

    def _rates_at(self, step: int) -> Rates:
        share = cosine_factor(step, self.total, self.config.warmup)
        return Rates(backbone=share * self.rates.backbone, head=share * self.rates.head)

    def _update(self, step: int) -> float:
        epoch, place = divmod(step, self.per_epoch)
        if epoch != self._epoch:
            shape = {"window": self.config.window, "seed": self.config.seed, "epoch": epoch}
            self._epoch, self._batches = epoch, epoch_batches(self.tokens.lengths, self.config.batch_size, **shape)
        rows = self._batches[place]
        rates = self._rates_at(step)
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            group["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        with seeded(self.model.device, child_seed(self.config.seed, "nli", step), "dropout"):
            logits = self.model(*self.model.pad(self.tokens, rows))
        value = pair_loss(logits, self.labels[rows].to(self.model.device))
        loss = value.item()
        self._check_finite(loss, "loss", step)
        value.backward()
        self.optimizer.step()
        return loss

    def _look(self, step: int, train_loss: float) -> Look:
        self.model.eval()
        scores = _scores(score_pairs(self.model, self.dev_tokens), self.dev_labels)
        self.model.train()
        self._check_finite(scores["loss"], "dev loss", step)
        rates = self._rates_at(step)
        return Look(
            step=step + 1,
            train_loss=train_loss,
            dev_loss=scores["loss"],
            dev_accuracy=scores["accuracy"],
            dev_auroc=scores["auroc"],
            backbone_rate=rates.backbone,
            head_rate=rates.head,
        )

    def _check_finite(self, loss: float, what: str, step: int) -> None:
        if not math.isfinite(loss):
            raise TrainingError(
                f"the {what} is {loss} at step {step + 1}; use lower rates, for example "
                f"learning_rate={self.rates.backbone / 10:.0e}, or dtype='float32'."
            )

    def _write_checkpoint(self) -> None:
        if self.folder is None:
            return
        write_checkpoint(
            self.folder,
            Checkpoint(
                run=self.run,
                looks=[asdict(look) for look in self.looks],
                best_step=self.best_step,
                seconds=self.seconds,
                weights={name: weight.data for name, weight in self.weights},
                best=self.best,
                optimizer=optimizer_tensors(self.optimizer, [name for name, _ in self.weights]),
            ),
        )

    def _note(self, loss: float) -> str:
        dev = f", dev {self.looks[-1].dev_loss:.4f}, best {self.best_step}" if self.looks else ""
        return f"loss {loss:.4f}{dev}"
