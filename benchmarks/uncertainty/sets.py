"""The eight tasks of table 1, and fixed samples of their rows."""

import functools
import hashlib
import json
import random
from collections.abc import Mapping
from pathlib import Path

from rows import Rows, read

from labelspace.seeds import child_seed

# Training on the validation rows as well adds two intents to the MASSIVE sets, see the data's README.
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
"""Sets trained on the corpus that SLURP, and so MASSIVE, was built from, as the data lacks MASSIVE's train rows."""

NOT_COMPARABLE = (*OTHER_TRAIN_ROWS, "mtop_domain", "toxic_conversations")
"""Sets whose scores are not comparable with the paper's: other train rows, or few of its test rows."""


@functools.cache
def revision(folder: Path) -> str:
    """Return the revision of the data: its source commits, or a hash of the files if `meta.json` names none."""
    sources = json.loads((folder / "meta.json").read_text(encoding="utf-8")).get("source", [])
    if sources:
        return ", ".join(f"{source['repo']}@{source['commit']}" for source in sources)
    digest = hashlib.sha256()
    for path in sorted(folder.glob("*.parquet")):
        digest.update(path.read_bytes())
    return f"sha256:{digest.hexdigest()}"


def train_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return the rows to train on: one stratified sample with at least one row of each class."""
    rows = read(data / "mteb" / name, "train")
    if name in WITH_VALIDATION:
        rows += read(data / "mteb" / name, "validation")
    if most is None or len(rows) <= most:
        return rows
    share = most / len(rows)
    chosen: list[int] = []
    for label in rows.names:
        own = rows.of_class(label)
        count = max(1, round(share * len(own)))
        chosen += random.Random(child_seed(0, "train", name, label)).sample(own, count)
    return rows.take(sorted(chosen))


def test_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return the scored rows: one sample."""
    rows = read(data / "mteb" / name, "test")
    if most is None or len(rows) <= most:
        return rows
    return rows.take(sorted(random.Random(child_seed(0, "test", name)).sample(range(len(rows)), most)))
