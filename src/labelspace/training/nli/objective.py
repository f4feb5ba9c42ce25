"""Training a cross-encoder as an objective: batches of pairs of similar length, early stopping on the dev loss."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, final

import torch
from torch import Tensor
from torch.nn import functional as F

from labelspace.config import NLIConfig
from labelspace.encoders.batching import plan_batches
from labelspace.encoders.identity import weights_hash
from labelspace.errors import ConfigError
from labelspace.heads.cross_encoder import entailment_score
from labelspace.progress import Progress, silent
from labelspace.seeds import child_seed
from labelspace.training import engine
from labelspace.training.batches import Epochs, epoch_batches
from labelspace.training.callbacks import Callback
from labelspace.training.checkpoint import Place
from labelspace.training.engine import Training
from labelspace.training.gradients import backward, seeded
from labelspace.training.nli.data import Pairs
from labelspace.training.nli.model import NLIModel, PairTokens
from labelspace.training.nli.schedule import highest_rates
from labelspace.training.objective import Group, Plan, check_finite
from labelspace.training.schedule import cosine_factor

DEV_TOKEN_BUDGET = 4096


@final
@dataclass(frozen=True, kw_only=True)
class Look:
    """One evaluation during training."""

    step: int
    """Number of updates made."""

    train_loss: float
    """Mean loss of the updates since the last evaluation, with dropout."""

    dev_loss: float
    """Mean loss of the dev pairs, which early stopping uses."""

    dev_accuracy: float
    """Accuracy on the dev pairs, over two classes (binary) or three (triplet)."""

    dev_auroc: float | None
    """Chance that an entailed dev pair scores above one that is not; None if there is only one kind."""

    backbone_rate: float
    """The backbone's learning rate at the last update."""

    head_rate: float
    """The head's learning rate at the last update."""

    def better_than(self, other: "Look | None") -> bool:
        """Return whether the dev loss is no higher."""
        return other is None or self.dev_loss <= other.dev_loss

    def told(self) -> dict[str, float]:
        """Return the values for callbacks."""
        auroc = {} if self.dev_auroc is None else {"dev_auroc": self.dev_auroc}
        return {"dev_loss": self.dev_loss, "dev_accuracy": self.dev_accuracy, **auroc}


def pair_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """Binary cross-entropy for one logit (1: entailment, 0: neutral or contradiction), cross-entropy for three.

    Args:
        logits: [pair class], one or three columns.
        labels: [pair], 0 entailment, 1 neutral, 2 contradiction.

    Returns:
        A scalar, zero or more.

    Example:
        >>> round(pair_loss(torch.zeros(2, 1), torch.tensor([0, 2])).item(), 4)
        0.6931

    Reference:
        BTZSC benchmark, appendix C.1.
    """
    if logits.shape[1] == 1:
        return F.binary_cross_entropy_with_logits(logits[:, 0], (labels == 0).float())
    return F.cross_entropy(logits, labels)


