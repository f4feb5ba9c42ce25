"""The eight tasks of table 1, and fixed draws of their rows."""

import functools
import hashlib
import json
import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from labelspace.seeds import child_seed

# The MASSIVE sets lack two intents less when the validation rows are trained on too: see the data's README.
WITH_VALIDATION = ("massive_intent", "massive_scenario")
SETS: Mapping[str, str] = {
    "amazon_counterfactual": "AmazonCounterfactual",
    "banking77": "Banking77",
    "imdb": "Imdb",
    "mtop_domain": "MTOPDomain",
    "massive_intent": "MassiveIntent",
    "massive_scenario": "MassiveScenario",
    "toxic_conversations": "ToxicConversations",
    "tweet_sentiment_extraction": "TweetSentiment",
}

OTHER_TRAIN_ROWS = ("massive_intent", "massive_scenario")
"""Trained on the corpus that SLURP, and so MASSIVE, was built from: MASSIVE's own train rows are not in the data."""

NOT_COMPARABLE = (*OTHER_TRAIN_ROWS, "mtop_domain", "toxic_conversations")
"""Sets whose scores do not stand beside the paper's: other train rows, or few of its test rows."""


@dataclass(frozen=True)
class Rows:
    """Labelled texts."""

    texts: list[str]
    truth: list[str]

    def __len__(self) -> int:
        return len(self.truth)

    def take(self, rows: Sequence[int]) -> "Rows":
        """Return some of the rows."""
        return Rows([self.texts[row] for row in rows], [self.truth[row] for row in rows])


@functools.cache
def revision(folder: Path) -> str:
    """Which data this is: the commits that it was taken from; where `meta.json` names none, a hash of the files."""
    sources = json.loads((folder / "meta.json").read_text(encoding="utf-8")).get("source", [])
    if sources:
        return ", ".join(f"{source['repo']}@{source['commit']}" for source in sources)
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        digest.update(path.read_bytes())
    return f"sha256:{digest.hexdigest()}"


@functools.lru_cache(maxsize=2)
def read(folder: Path, split: str) -> Rows:
    """Read one split."""
    names = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["label_names"]
    table = pq.read_table(folder / f"{split}.parquet")
    return Rows(table["text"].to_pylist(), [names[label] for label in table["label"].to_pylist()])


def train_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return the rows to train on: one draw, each class by its share and with one row at least."""
    rows = read(data / "mteb" / name, "train")
    if name in WITH_VALIDATION:
        more = read(data / "mteb" / name, "validation")
        rows = Rows(rows.texts + more.texts, rows.truth + more.truth)
    if most is None or len(rows) <= most:
        return rows
    share = most / len(rows)
    chosen: list[int] = []
    for label in sorted(set(rows.truth)):
        own = [row for row, truth in enumerate(rows.truth) if truth == label]
        count = max(1, round(share * len(own)))
        chosen += random.Random(child_seed(0, "train", name, label)).sample(own, count)
    return rows.take(sorted(chosen))


def test_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return the scored rows: one draw."""
    rows = read(data / "mteb" / name, "test")
    if most is None or len(rows) <= most:
        return rows
    return rows.take(sorted(random.Random(child_seed(0, "test", name)).sample(range(len(rows)), most)))
