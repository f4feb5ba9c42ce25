"""Definitions of a dictionary as descriptions: the first sense of a label's word, every sense, and those it means."""

import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

import yaml
from pieces import Piece

from labelspace import LabelSpace
from study.ablations import task_of
from study.measure import trained
from study.settings import Settings
from study.spaces import LABELS, with_descriptions

WORDS = ("agnews", "emotion", "rottentomatoes")
"""Tasks whose label names are words of a dictionary."""

SENSES = ("first", "every", "meant")


def defined(name: str, senses: str, labels: LabelSpace) -> LabelSpace:
    """Return a task's labels with definitions of WordNet as their descriptions."""
    entries = yaml.safe_load((LABELS / "wordnet.yaml").read_text(encoding="utf-8"))[name]

    def of(label: str) -> tuple[str, ...]:
        texts = entries[label]["senses"]
        numbers = {"first": [1], "every": range(1, len(texts) + 1), "meant": entries[label]["meant"]}[senses]
        return tuple(texts[number - 1] for number in numbers)

    return with_descriptions(labels, lambda label: of(label.name))


def dictionary_pieces(settings: Settings) -> Iterator[Piece]:
    """Every choice of senses on every task."""
    tasks = WORDS[-1:] if settings.small else WORDS
    for name, senses in itertools.product(tasks, SENSES):
        yield Piece(
            part="dictionary",
            name=f"{settings.short}_{name}_{senses}",
            facts={"task": name, "encoder": settings.short, "senses": senses, "max_steps": settings.max_steps},
            work=partial(_run, settings, name, senses),
            seeds=(0,),
            data=name,
        )


def _run(settings: Settings, name: str, senses: str) -> dict[str, Any]:
    task = task_of(settings, name)
    space = defined(name, senses, task.labels)
    found = trained(settings, task, space, learning_rate="base", max_steps=settings.max_steps)
    return {"test_rows": len(task.texts), "definitions": [len(label.descriptions) for label in space.labels], **found}
