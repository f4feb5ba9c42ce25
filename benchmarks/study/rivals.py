"""A few labelled texts against descriptions alone: SetFit, logistic regression, ours; and a learning curve (Figure 2a).

Every run has its own process, so that peak memory is that of the run; training seconds exclude loading and scoring.
"""

import itertools
import random
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
from peer_setfit import dataset_of, run_setfit
from pieces import Piece
from scoring import by_anchor, macro_f1_predicted
from sklearn.linear_model import LogisticRegression
from tasks import SOURCES, Task, load_rows

from labelspace import DescriptionClassifier, Encoder
from labelspace.bench.memory import PeakMemory
from labelspace.seeds import child_seed
from study.ablations import task_of
from study.measure import opened
from study.settings import Settings
from study.spaces import PAPER_K, TASKS, drawn

SHOTS = 8
RUNS = {"emotion": 20, "agnews": 10}
TEMPLATES = {"emotion": "This text expresses {}", "agnews": "This news text is about {}"}
PER_CLASS = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CURVE_DRAWS = 10
Labelled = tuple[list[str], list[str]]


def rival_pieces(settings: Settings) -> Iterator[Piece]:
    """Each method with each sample, sample by sample."""
    runs = {"emotion": 1} if settings.small else RUNS
    methods = {"setfit": setfit, "setfit-template": partial(setfit, template=True)}
    methods |= {"logistic": run_logistic, "ours": run_ours}
    if settings.small:
        methods = {name: methods[name] for name in ("logistic", "ours")}
    draws = [(seed, name) for seed in range(max(runs.values())) for name, count in runs.items() if seed < count]
    for (seed, name), (method, work) in itertools.product(draws, methods.items()):
        yield Piece(
            part="rivals",
            name=f"{settings.short}_{name}_{method}_seed{seed:02d}",
            facts={"task": name, "encoder": settings.short, "method": method, "seed": seed},
            work=partial(_run, settings, name, seed, work),
            seeds=(seed,),
            data=name,
            alone=True,
        )


def curve_pieces(settings: Settings) -> Iterator[Piece]:
    """Logistic regression on the frozen encoder with increasing labelled texts, all samples of a task in one piece."""
    for name in ("rottentomatoes",) if settings.small else TASKS:
        yield Piece(
            part="curve",
            name=f"{settings.short}_{name}",
            facts={"task": name, "encoder": settings.short, "per_class": list(PER_CLASS)},
            work=partial(_curve, settings, name),
            seeds=tuple(range(CURVE_DRAWS)),
            data=name,
        )


def labelled(task: Task, settings: Settings) -> Labelled:
    """Read the labelled train split."""
    return load_rows(settings.data / SOURCES[task.name].folder, "train", task.labels)


def few(texts: Sequence[str], truth: Sequence[str], names: Sequence[str], shots: int, seed: int) -> Labelled:
    """Draw `shots` labelled texts of each class by the seed, or all if a class has fewer."""
    chosen: list[int] = []
    for name in names:
        rows = [row for row, label in enumerate(truth) if label == name]
        chosen += random.Random(child_seed(seed, "shots", name)).sample(rows, min(shots, len(rows)))
    return [texts[row] for row in chosen], [truth[row] for row in chosen]


def setfit(settings: Settings, task: Task, seed: int, *, template: bool = False) -> dict[str, Any]:
    """SetFit, with or without additional templated texts of the label names."""
    from setfit import get_templated_dataset

    names = list(task.labels.names)
    texts, truth = few(*labelled(task, settings), names, SHOTS, seed)
    dataset = dataset_of(texts, truth, names)
    if template:
        dataset = get_templated_dataset(
            dataset, candidate_labels=names, template=TEMPLATES[task.name], sample_size=SHOTS
        )
    predicted, seconds = run_setfit(opened(settings).folder, dataset, names, task.texts, seed=seed)
    return _result(task, predicted, seconds, len(texts))


def run_logistic(settings: Settings, task: Task, seed: int) -> dict[str, Any]:
    """Logistic regression on the frozen encoder's vectors."""
    texts, truth = few(*labelled(task, settings), task.labels.names, SHOTS, seed)
    encoder = opened(settings)
    started = time.perf_counter()
    head = LogisticRegression(max_iter=1000).fit(encoder.encode(texts), truth)
    seconds = time.perf_counter() - started
    return _result(task, head.predict(encoder.encode(task.texts)), seconds, len(texts))


def _result(task: Task, predicted: Any, seconds: float, labelled: int) -> dict[str, Any]:
    score = macro_f1_predicted(task.truth, predicted)
    return {"macro_f1_predicted": score, "training_seconds": seconds, "labelled": labelled}


def run_ours(settings: Settings, task: Task, seed: int) -> dict[str, Any]:
    """Ours, with five of ten descriptions of each label and no labelled text."""
    space = drawn(task.labels, PAPER_K, seed)
    clf = DescriptionClassifier(
        space, encoder=opened(settings), learning_rate="base", max_steps=settings.max_steps, seed=seed
    )
    started = time.perf_counter()
    clf.fit()
    seconds = time.perf_counter() - started
    found = by_anchor(clf.encoder_, space, clf.encoder_.encode(task.texts), task.truth)
    return {"macro_f1_predicted": found[clf.anchor], "by_anchor": found, "training_seconds": seconds, "labelled": 0}


def _run(
    settings: Settings, name: str, seed: int, work: Callable[[Settings, Task, int], dict[str, Any]]
) -> dict[str, Any]:
    task = task_of(settings, name)
    with PeakMemory() as peak:
        found = work(settings, task, seed)
    return {**found, "test_rows": len(task.texts), "peak_memory_mib": peak.mib, "memory_method": peak.method}


def _curve(settings: Settings, name: str) -> dict[str, Any]:
    task = task_of(settings, name)
    texts, truth = labelled(task, settings)
    encoder = opened(settings)
    test = encoder.encode(task.texts)
    draws = [
        logistic_curve(encoder, task, few(texts, truth, task.labels.names, PER_CLASS[-1], seed), test, PER_CLASS)
        for seed in range(2 if settings.small else CURVE_DRAWS)
    ]
    found = {str(count): [draw[count] for draw in draws] for count in PER_CLASS}
    return {"macro_f1_predicted": found, "test_rows": len(task.texts)}


def logistic_curve(
    encoder: Encoder, task: Task, sample: Labelled, test: np.ndarray, counts: Sequence[int]
) -> dict[int, float]:
    """Return the macro-F1 of logistic regression for each count of labelled texts a class.

    Only the largest sample is encoded: smaller ones are its beginnings.
    """
    vectors, labels, found = encoder.encode(sample[0]), np.array(sample[1], dtype=object), {}
    for count in counts:
        rows = np.concatenate([np.flatnonzero(labels == label)[:count] for label in task.labels.names])
        head = LogisticRegression(max_iter=1000).fit(vectors[rows], labels[rows])
        found[count] = macro_f1_predicted(task.truth, head.predict(test))
    return found
