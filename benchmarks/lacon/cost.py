"""The cost of LaCon: a training step against plain cross-entropy's, its losses against those over pairs of texts
(appendix A.3), and its loss at 10,000 classes.

Texts are descriptions from the repository, so no data is needed. Run it on an otherwise idle machine.
"""

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from pieces import Piece
from tasks import JOINED, intent_texts

from labelspace import Encoder
from labelspace.bench.memory import PeakMemory, resident_mib
from labelspace.config import LaConConfig
from labelspace.losses import (
    instance_centred,
    label_centred,
    label_regularizer,
    lacon_loss,
    self_supervised_contrastive,
    supervised_contrastive,
)
from labelspace.training.engine import make_optimizer
from labelspace.training.lacon import HeadShape, LaConHead
from labelspace.training.lacon.fit import choose_rate
from labelspace.training.lacon.objective import Rates, batch_gradient, choose_heads, groups_of
from labelspace.training.rows import Labelled, tokenize
from labelspace.training.trainable import trainable_weights
from lacon.methods import METHODS, Options
from lacon.protocol import Settings

BATCH = 32
LABELS = 8
METHODS_TIMED = ("ce", "lacon-vanilla", "lacon-fusion")
# A default step of `fit` with few labelled rows: the batch also has as many descriptions as texts.
WITH_PRIOR = "lacon-few"
BATCHES = (32, 256, 2048)
FEW_LABELS = 3
CLASSES = (1000, 3000, 10_000)
DIM = 384


def speed_pieces(settings: Settings) -> Iterator[Piece]:
    """A step on short and on long texts; the losses by batch; the loss by classes, each in its own process."""
    for length in ("short",) if settings.small else tuple(JOINED):
        yield Piece(
            part="speed",
            name=f"{settings.short}_step_{length}",
            facts={"encoder": settings.short, "what": "step", "length": length},
            work=partial(_steps, settings, length),
            seeds=(0,),
            data="examples/banking77/labels.yaml",
        )
    batches = BATCHES[:1] if settings.small else BATCHES
    yield Piece(
        part="speed",
        name=f"{settings.short}_losses",
        facts={"encoder": settings.short, "what": "losses", "labels": FEW_LABELS, "dim": DIM, "batches": list(batches)},
        work=partial(_losses, settings, batches),
        seeds=(0,),
        data="random vectors",
    )
    for classes in (1000,) if settings.small else CLASSES:
        yield Piece(
            part="speed",
            name=f"{settings.short}_loss_{classes:05d}",
            facts={"encoder": settings.short, "what": "loss", "classes": classes, "batch": BATCH, "dim": DIM},
            work=partial(_loss, settings, classes),
            seeds=(0,),
            data="random vectors",
            alone=True,
        )


