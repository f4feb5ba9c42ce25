"""From no label to 64 per class: LaConClassifier with descriptions, descriptions alone, and logistic regression.

The aim is that no step loses more than 0.01 of macro-F1. The samples of a seed are nested: the one with two labels of
a class contains the one with one.
"""

import functools
from collections.abc import Iterator
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
from pieces import Piece
from scoring import macro_f1_predicted
from store import COMMIT
from study.rivals import few, logistic_curve
from tasks import SOURCES, Task, load_rows, load_task

from labelspace import LaConClassifier, load
from labelspace.training.lacon import Agreement
from labelspace.training.lacon.prior import label_vectors, measure_agreement
from labelspace.training.rows import tokenize
from lacon.methods import opened
from lacon.protocol import Settings

TASKS = ("emotion", "agnews", "banking77", "rottentomatoes")
COUNTS = (0, 1, 2, 4, 8, 16, 64)
SMALL_TASKS, SMALL_COUNTS = ("rottentomatoes",), (0, 1, 2)
Labelled = tuple[list[str], list[str]]


def tasks_and_counts(settings: Settings) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return the tasks and label counts of the curve."""
    return (SMALL_TASKS, SMALL_COUNTS) if settings.small else (TASKS, COUNTS)


def curve_pieces(settings: Settings) -> Iterator[Piece]:
    """One seed after the other, so that an unfinished curve has all counts of its seeds."""
    tasks, counts = tasks_and_counts(settings)
    for name in tasks:
        # Description-only training without dropout is deterministic: one run counts for all seeds.
        yield curve_piece(settings, name, "lacon", 0, (0,), partial(_no_label, settings, name))
        yield curve_piece(
            settings, name, "logistic", None, settings.curve_seeds, partial(_logistic, settings, name, counts[1:])
        )
    for seed in settings.curve_seeds:
        for name in tasks:
            for count in counts[1:]:
                yield curve_piece(
                    settings, name, "lacon", count, (seed,), partial(_some_labels, settings, name, count, seed)
                )


def curve_piece(
    settings: Settings, task: str, method: str, count: int | None, seeds: tuple[int, ...], work: Any
) -> Piece:
    """One result of the curve; for logistic regression, all counts and seeds."""
    which = "" if count is None else f"_n{count:02d}_seed{seeds[0]:02d}"
    return Piece(
        part=method if method.startswith("setfit") else "curve",
        name=f"{settings.short}_{task}_{method}{which}",
        facts=settings.curve_facts(
            task=task, method=method, per_class=count, seed=seeds[0] if len(seeds) == 1 else None
        ),
        work=work,
        seeds=seeds,
        data=f"shared/data/{SOURCES[task].folder}: train; test scored; verbalizers of {SOURCES[task].hypotheses}",
    )


@functools.lru_cache(maxsize=2)
def task_of(settings: Settings, name: str) -> Task:
    """Read the task, with the benchmark authors' verbalizers, as in the other studies."""
    return load_task(name, settings.data, "official", test_rows=settings.protocol.curve_rows)


def first(settings: Settings, task: Task, count: int, seed: int) -> Labelled:
    """Draw `count` labelled texts of each class, or all if a class has fewer.

    The sample is the beginning of the largest one, as smaller draws of `random.sample` would not be nested.
    """
    texts, truth = load_rows(settings.data / SOURCES[task.name].folder, "train", task.labels)
    texts, truth = few(texts, truth, task.labels.names, COUNTS[-1], seed)
    kept = [row for name in task.labels.names for row in [r for r, own in enumerate(truth) if own == name][:count]]
    return [texts[row] for row in kept], [truth[row] for row in kept]


