"""The work of a run: a task or NLI pairs, loaded when they are scored, and the record of the result."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.bench.cards import METRICS
from labelspace.bench.models import OpenModel
from labelspace.bench.nli import MEAN, load_nli, nli_auroc, nli_fingerprint, pair_scorer
from labelspace.bench.plan import Source, none_can_be_run
from labelspace.bench.records import NLI_TASK
from labelspace.bench.scoring import Cost, measured, score_task
from labelspace.bench.store import RunKey
from labelspace.bench.tasks import Task
from labelspace.errors import InputError
from labelspace.evaluate.intervals import LEVEL, interval
from labelspace.evaluate.metrics import Tally
from labelspace.evaluate.provenance import provenance
from labelspace.progress import Progress
from labelspace.seeds import child_seed

WITH_INTERVAL = ("macro_f1_predicted", "accuracy")

Record = dict[str, Any]


class Work(NamedTuple):
    """A task or set of pairs to be scored; its texts are not held."""

    name: str
    """Name of the task."""

    seed: int
    """Seed that draws the texts."""

    fingerprint: str
    """Fingerprint of the texts and labels."""

    texts: int
    """Number of texts."""

    make: Callable[[OpenModel, RunKey, Progress], Record | None]
    """Scores the work and returns the record; None if the model cannot score it."""


def works_of(
    sources: Sequence[Source], seeds: Sequence[int], absent: dict[str, str], *, bootstrap: int, device: str
) -> list[Work]:
    """Load each task once for each seed, to get its fingerprint and size.

    Args:
        sources: tasks of the plan.
        seeds: seeds, each of which gives one `Work` per task.
        absent: receives the hub sets that cannot be read, with the reason.
        bootstrap: samples for the intervals.
        device: the models' device.

    Raises:
        InputError: a file or folder is damaged, or there is nothing to score.
    """
    works: list[Work] = []
    for source in sources:
        try:
            works += [_task_work(source, seed, bootstrap, device) for seed in seeds]
        except InputError as error:
            if not source.from_hub:
                raise
            absent[source.name] = str(error).rstrip(".")
    if not works:
        raise none_can_be_run(absent)
    return works


def _task_work(source: Source, seed: int, bootstrap: int, device: str) -> Work:
    task = source.load(seed)

    def make(model: OpenModel, key: RunKey, report: Progress) -> Record:
        return _record(model, source.load(seed), key, bootstrap, device, report)

    return Work(source.name, seed, task.fingerprint, len(task.texts), make)


def nli_work(data: Path, limit: int | None, seed: int, device: str) -> Work:
    """Make `Work` from the NLI pairs of a folder or file.

    Raises:
        ColumnError: a column is missing.
        InputError: the file is missing or damaged.
    """
    sets = load_nli(data, limit=limit, seed=seed)
    fingerprint, sources, pairs = nli_fingerprint(sets), list(sets), sum(map(len, sets.values()))

    def make(model: OpenModel, key: RunKey, report: Progress) -> Record | None:
        report(0)
        score = pair_scorer(model)
        if score is None:
            return None
        found, cost = measured(lambda: nli_auroc(score, load_nli(data, limit=limit, seed=seed)), device)
        return {
            **_facts(model, key, fingerprint, pairs, cost),
            "benchmark": NLI_TASK,
            "task_family": NLI_TASK,
            "classes": 2,
            "notes": [],
            "metrics": {"auroc": found[MEAN]},
            "by_source": {source: value for source, value in found.items() if source != MEAN},
            "intervals": None,
            "provenance": provenance(
                seeds=key.seed,
                data={"task": "NLI pairs", "sources": sources, "fingerprint": fingerprint},
                dtype=key.dtype,
            ),
        }

    return Work(NLI_TASK, seed, fingerprint, pairs, make)


def _record(model: OpenModel, task: Task, key: RunKey, bootstrap: int, device: str, report: Progress) -> Record:
    predicted, cost = score_task(model, task, device=device, report=report)
    card = task.card
    tally = Tally(task.space.names)
    tally.add(task.targets, predicted)
    metrics = tally.metrics()
    data = {"task": card.name, "source": card.source, "fingerprint": task.fingerprint}
    data |= {"revision": task.revision} if task.revision is not None else {}
    return {
        **_facts(model, key, task.fingerprint, len(task.texts), cost),
        "benchmark": card.benchmark,
        "task_family": card.family,
        "classes": len(task.space),
        "notes": list(task.notes),
        "metrics": {name: getattr(metrics, name) for name in METRICS},
        "intervals": _intervals(task, predicted, bootstrap, key.seed),
        "provenance": provenance(seeds=key.seed, data=data, dtype=key.dtype),
    }


def _facts(model: OpenModel, key: RunKey, fingerprint: str, texts: int, cost: Cost) -> Record:
    """Return the fields common to all records: model, texts and cost."""
    return {
        **key._asdict(),
        "name": model.name,
        "family": model.family,
        "parameters": model.parameters,
        "revision": model.revision,
        "described": model.describe,
        "fingerprint": fingerprint,
        "texts": texts,
        "texts_per_second": texts / max(cost.seconds, 1e-9),
        **cost._asdict(),
    }


def _intervals(task: Task, predicted: NDArray[np.int64], repeats: int, seed: int) -> dict[str, Any] | None:
    if not repeats:
        return None
    seed = child_seed(seed, "bootstrap", task.card.name)
    found: dict[str, Any] = {"level": LEVEL, "repeats": repeats}
    for metric in WITH_INTERVAL:
        _, *ends = interval(task.targets, predicted, len(task.space), metric=metric, repeats=repeats, seed=seed)
        found[metric] = None if None in ends else ends
    return found
