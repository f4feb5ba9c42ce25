"""Which rows of each benchmark set are here, beside those that the published figures are of.

What differs is what the data's own notes say; a test holds the two together, and `ResultStore` has the counts.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from layout import markdown

from labelspace.bench.cards import BTZSC, MTEB
from labelspace.bench.published import published_scores

MARK = "‡"
OTHER_NOTE = f"{MARK} Other rows than the benchmark's, so no figure to set beside a published one."
SAME = "nothing"


class Rows(NamedTuple):
    """What is here of a set."""

    differ: str
    """How the scored rows differ from the benchmark's, before it draws from them."""

    comparable: bool = True
    """False: they are not a draw of the same texts."""


ROWS: Mapping[str, Rows] = {
    "amazonpolarity": Rows("other reviews: household appliances alone, no titles", comparable=False),
    "imdb": Rows("another random draw from the 25,000 official rows"),
    "yelpreviews": Rows("other reviews, not the official split", comparable=False),
    "rottentomatoes": Rows(SAME),
    "emotiondair": Rows(SAME),
    "banking77": Rows("the 200 rows of the five intents without a hypothesis are left out"),
    "massive": Rows("from SLURP, the release that MASSIVE is made of; the 169 rows without a hypothesis are left out"),
    "agnews": Rows(SAME),
    "manifesto": Rows("a sample, and single sentences; the benchmark joins two", comparable=False),
    "capsotu": Rows("all of 23 speeches in an earlier release; the benchmark draws from all", comparable=False),
    "wikitoxic_toxicaggregated": Rows("another random draw from the official test rows"),
    "wikitoxic_obscene": Rows("a small sample, mostly train rows", comparable=False),
    "wikitoxic_insult": Rows("a small sample, mostly train rows", comparable=False),
    "mteb/amazon_counterfactual": Rows(SAME),
    "mteb/massive_scenario": Rows("from SLURP, the release that MASSIVE is made of"),
    "mteb/imdb": Rows("a random draw from the official rows"),
    "mteb/tweet_sentiment_extraction": Rows(SAME),
    "mteb/banking77": Rows(SAME),
    "mteb/massive_intent": Rows("from SLURP, the release that MASSIVE is made of"),
    "mteb/mtop_domain": Rows("a sample of the official rows"),
    "mteb/toxic_conversations": Rows("a draw of 100", comparable=False),
}


def comparable(name: str) -> bool:
    """Say whether the rows here are the benchmark's, or a draw of them."""
    return name in ROWS and ROWS[name].comparable


def with_mark(name: str) -> str:
    """Return the name of a set, with a mark where its rows are others."""
    return name if name not in ROWS or comparable(name) else name + MARK


def noted(text: str) -> str:
    """Return a table with the note that explains its marks, where it has any."""
    return f"{text}\n\n{OTHER_NOTE}" if MARK in text else text


def published_rows(name: str) -> int | None:
    """Return how many rows the published figures of a set are of: the fewest that give every published accuracy.

    The paper does not say; its accuracies have four decimals. None: no number of rows that is known gives them.
    """
    accuracies = [scores[name] for scores in published_scores("accuracy").values()]
    card = BTZSC.get(name) or MTEB[name]
    for count in (1000, 2000, card.rows):
        if count and all(abs(own - round(own * count) / count) < 1e-4 for own in accuracies):
            return count
    return None


def table(here: Mapping[str, int], sets: Iterable[str]) -> str:
    """Lay out the sets: rows here, in the benchmark, behind the published figures, and what differs."""
    rows = []
    for name in (name for name in sets if name in here):
        card = BTZSC.get(name) or MTEB[name]
        counts = (here[name], card.rows, published_rows(name))
        rows.append([with_mark(name), *("-" if count is None else f"{count:,}" for count in counts), ROWS[name].differ])
    head = ["data set", "rows here", "rows of the benchmark", "rows of the published figures", "what differs"]
    return noted(markdown(head, rows))
