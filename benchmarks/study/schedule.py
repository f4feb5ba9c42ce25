"""60 updates and the paper's 1,000 with patience, on descriptions by five writers who worked apart.

Each writer wrote five descriptions of every label, and knew only the names of the labels and one sentence on the texts.
"""

import itertools
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
import yaml
from pieces import Piece
from scoring import answers_by_anchor, by_anchor
from tasks import Task

from labelspace import Encoder, LabelSpace
from labelspace.classify.arguments import own_encoder
from labelspace.config import DEFAULT_ANCHOR, SearchConfig, TrainingConfig
from labelspace.consensus.signals import signals
from labelspace.corpus import Pool, sample_pool
from labelspace.training import train_on_descriptions
from labelspace.training.description.learning_rate import PoolUniformity
from study.ablations import task_of
from study.measure import encoded, evaluating, opened
from study.settings import Settings
from study.spaces import INTENTS, LABELS, TASKS, with_descriptions

WRITERS = (1, 2, 3, 4, 5)
SHORT, LONG = 60, 1000
LOOKS = (60, 125, 250, 500)
"""Updates after which a long run is scored; the end comes with every run."""

LONGEST = {INTENTS: 400}
"""Most updates of a task; more than 400 on all intents take longer than a piece may."""

RATES = ("base", "uniformity")


def written(name: str, writer: int, labels: LabelSpace) -> LabelSpace:
    """Return a task's labels with the descriptions of one writer."""
    texts = yaml.safe_load((LABELS / f"writer-{writer}.yaml").read_text(encoding="utf-8"))
    own = texts["banking77" if name.startswith("banking77") else name]
    return with_descriptions(labels, lambda label: tuple(own[label.name]))


def lengths(settings: Settings, name: str) -> tuple[int, int]:
    """Return the updates of a task's short and of its long run."""
    return (2, 4) if settings.small else (SHORT, LONGEST.get(name, LONG))


def schedule_pieces(settings: Settings) -> Iterator[Piece]:
    """Every writer, task, rate and length; all intents, at the published rate, come before the other rate."""
    base, by_uniformity = RATES
    tasks = ("rottentomatoes",) if settings.small else TASKS
    writers = WRITERS[:1] if settings.small else WRITERS
    runs = [*itertools.product([base], writers, tasks)]
    runs += [] if settings.small else [*itertools.product([base], writers, [INTENTS])]
    runs += itertools.product([by_uniformity], writers, tasks)
    for rate, writer, name in runs:
        for steps in lengths(settings, name):
            facts = {"task": name, "encoder": settings.short, "rate": rate, "max_steps": steps, "writer": writer}
            yield Piece(
                part="schedule",
                name=f"{settings.short}_{name}_{rate}_{steps}_writer{writer}",
                facts=facts,
                work=partial(_run, settings, **{key: facts[key] for key in ("task", "rate", "max_steps", "writer")}),
                seeds=(0,),
                data=name,
            )


def _run(settings: Settings, task: str, rate: str, max_steps: int, writer: int) -> dict[str, Any]:
    return _trained(settings, task_of(settings, task), rate, max_steps, writer)


def _trained(settings: Settings, task: Task, rate: str, max_steps: int, writer: int) -> dict[str, Any]:
    space = written(task.name, writer, task.labels)
    search = SearchConfig()
    encoder = own_encoder(opened(settings))
    pool = sample_pool(task.pool, size=search.documents, seed=0)
    uniform = PoolUniformity(encoder, pool, search, 0)
    looks: list[dict[str, Any]] = []

    def look(step: int, values: dict[str, float]) -> None:
        if step in LOOKS and step < max_steps and "loss" in values:
            looks.append({"step": step, "loss": values["loss"], **_measured(encoder, space, task, pool, uniform)})

    started = time.perf_counter()
    result = train_on_descriptions(
        encoder,
        space,
        TrainingConfig(max_steps=max_steps, learning_rate=rate),
        search,
        pool=pool,
        seed=0,
        callbacks=[look],
    )
    return {
        "untrained": by_anchor(opened(settings), space, encoded(settings, task), task.truth),
        "looks": looks,
        **_measured(encoder, space, task, pool, uniform),
        "uniformity_before": result.uniformity_before,
        "learning_rate": result.rate.learning_rate,
        "steps": result.curve.steps,
        "best_step": result.curve.best_step,
        "stop_reason": result.curve.stop_reason,
        "last_loss": result.curve.losses[-1],
        "test_rows": len(task.texts),
        "fit_seconds": time.perf_counter() - started,
    }


def _measured(encoder: Encoder, space: LabelSpace, task: Task, pool: Pool, uniform: PoolUniformity) -> dict[str, Any]:
    """Score the encoder as it is now, and measure what needs no label."""
    with evaluating(encoder):
        vectors = encoder.encode(pool.texts)
        chosen = answers_by_anchor(encoder, space, vectors)[DEFAULT_ANCHOR]
        columns = np.array([space.names.index(label) for label in chosen])
        said = signals(columns, pool.texts, space, vectors, seed=0)
        return {
            "macro_f1_predicted": by_anchor(encoder, space, encoder.encode(task.texts), task.truth),
            "uniformity": uniform(),
            "words": said.words,
            "neighbours": said.neighbours,
        }
