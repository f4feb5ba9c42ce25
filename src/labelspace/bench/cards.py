"""What is known of each data set before any of its rows is read: 22 of BTZSC and 8 of MTEB (English, v2).

No text and no hypothesis is here; those come with the data at run time (`tasks.load_task`).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from types import MappingProxyType
from typing import Any, final

import yaml

from labelspace.checks import did_you_mean
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace

FAMILIES = ("sentiment", "topic", "intent", "emotion")
"""The four kinds of task, in the order of the leaderboard."""

METRICS = ("macro_f1_predicted", "accuracy", "macro_precision_predicted", "macro_recall_predicted")
"""The numbers that the paper gives for each data set (section 3.1); on the names see `evaluate.metrics`."""

THEIR_NAMES = {metric: metric.removesuffix("_predicted") for metric in METRICS}
"""What the paper, its leaderboard, and stores of schema 1 call them."""

PAPER_IN_FULL = ("rottentomatoes", "financialphrasebank")
"""The sets that the paper's tables are computed on in full: its accuracies on the others are whole thousandths."""


SAME_LABELS = {"mteb/banking77": "banking77", "mteb/massive_intent": "massive", "mteb/imdb": "imdb"}
"""MTEB sets with the labels of a BTZSC set; the paper has one column of scores for both."""


@final
@dataclass(frozen=True, kw_only=True)
class TaskCard:
    """One data set of a benchmark."""

    name: str
    """Unique: as in the btzsc repository, `"mteb/..."` for the MTEB sets, `"own/..."` for a file of one's own."""

    benchmark: str
    """`"btzsc"`, `"mteb"` or `"own"`."""

    family: str
    """One of `FAMILIES`, for MTEB as the paper's appendix E groups it; `"own"` for a file of one's own."""

    domain: str
    """Where the texts are from, as Table 1 has it."""

    classes: int
    """Candidate labels. banking77 has 72: the published hypotheses leave out 5 of its 77 classes."""

    license: str
    """What the publisher of the data allows (Table 3)."""

    source: str
    """Who made the data."""

    rows: int | None
    """Rows of the whole test set in the benchmark, None where it is not known; a local copy may hold fewer."""

    checksum: str | None = None
    """`rows_checksum` of the copy in a folder that the shipped results are of; None: there was none. The hub's rows
    were never at hand: what is read there is known by its commit."""


@final
@dataclass(frozen=True, kw_only=True)
class Rows:
    """What a reader found, before anything is left out of it."""

    space: LabelSpace
    """The candidate labels, each with its verbalizer."""

    texts: list[str]
    """[text] the documents."""

    targets: list[int]
    """[text] column of each document's label; -1: its class has no verbalizer."""

    notes: tuple[str, ...]
    """What a reader of the numbers should know."""

    revision: str | None = None
    """Commit of the hub's repository; None elsewhere."""


def _cards(benchmark: str) -> Mapping[str, TaskCard]:
    text = resources.files("labelspace.bench").joinpath("data/tasks.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    entries: dict[str, list[Any]] = content[benchmark]
    keys = ("family", "domain", "classes", "rows", "license", "source")
    return MappingProxyType(
        {
            name: TaskCard(
                name=name,
                benchmark=benchmark,
                checksum=content["checksums"].get(name),
                **dict(zip(keys, entry, strict=True)),
            )
            for name, entry in entries.items()
        }
    )


BTZSC: Mapping[str, TaskCard] = _cards("btzsc")
"""The 22 sets of the benchmark (Table 1), by name."""

MTEB: Mapping[str, TaskCard] = _cards("mteb")
"""The 8 English classification sets of MTEB v2 (appendix E), by name."""


def card_of(name: str) -> TaskCard:
    """Return the card of a data set.

    Args:
        name: a name of `BTZSC` or `MTEB`.

    Raises:
        ConfigError: there is no such data set.

    Example:
        >>> card_of("agnews").family, card_of("agnews").classes
        ('topic', 4)
        >>> len(BTZSC), len(MTEB)
        (22, 8)
    """
    card = BTZSC.get(name) or MTEB.get(name)
    if card is None:
        known = [*BTZSC, *MTEB]
        raise ConfigError(f"there is no data set {name!r}.{did_you_mean(str(name), known)} Known: {', '.join(known)}.")
    return card
