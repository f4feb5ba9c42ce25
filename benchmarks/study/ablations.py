"""Ablations: one change at a time; each seed draws five of ten descriptions, and each run scores every anchor."""

import itertools
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple

from pieces import Piece
from tasks import Task

from labelspace import LabelSpace
from study.measure import trained
from study.settings import Settings
from study.spaces import (
    FEW_K,
    INTENTS,
    MISLEADING,
    PAPER_K,
    TASKS,
    WRITTEN,
    bare,
    drawn,
    filled,
    halved,
    study_task,
    swapped,
)

SEEDS = (0, 1, 2, 3, 4)
FEWER_UPDATES = "updates-20"
QUICK = "all-MiniLM-L6-v2"
"""The only encoder whose 60 updates on all intents take less than 20 minutes on a core; mpnet takes twice that."""


class Change(NamedTuple):
    """A change from the default."""

    name: str
    count: int = PAPER_K
    options: dict[str, Any] | None = None
    space: Callable[[LabelSpace, int], LabelSpace] | None = None


CHANGES = (
    Change("default"),
    Change("objective-rows", options={"objective": "rows"}),
    Change("objective-columns", options={"objective": "columns"}),
    Change("bare-names", space=lambda space, _: bare(space)),
    *(Change(f"descriptions-{count}", count=count) for count in (1, 3, 10)),
    *(Change(f"temperature-{value}", options={"temperature": value}) for value in (0.02, 0.05, 0.1, 0.2)),
    Change("swapped", space=swapped),
    Change("halved", space=halved),
    Change("filler", space=filled),
    Change(FEWER_UPDATES, options={"max_steps": 20}),
)
ONLY = {MISLEADING: ("default", "bare-names"), INTENTS: ("default", FEWER_UPDATES)}
"""Tasks that are run with some of the changes only; all intents also with few updates, see `QUICK`."""
EVERYWHERE = tuple(change.name for change in CHANGES if change.name != FEWER_UPDATES)


def ablation_pieces(settings: Settings) -> Iterator[Piece]:
    """Every change on every task with every seed; the task with misleading names only with the two about names."""
    seeds = SEEDS[:1] if settings.small else SEEDS
    tasks = ("rottentomatoes",) if settings.small else (*TASKS, MISLEADING, INTENTS)
    wanted = settings.changes or (("default", "swapped") if settings.small else tuple(c.name for c in CHANGES))
    changes = [change for change in CHANGES if change.name in wanted]
    # One seed after the other, so that an unfinished study has all changes.
    for seed, name, change in itertools.product(seeds, tasks, changes):
        once = change.count == WRITTEN and seed  # all ten descriptions: every seed draws the same
        slow = name == INTENTS and change.name != FEWER_UPDATES and not settings.short.startswith(QUICK)
        if change.name in ONLY.get(name, EVERYWHERE) and not once and not slow:
            yield Piece(
                part="ablations",
                name=f"{settings.short}_{name}_{change.name}_seed{seed}",
                facts={"task": name, "encoder": settings.short, "change": change.name, "seed": seed},
                work=partial(_run, settings, name, change, seed),
                seeds=(seed,),
                data=name,
            )


def task_of(settings: Settings, name: str) -> Task:
    """Read a task."""
    return study_task(name, settings.data, test_rows=settings.test_rows)


def _run(settings: Settings, name: str, change: Change, seed: int) -> dict[str, Any]:
    task = task_of(settings, name)
    space = drawn(task.labels, FEW_K if name == INTENTS else change.count, seed)
    if change.space is not None:
        space = change.space(space, seed)
    options = {"learning_rate": "base", "max_steps": settings.max_steps, "seed": seed, **(change.options or {})}
    found = trained(settings, task, space, **options)
    return {"test_rows": len(task.texts), "labels": len(space), "pool": task.pool_source, **found}
