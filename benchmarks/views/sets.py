"""The sets: labels, unlabelled documents, and test rows that are scored."""

import functools
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq
from study.spaces import PAPER_K, drawn, study_task
from tasks import SOURCES, load_rows, load_task

from labelspace import LabelSpace
from labelspace.bench.tasks import load_task as load_bench
from labelspace.seeds import child_seed

DESCRIBED = ("rottentomatoes", "emotion", "agnews", "banking77_cards")
"""Ten descriptions a label, of which a draw has five."""

INTENTS = "banking77"
"""Five descriptions a label."""

NAMED = {
    "amazonpolarity": None,
    "imdb": "mteb/imdb/train",
    "yelpreviews": None,
    "rottentomatoes": "btzsc/rottentomatoes/train",
    "emotiondair": "btzsc/emotiondair/train",
    "banking77": "btzsc/banking77/train",
    "massive": "btzsc/massive/train",
    "agnews": "btzsc/agnews/train",
    "manifesto": None,
    "capsotu": None,
    "wikitoxic_toxicaggregated": None,
    "wikitoxic_obscene": None,
    "wikitoxic_insult": None,
    "mteb/amazon_counterfactual": "mteb/amazon_counterfactual/train",
    "mteb/massive_scenario": "mteb/massive_scenario/train",
    "mteb/imdb": "mteb/imdb/train",
    "mteb/tweet_sentiment_extraction": "mteb/tweet_sentiment_extraction/train",
    "mteb/banking77": "mteb/banking77/train",
    "mteb/massive_intent": "mteb/massive_intent/train",
    "mteb/mtop_domain": "mteb/mtop_domain/train",
    "mteb/toxic_conversations": "mteb/toxic_conversations/train",
}
"""Sets with a sentence for each label and no description, and the train rows of each; None: there are none here, and
half of the test rows are the pool, the other half is scored."""


@dataclass(frozen=True)
class Setting:
    """Labels, a pool and scored rows."""

    name: str
    space: LabelSpace
    pool: list[str]
    """All unlabelled documents, in a drawn order: a smaller pool is the beginning of it."""

    texts: list[str]
    truth: list[str]

    pool_truth: list[str] | None = None
    """Labels of the pool, to draw unbalanced pools by; None: not read."""


def described(name: str, data: Path, seed: int, test_rows: int) -> Setting:
    """Return a set with a draw of its descriptions."""
    task = study_task(name, data, test_rows=test_rows)
    space = task.labels if name == INTENTS else drawn(task.labels, PAPER_K, seed)
    label_of = dict(zip(*load_rows(data / SOURCES[name].folder, "train", space), strict=True))
    pool = _shuffled(task.pool, name)
    return Setting(name, space, pool, task.texts, task.truth, [label_of[text] for text in pool])


def example(name: str, data: Path) -> Setting:
    """Return a set with the label file of `examples/`, and all its test rows."""
    task = load_task(name, data, "official")
    return Setting(name, task.labels, _shuffled(task.pool, name), task.texts, task.truth)


@functools.lru_cache(maxsize=2)
def named(name: str, data: Path, test_rows: int) -> Setting:
    """Return a set whose labels have a sentence each."""
    task = load_bench(name, data=data)
    names = [task.space.names[column] for column in task.targets.tolist()]
    rows = list(zip(task.texts, names, strict=True))
    random.Random(child_seed(0, "test", name)).shuffle(rows)
    source = NAMED[name]
    if source is None:
        half = len(rows) // 2
        pool, rows = [text for text, _ in rows[:half]], rows[half:]
    else:
        tested = set(task.texts)
        pool = [text for text in pq.read_table(data / f"{source}.parquet")["text"].to_pylist() if text not in tested]
    rows = rows[:test_rows]
    return Setting(name, task.space, _shuffled(pool, name), [text for text, _ in rows], [truth for _, truth in rows])


def _shuffled(pool: list[str], name: str) -> list[str]:
    order = list(dict.fromkeys(pool))
    random.Random(child_seed(0, "pool", name)).shuffle(order)
    return order