def batch_of(length: str) -> tuple[list[str], np.ndarray]:
    """Return the fixed batch: texts of the first labels in turn, and their labels."""
    intents = intent_texts(length)
    return [intents[place % LABELS][place // LABELS] for place in range(BATCH)], np.arange(BATCH) % LABELS


class Stepper:
    """One method with its own encoder and head; `step` is one training update."""

    def __init__(
        self, encoder: Encoder, options: Options, texts: list[str], targets: np.ndarray, *, prior: float = 0.0
    ) -> None:
        self.encoder = encoder
        self.prior = prior
        self.config = LaConConfig(batch_size=BATCH, **options)
        classifies = self.config.objective != "lacon"
        words = self.config.head != "vanilla"
        dim = encoder.backbone.hidden_size if words else encoder.dimension
        self.heads = 1 if classifies else choose_heads(self.config.heads, dim)
        # With descriptions, label embeddings start from them, and there is no projection.
        projection = self.config.projection_head is not False and not prior
        shape = HeadShape(head=self.config.head, classifies=classifies, projection=projection, labels=LABELS, dim=dim)
        self.head = LaConHead(shape, generator=torch.Generator().manual_seed(0)).to(encoder.backbone.device)
        self.batch = Labelled(tokenize(encoder, texts), targets)
        self.descriptions = self.batch if prior else None  # the texts are descriptions, so they serve as both
        self.number = 0

    def step(self, optimizer: torch.optim.Optimizer) -> float:
        """Make one update and return its seconds."""
        started = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        batch, some, config = self.batch, self.descriptions, self.config
        batch_gradient(self.encoder, self.head, batch, some, config, self.heads, self.prior, seed=0, step=self.number)
        optimizer.step()
        if self.encoder.backbone.device.type == "cuda":
            torch.cuda.synchronize()
        self.number += 1
        return time.perf_counter() - started

    def run(self, steps: int) -> list[float]:
        """Make this number of updates, and return the seconds of each."""
        backbone = self.encoder.backbone
        with (
            trainable_weights(backbone) as weights,
            backbone.training_mode(encoder_dropout=self.config.encoder_dropout),
        ):
            highest = choose_rate(self.config.learning_rate, backbone.hidden_size)
            rates = Rates(encoder=highest, head=self.config.head_learning_rate)
            optimizer = make_optimizer(groups_of(weights, self.head, rates), self.config.weight_decay)
            self.step(optimizer)  # the first step creates the optimizer's state
            return [self.step(optimizer) for _ in range(steps)]


def _steps(settings: Settings, length: str) -> dict[str, Any]:
    """Median seconds of a step, with the methods in turns, so that other load affects all of them."""
    texts, targets = batch_of(length)
    encoder = Encoder(settings.encoder)
    steppers = {method: Stepper(encoder.copy(), METHODS[method].options, texts, targets) for method in METHODS_TIMED}
    steppers[WITH_PRIOR] = Stepper(encoder.copy(), {}, texts, targets, prior=0.5)
    turns, steps = (2, 1) if settings.small else (12, 3)
    for stepper in steppers.values():
        stepper.run(2)  # warm-up
    seconds: dict[str, list[float]] = {method: [] for method in steppers}
    for _ in range(turns):
        for method, stepper in steppers.items():
            seconds[method].append(statistics.median(stepper.run(steps)))
    ratios = {
        method: [own / plain for own, plain in zip(seconds[method], seconds["ce"], strict=True)]
        for method in (*METHODS_TIMED[1:], WITH_PRIOR)
    }
    return {
        "batch": BATCH,
        "tokens": sum(steppers["ce"].batch.rows.lengths),
        "step_seconds": seconds,
        "ratios": ratios,
        "ratio": {method: statistics.median(values) for method, values in ratios.items()},
        "dtype": encoder.dtype,
    }


def _losses(settings: Settings, batches: Sequence[int]) -> dict[str, Any]:
    """Median seconds of LaCon's two losses, and of those that they replace, with their gradients, in turns."""
    generator = torch.Generator().manual_seed(0)
    found = {}
    for batch in batches:
        first, second, labels = (
            torch.randn(rows, DIM, generator=generator, requires_grad=True) for rows in (batch, batch, FEW_LABELS)
        )
        targets = torch.arange(batch) % FEW_LABELS
        losses: dict[str, Callable[[float], torch.Tensor]] = {
            "instance": partial(instance_centred, first, labels, targets),
            "label": partial(label_centred, first, labels, targets),
            "supervised": partial(supervised_contrastive, first, targets),
            "self-supervised": partial(self_supervised_contrastive, first, second),
        }
        seconds: dict[str, list[float]] = {name: [] for name in losses}
        for turn in range(2 if settings.small else 51):
            for name, loss in losses.items():
                first.grad = second.grad = labels.grad = None
                started = time.perf_counter()
                loss(LaConConfig.temperature).backward()
                if turn:  # the first turn is the warm-up
                    seconds[name].append(time.perf_counter() - started)
        found[str(batch)] = {name: statistics.median(own) for name, own in seconds.items()}
    return {"seconds_of_losses": found}


def _loss(settings: Settings, classes: int) -> dict[str, Any]:
    """Equation 7 and its gradient at one number of classes: added memory, and time of its parts."""
    generator = torch.Generator().manual_seed(0)
    instances = torch.randn(BATCH, DIM, generator=generator, requires_grad=True)
    labels = torch.randn(classes, DIM, generator=generator, requires_grad=True)
    targets = torch.randint(classes, (BATCH,), generator=generator)
    temperature = LaConConfig.temperature

    def timed(work: Callable[[], torch.Tensor]) -> float:
        instances.grad = labels.grad = None
        started = time.perf_counter()
        work().backward()
        return time.perf_counter() - started

    # Run once with few labels: memory that torch loads at its first backward is not part of the loss.
    few = torch.randn(8, DIM, generator=generator, requires_grad=True)
    lacon_loss(instances, few, targets % 8, temperature).total.backward()
    held = resident_mib()
    with PeakMemory() as peak:
        seconds = [
            timed(lambda: lacon_loss(instances, labels, targets, temperature).total)
            for _ in range(2 if settings.small else 5)
        ]
    parts = {
        "instance": lambda: instance_centred(instances, labels, targets, temperature, choose_heads(None, DIM)),
        "label": lambda: label_centred(instances, labels, targets, temperature),
        "regularizer": lambda: label_regularizer(labels),
    }
    return {
        "loss_seconds": statistics.median(seconds),
        "seconds_of_parts": {
            name: statistics.median([timed(work) for _ in range(1 if settings.small else 5)])
            for name, work in parts.items()
        },
        "peak_memory_mib": peak.mib,
        "added_mib": peak.mib - held,
        "memory_method": peak.method,
    }
