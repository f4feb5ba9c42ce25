"""Trained heads: made over as many calls as it takes, stored on disk, and scored on NLI dev pairs.

All heads have the same training pairs, and the same dev pairs whose loss stops training. Heads of one seed see the
pairs in the same order, so a binary and a three-way head of a seed can be compared: on other dev pairs, each as
entailed or not.
"""

import functools
import math
import shutil
import time
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import torch
from filelock import FileLock
from pieces import Piece, Unfinished
from scoring import accuracy_and_macro_f1
from store import digest

from labelspace.bench.models import OpenModel, computed_dtype, open_model
from labelspace.bench.revision import weights_revision
from labelspace.bench.statistics import auroc
from labelspace.config import NLI_VARIANTS, NLIConfig
from labelspace.header import peek
from labelspace.training.checkpoint import begun
from labelspace.training.nli import NLIModel, Pairs, balanced_dev, read_pairs, train_nli
from labelspace.training.nli.data import DEV_SOURCES
from nli.settings import Settings

RATES: Mapping[str, dict[str, float]] = {
    "paper": {},
    "higher": {"learning_rate": 1e-4, "head_learning_rate": 5e-4},
}
"""Learning rates: the paper's for base models, and five times as high, chosen earlier for this small encoder."""

ANLI = tuple(source for source in DEV_SOURCES if source.startswith("anli"))
SEEN = tuple(source for source in DEV_SOURCES if source not in ANLI)
"""Sources whose loss stops training. The paper has ANLI among them; we have next to none of its training pairs, every
head stays near chance there, and its loss grows with the confidence of a head that improves elsewhere."""

PROTOCOL = ("max_pairs", "epochs", "max_tokens", "stop_per_class")


class Head(NamedTuple):
    """A head to train."""

    seed: int
    rates: str
    variant: str

    def __str__(self) -> str:
        return f"{self.variant}_{self.rates}_seed{self.seed}"


class Data(NamedTuple):
    """Pairs that all heads share."""

    train: Pairs
    stop: Pairs
    """Dev pairs whose loss stops training."""

    compared: Mapping[str, Pairs]
    """Source -> other dev pairs, equally many of each class."""


def heads(seed: int) -> list[Head]:
    """Return the heads of a seed."""
    return [Head(seed, rates, variant) for rates, variant in product(RATES, NLI_VARIANTS)]


def head_pieces(settings: Settings) -> Iterator[Piece]:
    """Every head, one seed after the other."""
    for head in (head for seed in settings.seeds for head in heads(seed)):
        yield Piece(
            part="heads",
            name=f"{settings.short}_{head}",
            facts=settings.facts((*PROTOCOL, "dev_per_class"), **head._asdict()),
            work=partial(_run, settings, head),
            seeds=(head.seed,),
            data="shared/data/nli: train and dev",
        )


def _run(settings: Settings, head: Head) -> dict[str, Any]:
    folder = make(settings, head)  # may exist already, made by a piece of another part
    run = peek(folder)["training"]["run"]
    (best,) = (look for look in run["looks"] if look["step"] == run["best_step"])
    kept = ("learning_rate", "head_learning_rate", "best_step", "total_steps", "stop_reason")
    return {
        **{name: run[name] for name in kept},
        "steps": len(run["losses"]),
        "train_loss": run["looks"][-1]["train_loss"],
        "dev_loss": best["dev_loss"],
        "training_seconds": run["seconds"],
        "train_pairs": len(_data(settings).train),
        "sources": {name: _scores(opened(folder), pairs) for name, pairs in _data(settings).compared.items()},
        "folder": folder.name,
        "weights": weights_revision(folder),
    }


def _scores(model: OpenModel, pairs: Pairs) -> dict[str, Any]:
    """Score pairs as entailed or not; a pair is entailed if its probability, the sigmoid of the score, is above 0.5."""
    scorer: Any = model.scorer
    scores = scorer.pair_scores(pairs.premises, pairs.hypotheses)
    truth = [label == 0 for label in pairs.labels]
    return {"pairs": len(pairs), **accuracy_and_macro_f1(truth, scores > 0), "auroc": auroc(scores, truth)}


def make(settings: Settings, head: Head) -> Path:
    """Return the folder of a trained head, training it if missing.

    Raises:
        Unfinished: the time of this call is up.
        Timeout: another process is training it.
    """
    folder = place_of(settings, head)
    if not folder.is_dir():
        settings.models.mkdir(parents=True, exist_ok=True)
        with FileLock(folder.with_name(f"{folder.name}.lock"), timeout=0):
            if not folder.is_dir():
                _train(settings, head, folder)
    return folder


def _train(settings: Settings, head: Head, folder: Path) -> None:
    config, data = config_of(settings, head), _data(settings)
    work = folder.with_name(f"{folder.name}.unfinished")
    model = NLIModel.from_encoder(
        settings.encoder, head.variant, head.seed, max_tokens=config.max_tokens, dropout=config.dropout
    )
    if math.isfinite(settings.ends):
        # After this time the first look is the last one; there are a hundred, each after a minute or less.
        config = replace(config, max_seconds=max(settings.ends - time.monotonic(), 1e-3))
    run = train_nli(model, data.train, data.stop, config, folder=work, resume=begun(work))
    if run.stop_reason == "interrupted":
        raise KeyboardInterrupt
    if not run.finished:
        raise Unfinished(f"{head}: {run.steps:,} of {run.total_steps:,} updates are made.")
    counts = {"train": data.train.counts(), "dev": data.stop.counts()}
    model.save(folder, facts={"training": {"config": config.to_dict(), "run": run.to_dict()}, "data": counts})
    shutil.rmtree(work, ignore_errors=True)


def place_of(settings: Settings, head: Head) -> Path:
    """Return the folder of a head; its name ends in a hash of all that determines its bits on one machine."""
    data, config = _data(settings), config_of(settings, head).to_dict()
    decided = [settings.encoder, config, data.train.fingerprint(), data.stop.fingerprint()]
    decided += [computed_dtype(settings.encoder), torch.get_num_threads()]
    return settings.models / f"{settings.short}_{head}_{digest(decided, 10)}"


def config_of(settings: Settings, head: Head) -> NLIConfig:
    """Return the options of a training; those not named are the paper's."""
    return NLIConfig(
        variant=head.variant,
        seed=head.seed,
        epochs=settings.epochs,
        max_tokens=settings.max_tokens,
        **RATES[head.rates],
    )


@functools.lru_cache(maxsize=1)
def _data(settings: Settings) -> Data:
    """Read all pairs; which ones does not depend on the seed of a head."""
    folder = settings.data / "nli"
    every = read_pairs(folder / "dev.parquet")
    stop = balanced_dev(every, sources=SEEN, per_class=settings.stop_per_class)
    used = set(zip(stop.premises, stop.hypotheses, strict=True))
    rows = enumerate(zip(every.premises, every.hypotheses, strict=True))
    rest = every.take([row for row, pair in rows if pair not in used])
    compared = {name: balanced_dev(rest, sources=[name], per_class=settings.dev_per_class) for name in DEV_SOURCES}
    return Data(read_pairs(folder / "train.parquet", limit=settings.max_pairs), stop, compared)


@functools.lru_cache(maxsize=4)
def opened(folder: Path) -> OpenModel:
    """Open a trained head, scored by the log-odds of entailment; the heads of a seed stay open."""
    return open_model(f"nli:{folder}")