@final
class NLIObjective:
    """A cross-encoder on pairs, with early stopping on the dev loss.

    Args:
        model: its weights are changed; it must be in `training_mode` during the run.
        train: training pairs.
        dev: pairs whose loss decides when to stop.
        config: all options.
    """

    def __init__(self, model: NLIModel, train: Pairs, dev: Pairs, config: NLIConfig) -> None:
        self._model, self._config = model, config
        self._tokens = model.tokenize(train.premises, train.hypotheses)
        self._labels = torch.tensor(train.labels)
        self._dev_tokens = model.tokenize(dev.premises, dev.hypotheses)
        self._dev_labels = torch.tensor(dev.labels)
        per_epoch = math.ceil(len(train) / config.batch_size)
        lengths = self._tokens.lengths
        plan = partial(epoch_batches, lengths, config.batch_size, window=config.window, seed=config.seed)
        self._epochs = Epochs(plan, per_epoch)
        whole = per_epoch * config.epochs
        total = min(whole, config.max_steps or whole)
        rates = highest_rates(
            int(model.backbone.config.hidden_size),
            learning_rate=config.learning_rate,
            head_learning_rate=config.head_learning_rate,
        )
        backbone = [(f"backbone.{name}", weight) for name, weight in model.backbone.named_parameters()]
        head = [(f"head.{name}", weight) for name, weight in model.head.named_parameters()]
        self.plan = Plan(
            groups=[Group("learning_rate", backbone, rates.backbone), Group("head_learning_rate", head, rates.head)],
            total=total,
            factor=partial(cosine_factor, total=total, warmup=config.warmup),
            weight_decay=config.weight_decay,
            end="epochs" if total < (config.max_steps or math.inf) else "max_steps",
            epochs=config.epochs,
            look_every=max(1, round(total * config.evaluate_every)),
            look=Look,
            better=Look.better_than,
            patience=config.patience,
            told=Look.told,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of a batch."""
        rows = self._epochs.batch(step)
        with seeded(self._model.device, child_seed(self._config.seed, "nli", step), "dropout"):
            logits = self._model(*self._model.pad(self._tokens, rows))
        return backward(pair_loss(logits, self._labels[rows].to(self._model.device))), {}

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Look:
        """Score the dev pairs."""
        self._model.eval()
        scores = _scores(score_pairs(self._model, self._dev_tokens), self._dev_labels)
        self._model.train()
        check_finite(scores["loss"], "the dev loss", made, self.plan)
        backbone, head = (group.rate * self.plan.factor(made - 1) for group in self.plan.groups)
        return Look(
            step=made,
            train_loss=sum(losses[-len(parts) :]) / len(parts),
            dev_loss=scores["loss"],
            dev_accuracy=scores["accuracy"],
            dev_auroc=scores["auroc"],
            backbone_rate=backbone,
            head_rate=head,
        )


def train_nli(
    model: NLIModel,
    train: Pairs,
    dev: Pairs,
    config: NLIConfig,
    *,
    folder: str | Path | None = None,
    resume: bool = False,
    callbacks: Sequence[Callback] = (),
    report: Progress = silent,
) -> Training:
    """Train until the dev loss stops falling or all epochs are done, and leave the best weights in place.

    Args:
        model: from `NLIModel.from_encoder`, with the variant of `config`.
        train: training pairs; `read_pairs` applies `max_pairs`, this function does not.
        dev: pairs whose loss decides when to stop, from `balanced_dev`.
        config: all options.
        folder: folder for about 20 checkpoints during training; None: no checkpoints.
        resume: True resumes from the checkpoint in `folder`, bit-identical to an uninterrupted run.
        callbacks: called with loss and rate at every step, and with every evaluation.
        report: called with the number of updates made.

    Returns:
        The evaluations and the reason for stopping. Ctrl-C is a reason, not an error.

    Raises:
        ConfigError: model and configuration have different variants, or the checkpoint belongs to another run.
        TrainingError: a loss is not finite; the weights of the best evaluation so far are restored.
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
        raise ConfigError(f"the model's variant is {model.variant}, and the configuration's is {config.variant!r}.")
    if resume and folder is None:
        raise ConfigError("resume needs the folder with the checkpoint; pass folder.")
    objective = NLIObjective(model, train, dev, config)
    run = {
        "config": config.to_dict(),
        "encoder": model.header.get("encoder"),
        "weights": weights_hash(model.named_parameters()),
        "the model's max_tokens": model.max_tokens,
        "train": train.fingerprint(),
        "dev": dev.fingerprint(),
    }
    with model.training_mode():
        return engine.train(
            objective,
            checkpoint=None if folder is None else Place(Path(folder), run, resume),
            callbacks=callbacks,
            report=report,
            max_seconds=config.max_seconds,
        )


def dev_scores(model: NLIModel, pairs: Pairs) -> dict[str, Any]:
    """Score labelled pairs, all together and by source.

    Args:
        model: in evaluation mode.
        pairs: labelled pairs.

    Returns:
        `{"all": scores, "sources": {name: scores}}`; scores are `pairs`, `loss`, `accuracy` and `auroc`.
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
    """Return the logits of pairs, in order, [pair class], on the CPU."""
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
