"""Metadata of each data set, known before any row is read: 22 of BTZSC and 8 of MTEB (English, v2).

Texts and hypotheses are not stored here; they come with the data at run time (`tasks.load_task`).
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
"""The paper's metrics for each data set (section 3.1); `evaluate.metrics` explains the names."""

THEIR_NAMES = {metric: metric.removesuffix("_predicted") for metric in METRICS}
"""The names of these metrics in the paper, on its leaderboard, and in stores of schema 1."""

PAPER_IN_FULL = ("rottentomatoes", "financialphrasebank")
"""Sets that the paper scores in full. On the others its accuracies are whole thousandths, so it used 1,000 rows."""


SAME_LABELS = {"mteb/banking77": "banking77", "mteb/massive_intent": "massive", "mteb/imdb": "imdb"}
"""MTEB sets with the labels of a BTZSC set; the paper has one column of scores for both."""


@final
@dataclass(frozen=True, kw_only=True)
class TaskCard:
    """One data set of a benchmark."""

    name: str
    """Unique name: as in the btzsc repository, `"mteb/..."` for the MTEB sets, `"own/..."` for the user's own file."""

    benchmark: str
    """`"btzsc"`, `"mteb"` or `"own"`."""

    family: str
    """One of `FAMILIES`, grouped for MTEB as in the paper's appendix E; `"own"` for the user's own file."""

    domain: str
    """Domain of the texts, as in Table 1."""

    classes: int
    """Number of candidate labels. banking77 has 72: the published hypotheses leave out 5 of its 77 classes."""

    licence: str
    """Licence of the data (Table 3)."""

    source: str
    """Authors of the data."""

    rows: int | None
    """Rows of the whole test set; None: unknown. A local copy may hold fewer."""

    checksum: str | None = None
    """`rows_checksum` of the folder copy behind the shipped results; None: no such copy. Rows read from the hub are
    identified by their commit instead."""


@final
@dataclass(frozen=True, kw_only=True)
class Rows:
    """All rows that a reader found, before any are left out."""

    space: LabelSpace
    """The candidate labels, each with its verbalizer."""

    texts: list[str]
    """[text] the documents."""

    targets: list[int]
    """[text] column of each document's label; -1 for a class without a verbalizer."""

    notes: tuple[str, ...]
    """Remarks to print beside results."""

    revision: str | None = None
    """Commit of the hub repository; None for rows from elsewhere."""


def _cards(benchmark: str) -> Mapping[str, TaskCard]:
    text = resources.files("labelspace.bench").joinpath("data/tasks.yaml").read_text(encoding="utf-8")
    content = yaml.safe_load(text)
    entries: dict[str, list[Any]] = content[benchmark]
    keys = ("family", "domain", "classes", "rows", "licence", "source")
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
