"""SetFit with its template on the curve's samples; skipped with a note if the package is not installed."""

import sys
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

from peer_setfit import dataset_of, oversampled_updates, run_setfit, updates
from pieces import Piece
from scoring import macro_f1_predicted
from study.rivals import TEMPLATES as STUDY_TEMPLATES
from tasks import Task

from lacon.curve import curve_piece, first, task_of, tasks_and_counts
from lacon.methods import opened
from lacon.protocol import Settings

# SetFit's documentation uses eight templated texts of each class, with or without labels.
TEMPLATED = 8
# Maximum updates of part setfit-whole: enough for all counts of all tasks but Banking77.
MOST_WHOLE = 1100
LABELS = {"emotion": 6, "agnews": 4, "banking77": 77, "rottentomatoes": 2}
# Labelled rows of each class at the package's defaults. Its pairs grow with the square of the texts: 16 rows of each of
# 77 classes would be 95,000 updates.
DEFAULT_COUNTS = {"emotion": 16, "agnews": 16, "banking77": 2, "rottentomatoes": 16}
TEMPLATES = STUDY_TEMPLATES | {
    "banking77": "The customer is asking about {}",
    "rottentomatoes": "This movie review is {}",
}


def setfit_pieces(settings: Settings) -> Iterator[Piece]:
    """The same tasks, counts and seeds as the curve."""
    yield from _pieces(settings, "setfit", settings.protocol.setfit_steps)


def whole_pieces(settings: Settings) -> Iterator[Piece]:
    """Runs that the protocol truncates, with their full schedule if it is at most `MOST_WHOLE` updates."""
    most = settings.protocol.setfit_steps
    if most is None or settings.small:
        return
    tasks, counts = tasks_and_counts(settings)
    texts = {(name, count): LABELS[name] * (count + TEMPLATED) for name in tasks for count in counts}
    cut = {key for key, own in texts.items() if most < updates(own) <= MOST_WHOLE}
    for piece in _pieces(settings, "setfit-whole", None):
        if (piece.facts["task"], piece.facts["per_class"]) in cut:
            yield piece


def default_pieces(settings: Settings) -> Iterator[Piece]:
    """SetFit with its package's defaults, one sample of each task: labelled rows, no template, every pair once."""
    if settings.small or find_spec("setfit") is None:
        return
    for name, count in DEFAULT_COUNTS.items():
        yield curve_piece(settings, name, "setfit-default", count, (0,), partial(_run_default, settings, name, count))


def _pieces(settings: Settings, part: str, most: int | None) -> Iterator[Piece]:
    if find_spec("setfit") is None:
        print("setfit is not installed, so its curve is skipped; install it with `make .venv/.peers`.", file=sys.stderr)
        return
    tasks, counts = tasks_and_counts(settings)
    for seed in settings.curve_seeds:
        for name in tasks:
            for count in counts:
                work = partial(_run, settings, name, count, seed, most)
                yield curve_piece(settings, name, part, count, (seed,), work)


def _run(settings: Settings, name: str, count: int, seed: int, most: int | None) -> dict[str, Any]:
    """SetFit on the curve's sample plus its templated texts, which are the only texts at zero labels."""
    from setfit import get_templated_dataset

    task = task_of(settings, name)
    texts, truth = first(settings, task, count, seed)
    dataset = get_templated_dataset(
        dataset_of(texts, truth, task.labels.names) if texts else None,
        candidate_labels=[label.replace("_", " ") for label in task.labels.names],
        template=TEMPLATES[name],
        sample_size=TEMPLATED,
    )
    return {
        **_scored(settings, task, dataset, len(texts), seed=seed, most_updates=most),
        "templated": len(dataset) - len(texts),
        "steps": updates(len(dataset)) if most is None else min(most, updates(len(dataset))),
        "whole_schedule": updates(len(dataset)),
        "test_rows": len(task.texts),
    }


def _run_default(settings: Settings, name: str, count: int) -> dict[str, Any]:
    task = task_of(settings, name)
    texts, truth = first(settings, task, count, 0)
    dataset = dataset_of(texts, truth, task.labels.names)
    return {
        **_scored(settings, task, dataset, len(texts), seed=0, pairs_of_a_text=None),
        "templated": 0,
        "steps": oversampled_updates([truth.count(label) for label in task.labels.names]),
        "test_rows": len(task.texts),
    }


def _scored(settings: Settings, task: Task, dataset: Any, labelled: int, **options: Any) -> dict[str, Any]:
    folder = opened(settings.encoder, None).folder
    predicted, seconds = run_setfit(folder, dataset, task.labels.names, task.texts, **options)
    score = macro_f1_predicted(task.truth, predicted)
    return {"macro_f1_predicted": score, "fit_seconds": seconds, "labelled": labelled}
