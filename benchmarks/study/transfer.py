"""An encoder trained on one label space, on the labels of others: does training serve a domain, or its labels alone?

The other labels are the benchmark's, a sentence each, and documents are compared with that sentence. One set is in
another language, which says something of an encoder that reads it.
"""

import functools
import itertools
from collections.abc import Iterator
from functools import partial
from typing import Any

from pieces import Piece
from scoring import answers_by_anchor, macro_f1_predicted
from tasks import Task

from labelspace import Encoder
from labelspace.bench.tasks import load_task
from study.ablations import task_of
from study.measure import fitted, opened
from study.schedule import WRITERS, written
from study.settings import Settings
from study.spaces import INTENTS, TASKS, TNEWS, study_task

SOURCES = (*TASKS, INTENTS)
TARGETS = {
    "agnews": ("AG News", "news"),
    "capsotu": ("CAP SOTU", "politics"),
    "manifesto": ("Manifesto", "politics"),
    "emotiondair": ("Emotion", "emotion"),
    "rottentomatoes": ("Rotten Tomatoes", "reviews"),
    "imdb": ("IMDB", "reviews"),
    "amazonpolarity": ("Amazon polarity", "reviews"),
    "yelpreviews": ("Yelp", "reviews"),
    "mteb/tweet_sentiment_extraction": ("TweetSentiment", "tweets"),
    "banking77": ("Banking77, all 77", "banking"),
    "massive": ("MASSIVE", "orders"),
    "mteb/mtop_domain": ("MTOPDomain", "orders"),
    "wikitoxic_toxicaggregated": ("WikiToxic, any kind", "comments"),
    TNEWS: ("TNEWS", "Chinese headlines"),
}
"""Data sets of the benchmarks: their titles, and what their texts are."""

OWN = {"agnews": "agnews", "emotion": "emotiondair", "rottentomatoes": "rottentomatoes", INTENTS: "banking77"}
"""Source -> the set with the same labels."""

SCORED = 1000


def transfer_pieces(settings: Settings) -> Iterator[Piece]:
    """Every task as the source, with the descriptions of three writers."""
    sources, writers = (("rottentomatoes",), WRITERS[:1]) if settings.small else (SOURCES, WRITERS[:3])
    for writer, source in itertools.product(writers, sources):
        yield Piece(
            part="transfer",
            name=f"{settings.short}_{source}_writer{writer}",
            facts={"task": source, "encoder": settings.short, "writer": writer, "max_steps": settings.max_steps},
            work=partial(_run, settings, source, writer),
            seeds=(0,),
            data=f"{source}; scored: " + ", ".join(_targets(settings)),
        )


def _targets(settings: Settings) -> list[str]:
    return ["rottentomatoes"] if settings.small else list(TARGETS)


def _run(settings: Settings, source: str, writer: int) -> dict[str, Any]:
    task = task_of(settings, source)
    space = written(source, writer, task.labels)
    clf = fitted(settings, task, space, learning_rate="base", max_steps=settings.max_steps)
    targets = _targets(settings)
    return {
        "untrained": {name: _untrained(settings, name) for name in targets},
        "macro_f1_predicted": {name: _score(clf.encoder_, _target(settings, name)) for name in targets},
    }


@functools.cache
def _target(settings: Settings, name: str) -> Task:
    if name == TNEWS:
        return study_task(name, settings.data, test_rows=SCORED)
    found = load_task(name, data=settings.data, limit=SCORED)
    truth = [found.space.names[column] for column in found.targets]
    return Task(name, found.space, [], "", found.texts, truth)


@functools.cache
def _untrained(settings: Settings, name: str) -> float:
    return _score(opened(settings), _target(settings, name))


def _score(encoder: Encoder, target: Task) -> float:
    chosen = answers_by_anchor(encoder, target.labels, encoder.encode(target.texts))["verbalizer"]
    return macro_f1_predicted(target.truth, chosen)