@functools.lru_cache(maxsize=1)
def described(settings: Settings, name: str) -> LaConClassifier:
    """Train on the descriptions alone, at the encoder's base rate; cached, as every run with labels starts from it.

    It is deterministic, so every run with labels would reach the same weights first: this encoder has a published rate,
    so the texts given to `fit` select none. One thing differs from a plain `fit`, which asks the untrained encoder
    whether rows contradict descriptions: here the trained one is asked. `_some_labels` asks the untrained one as well.
    """
    steps = settings.protocol.description_steps
    folder = settings.out.with_name("described") / f"{settings.short}_{name}_{steps}_{(COMMIT or 'none')[:10]}"
    if not folder.exists():
        clf = LaConClassifier(
            task_of(settings, name).labels,
            encoder=opened(settings.encoder, None, settings.pooling),
            description_steps=steps,
        )
        folder.parent.mkdir(parents=True, exist_ok=True)
        clf.fit().save(folder)
    found = load(folder)
    assert isinstance(found, LaConClassifier)
    return found


def _no_label(settings: Settings, name: str) -> dict[str, Any]:
    """Descriptions alone."""
    task = task_of(settings, name)
    clf = described(settings, name)
    trained = clf.fit_result_.to_dict()["descriptions"]
    return {
        "macro_f1_predicted": macro_f1_predicted(task.truth, clf.predict(task.texts)),
        "learning_rate": trained["rate"]["learning_rate"],
        "steps": len(trained["curve"]["losses"]),
        "test_rows": len(task.texts),
    }


def _some_labels(settings: Settings, name: str, count: int, seed: int) -> dict[str, Any]:
    """LaCon with default options; the steps on descriptions have been made before."""
    task = task_of(settings, name)
    texts, truth = first(settings, task, count, seed)
    asked = agreement(settings, task, texts, truth, seed)
    if asked.contradicted:  # training then starts again with the remaining descriptions
        clf = LaConClassifier(task.labels, encoder=opened(settings.encoder, None, settings.pooling), seed=seed).fit(
            texts, truth
        )
    else:
        encoder = described(settings, name).encoder_
        clf = LaConClassifier(task.labels, encoder=encoder, description_steps=0, seed=seed).fit(texts, truth)
    result = clf.fit_result_
    assert result.curve is not None
    assert result.prior is not None
    again = result.prior.agreement
    if not asked.contradicted and (again is None or again.contradicted):
        raise RuntimeError(f"{name}, {count} labels a class contradict the trained encoder's descriptions: {again}")
    return {
        "macro_f1_predicted": macro_f1_predicted(task.truth, clf.predict(task.texts)),
        "prior": {key: value for key, value in result.prior.to_dict().items() if key != "by_label"}
        | {"agreement": asdict(asked)},
        "init": result.init,
        "labelled": result.labelled,
        "held_out": result.held_out,
        "steps": result.curve.steps,
        "best_step": result.curve.best_step,
        "stop_reason": result.curve.stop_reason,
        "rates": [result.curve.learning_rate, result.curve.head_learning_rate],
        "fit_seconds": result.curve.seconds,
        "test_rows": len(task.texts),
        "training": clf.training_config().to_dict(),
    }


def agreement(settings: Settings, task: Task, texts: list[str], truth: list[str], seed: int) -> Agreement:
    """Ask the untrained encoder whether rows contradict descriptions, as a plain `fit` of all rows does."""
    encoder, space = opened(settings.encoder, None, settings.pooling), task.labels
    targets = np.array([space.index(name) for name in truth], dtype=np.intp)
    anchors = label_vectors(encoder, space, words=False)
    return measure_agreement(encoder, anchors, tokenize(encoder, texts), targets, space.names, words=False, seed=seed)


def _logistic(settings: Settings, name: str, counts: tuple[int, ...]) -> dict[str, Any]:
    """Logistic regression on the frozen encoder's vectors, for every count and seed."""
    task = task_of(settings, name)
    encoder = opened(settings.encoder, None, settings.pooling)
    test = encoder.encode(task.texts)
    draws = {
        str(seed): logistic_curve(encoder, task, first(settings, task, counts[-1], seed), test, counts)
        for seed in settings.curve_seeds
    }
    found = {str(count): {seed: draw[count] for seed, draw in draws.items()} for count in counts}
    return {"macro_f1_predicted_by_count": found, "test_rows": len(task.texts)}
