"""Macro-F1 on the five data sets, untrained and trained, with every anchor.

    python benchmarks/run.py quality --tasks rottentomatoes emotion --seeds 0 1 2

The pool comes from the train split, never from the test split.
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pieces
from pieces import Piece
from runner import Study
from scoring import by_anchor
from tasks import SOURCES, Task, load_task

from labelspace import DescriptionClassifier, Encoder
from labelspace.config import SearchConfig, TrainingConfig


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    tasks: tuple[str, ...]
    seeds: tuple[int, ...]
    verbalizers: str
    max_steps: int
    learning_rate: str
    test_rows: int | None
    search: SearchConfig


def untrained_pieces(settings: Settings) -> Iterator[Piece]:
    """Score each task with the untrained encoder."""
    for name in settings.tasks:
        task = _task(settings, name)
        yield _piece(settings, "untrained", task, "untrained", (), partial(_untrained, settings, task))


def trained_pieces(settings: Settings) -> Iterator[Piece]:
    """Train on each task with each seed, and score every anchor."""
    way = settings.search.strategy if settings.learning_rate == "uniformity" else "base"
    for name in settings.tasks:
        task = _task(settings, name)
        for seed in settings.seeds:
            run = f"{way}_{settings.max_steps}_seed{seed}"
            yield _piece(settings, "trained", task, run, (seed,), partial(_trained, settings, task, seed))


def _task(settings: Settings, name: str) -> Task:
    return load_task(name, settings.data, settings.verbalizers, test_rows=settings.test_rows)


def _piece(settings: Settings, part: str, task: Task, run: str, seeds: tuple[int, ...], work: Any) -> Piece:
    facts = {"task": task.name, "encoder": Path(settings.encoder).name, "pooling": settings.pooling}
    facts |= {"verbalizers": settings.verbalizers, "labels": len(task.labels), "test_rows": len(task.texts)}
    facts |= {"pool": task.pool_source, **({"seed": seeds[0]} if seeds else {})}
    name = f"{settings.short}_{task.name}_{settings.verbalizers}_{run}"
    return Piece(part=part, name=name, facts=facts, work=work, seeds=seeds, data=task.pool_source)


def _untrained(settings: Settings, task: Task) -> dict[str, Any]:
    encoder = Encoder(settings.encoder, pooling=settings.pooling)
    return {"macro_f1_predicted": by_anchor(encoder, task.labels, encoder.encode(task.texts), task.truth)}


def _trained(settings: Settings, task: Task, seed: int) -> dict[str, Any]:
    clf = DescriptionClassifier(
        task.labels,
        encoder=Encoder(settings.encoder, pooling=settings.pooling),
        seed=seed,
        max_steps=settings.max_steps,
        learning_rate=settings.learning_rate,
        search=settings.search,
        verbose=True,
    ).fit(task.pool)
    vectors = clf.encoder_.encode(task.texts)
    result = clf.fit_result_
    return {
        "macro_f1_predicted": by_anchor(clf.encoder_, task.labels, vectors, task.truth),
        "learning_rate": result.rate.learning_rate,
        "trials": [vars(trial) for trial in result.rate.trials],
        "steps": result.curve.steps,
        "best_step": result.curve.best_step,
        "stop_reason": result.curve.stop_reason,
        "last_loss": result.curve.losses[-1],
        "uniformity": [result.uniformity_before, result.uniformity_after],
        "training": clf.training_config().to_dict(),
        "search": settings.search.to_dict(),
    }


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--pooling", choices=("cls", "mean"), help="in place of the encoder's own")
    parser.add_argument("--tasks", nargs="+", default=list(SOURCES), choices=list(SOURCES))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--verbalizers", choices=["official", "own"], default="official")
    parser.add_argument("--max-steps", type=int, default=TrainingConfig.max_steps)
    parser.add_argument("--learning-rate", default="uniformity", choices=["uniformity", "base"])
    parser.add_argument("--test-rows", type=int, help="maximum test rows, a fixed sample; default: all")
    parser.add_argument("--search-steps", type=int, default=SearchConfig.steps)
    parser.add_argument("--strategy", default=SearchConfig.strategy)


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    search = SearchConfig(steps=options.search_steps, strategy=options.strategy)
    return Settings.of(options, **common, search=search)


STUDY = Study(
    name="quality",
    doc=__doc__,
    parts={"untrained": untrained_pieces, "trained": trained_pieces},
    settings=settings,
    options=add_options,
)
