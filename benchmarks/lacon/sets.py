"""The data sets of tables 1 and 4, and draws of their rows.

Label names come from y alone, as in the paper: its label embeddings start at random (section 2.1), and these labels
have no descriptions.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rows import Rows, read

from labelspace.seeds import child_seed


@dataclass(frozen=True)
class Source:
    """Where a data set is and how the paper scores it."""

    title: str
    folder: str
    metric: str
    """`"accuracy"`, `"macro_f1_predicted"` or `"matthews"` (table 1; accuracy for the two that only table 4 has)."""

    whole: bool = False
    """True: the paper trains on all rows (section 3.1), so a smaller draw keeps the shares of the classes."""

    dev: bool = False
    """True: there is a second labelled split to draw few-shot rows from."""

    english: bool = True
    """False: more than half of the tokens are unknown to the encoders that run here, so it tells little of methods."""

    most: int | None = None
    """Rows of each class that few-shot training and its held-out rows can have; None: as many as are asked for."""


SETS: Mapping[str, Source] = {
    "yelp_polarity": Source("YelpRev", "glue/yelp_polarity", "accuracy"),
    "dbpedia": Source("DBPedia", "glue/dbpedia", "accuracy"),
    "tnews": Source("Tnews", "clue/tnews", "macro_f1_predicted", english=False, most=20),
    "qnli": Source("QNLI", "glue/qnli", "accuracy"),
    "rte": Source("RTE", "glue/rte", "accuracy", whole=True),
    "qqp": Source("QQP", "glue/qqp", "accuracy"),
    "mrpc": Source("MRPC", "glue/mrpc", "accuracy", whole=True),
    "cola": Source("CoLA", "glue/cola", "matthews", whole=True),
    "eprstmt": Source("EPRSTMT", "clue/eprstmt", "accuracy", dev=True, english=False, most=50),
    "bustm": Source("BUSTM", "clue/bustm", "accuracy", dev=True, english=False, most=50),
}
MAIN = ("yelp_polarity", "dbpedia", "tnews", "qnli", "rte", "qqp", "mrpc", "cola")
FEW = ("yelp_polarity", "tnews", "eprstmt", "bustm", "qnli", "rte", "mrpc", "qqp")
PER_CLASS_OF_TWO, PER_CLASS_OF_MORE = 5000, 1000


def train_rows(name: str, data: Path, *, few: bool = False) -> Rows:
    """Return what may be trained on; `few` adds the second split of the FewCLUE sets."""
    source = SETS[name]
    rows = read(data / source.folder, "train")
    if few and source.dev:
        return rows + read(data / source.folder, "dev")
    return rows


def test_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return what is scored: `validation`, the same draw whatever the seed."""
    rows = read(data / SETS[name].folder, "validation")
    return rows if most is None else rows.take(sorted(shuffled(range(len(rows)), 0, "scored", name)[:most]))


def shuffled(rows: Sequence[int], seed: int, *words: str) -> list[int]:
    """Return the rows in an order that the seed decides; what is drawn is its beginning, so small draws are nested."""
    order = list(rows)
    random.Random(child_seed(seed, *words)).shuffle(order)
    return order


def drawn(rows: Rows, counts: Mapping[str, int], seed: int) -> Rows:
    """Draw so many rows of each label, without replacement; fewer where a label has fewer."""
    orders = {name: shuffled(rows.of_class(name), seed, "rows", name) for name in counts}
    return rows.take([row for name, count in counts.items() for row in orders[name][:count]])


def sample(name: str, rows: Rows, most: int | None, seed: int) -> Rows:
    """Draw the train rows of a repeat as section 3.1 does, or a smaller sample of the same kind.

    Args:
        name: of the data set.
        rows: the train split.
        most: rows in all; None: the paper's number.
        seed: of the draw.
    """
    if SETS[name].whole:
        return rows if most is None else rows.take(shuffled(range(len(rows)), seed, "rows")[:most])
    names = rows.names
    if most is None:
        count = PER_CLASS_OF_TWO if len(names) == 2 else PER_CLASS_OF_MORE
    else:
        count = max(1, most // len(names))
    return drawn(rows, dict.fromkeys(names, count), seed)
