"""Labels with unequal numbers of descriptions: what a label gains or loses that has fewer, or more, than the others."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from pieces import Piece
from scoring import answers_by_anchor, macro_f1_predicted
from tasks import Task

from labelspace import Encoder, LabelSpace
from labelspace.config import DEFAULT_ANCHOR
from study.ablations import task_of
from study.measure import encoded, fitted, opened
from study.schedule import WRITERS, written
from study.settings import Settings
from study.spaces import PAPER_K, TASKS, with_descriptions

FEW = 1


def with_counts(space: LabelSpace, most: int, *, label: str = "", count: int = FEW) -> LabelSpace:
    """Keep the first `most` descriptions of each label, but `count` of the one that is named."""
    return with_descriptions(space, lambda own: own.descriptions[: count if own.name == label else most])


def unequal_pieces(settings: Settings) -> Iterator[Piece]:
    """Every task with the descriptions of three writers: equal counts, then each label in turn with fewer and more."""
    tasks, writers = (("rottentomatoes",), WRITERS[:1]) if settings.small else (TASKS, WRITERS[:3])
    for writer, name in itertools.product(writers, tasks):
        yield Piece(
            part="unequal",
            name=f"{settings.short}_{name}_writer{writer}",
            facts={"task": name, "encoder": settings.short, "writer": writer, "max_steps": settings.max_steps},
            work=partial(_run, settings, name, writer),
            seeds=(0,),
            data=name,
        )


def _run(settings: Settings, name: str, writer: int) -> dict[str, Any]:
    task = task_of(settings, name)
    space = written(name, writer, task.labels)
    names = space.names[:1] if settings.small else space.names
    spaces = {
        "five": with_counts(space, PAPER_K),
        "one": with_counts(space, FEW),
        **{f"fewer {label}": with_counts(space, PAPER_K, label=label, count=FEW) for label in names},
        **{f"more {label}": with_counts(space, FEW, label=label, count=PAPER_K) for label in names},
    }
    measured = {key: _measured(settings, task, own) for key, own in spaces.items()}
    return {"test_rows": len(task.texts), "labels": list(space.names), "runs": measured}


def _measured(settings: Settings, task: Task, space: LabelSpace) -> dict[str, Any]:
    clf = fitted(settings, task, space, learning_rate="base", max_steps=settings.max_steps)
    return {
        "untrained": _scored(opened(settings), task, space, encoded(settings, task)),
        "trained": _scored(clf.encoder_, task, space, clf.encoder_.encode(task.texts)),
    }


def _scored(encoder: Encoder, task: Task, space: LabelSpace, vectors: np.ndarray) -> dict[str, Any]:
    """Return macro-F1, and of each label the share of the answers and the recall."""
    chosen, truth = answers_by_anchor(encoder, space, vectors)[DEFAULT_ANCHOR], np.array(task.truth)
    return {
        "macro_f1_predicted": macro_f1_predicted(task.truth, chosen),
        "answers": [float(np.mean(chosen == label)) for label in space.names],
        "recall": [float(np.mean(chosen[truth == label] == label)) for label in space.names],
    }
