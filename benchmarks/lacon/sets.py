"""The data sets of tables 1 and 4, and samples of their rows.

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
    """A data set's files, and the paper's metric for it."""

    title: str
    folder: str
    metric: str
    """`"accuracy"`, `"macro_f1_predicted"` or `"matthews"` (table 1; accuracy for the two that only table 4 has)."""

    whole: bool = False
    """True: the paper trains on all rows (section 3.1), so a smaller sample keeps the class shares."""

    dev: bool = False
    """True: few-shot rows can also be drawn from a second labelled split."""

    english: bool = True
    """False: our encoders do not know more than half of the tokens, so the set says little about methods."""

    most: int | None = None
    """Maximum rows of each class for few-shot training and its held-out rows; None: no maximum."""


SETS: Mapping[str, Source] = {
    "yelp_polarity": Source("YelpRev", "glue/yelp_polarity", "accuracy"),
    "dbpedia": Source("DBPedia", "glue/dbpedia", "accuracy"),
    "tnews": Source("Tnews", "clue/tnews", "macro_f1_predicted", english=False, most=20),
    "qnli": Source("QNLI", "glue/qnli", "accuracy"),
    "rte": Source("RTE", "glue/rte", "accuracy", whole=True),
    "qqp": Source("QQP", "glue/qqp", "accuracy"),
    "mrpc": Source("MRPC", "glue/mrpc", "accuracy", whole=True),
    "cola": Source("CoLA", "glue/cola", "matthews", whole=True),
    "sst2": Source("SST-2", "glue/sst2", "accuracy"),
    "mnli": Source("MNLI", "glue/mnli", "accuracy"),
    "eprstmt": Source("EPRSTMT", "clue/eprstmt", "accuracy", dev=True, english=False, most=50),
    "bustm": Source("BUSTM", "clue/bustm", "accuracy", dev=True, english=False, most=50),
}
MAIN = ("yelp_polarity", "dbpedia", "tnews", "qnli", "rte", "qqp", "mrpc", "cola", "sst2", "mnli")
"""The sets of table 2, and of table 7 those that are here."""

FEW = ("yelp_polarity", "tnews", "eprstmt", "bustm", "qnli", "rte", "mrpc", "qqp")
PER_CLASS_OF_TWO, PER_CLASS_OF_MORE = 5000, 1000


def train_rows(name: str, data: Path, *, few: bool = False) -> Rows:
    """Return the rows to train on; `few` adds the second split of the FewCLUE sets."""
    source = SETS[name]
    rows = read(data / source.folder, "train")
    if few and source.dev:
        return rows + read(data / source.folder, "dev")
    return rows


def test_rows(name: str, data: Path, most: int | None) -> Rows:
    """Return the scored rows of the split `validation`, the same sample for every seed."""
    rows = read(data / SETS[name].folder, "validation")
    return rows if most is None else rows.take(sorted(shuffled(range(len(rows)), 0, "scored", name)[:most]))


def shuffled(rows: Sequence[int], seed: int, *words: str) -> list[int]:
    """Shuffle rows by the seed; samples are taken from the beginning, so they are nested."""
    order = list(rows)
    random.Random(child_seed(seed, *words)).shuffle(order)
    return order


def drawn(rows: Rows, counts: Mapping[str, int], seed: int) -> Rows:
    """Draw `counts` rows of each label without replacement, or all if a label has fewer."""
    orders = {name: shuffled(rows.of_class(name), seed, "rows", name) for name in counts}
    return rows.take([row for name, count in counts.items() for row in orders[name][:count]])


def sample(name: str, rows: Rows, most: int | None, seed: int) -> Rows:
    """Draw the train rows of a repeat as section 3.1 does, or a smaller sample of the same kind.

    Args:
        name: name of the data set.
        rows: the train split.
        most: total number of rows; None: the paper's number.
        seed: seed of the sample.
    """
    if SETS[name].whole:
        return rows if most is None else rows.take(shuffled(range(len(rows)), seed, "rows")[:most])
    names = rows.names
    if most is None:
        count = PER_CLASS_OF_TWO if len(names) == 2 else PER_CLASS_OF_MORE
    else:
        count = max(1, most // len(names))
    return drawn(rows, dict.fromkeys(names, count), seed)
