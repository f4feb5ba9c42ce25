"""The rows of each benchmark set in our data, compared with the rows behind the published scores.

The differences repeat the notes of the data, which a test checks; the row counts come from the `ResultStore`.
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
    """Our rows of a set."""

    differ: str
    """Difference from the benchmark's rows before sampling."""

    comparable: bool = True
    """False if our rows are not a sample of the same texts."""


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


PAPER_TOKENS: Mapping[str, int] = {
    "amazonpolarity": 103,
    "imdb": 293,
    "yelpreviews": 164,
    "rottentomatoes": 26,
    "emotiondair": 20,
    "banking77": 13,
    "massive": 8,
    "agnews": 54,
    "manifesto": 45,
    "capsotu": 44,
    "wikitoxic_toxicaggregated": 86,
    "wikitoxic_obscene": 91,
    "wikitoxic_insult": 93,
}
"""Mean tokens of a text in table 1, by ModernBERT's tokenizer."""


def comparable(name: str) -> bool:
    """Return whether our rows are the benchmark's, or a sample of them."""
    return name in ROWS and ROWS[name].comparable


def with_mark(name: str) -> str:
    """Return the name of a set, marked if its rows are not comparable."""
    return name if name not in ROWS or comparable(name) else name + MARK


def noted(text: str) -> str:
    """Add the note that explains the marks to a table that has some."""
    return f"{text}\n\n{OTHER_NOTE}" if MARK in text else text


def published_rows(name: str) -> int | None:
    """Infer the number of rows behind the published scores of a set: the smallest that allows every published accuracy.

    The paper does not state it; its accuracies have four decimals. None: no candidate number fits.
    """
    accuracies = [scores[name] for scores in published_scores("accuracy").values()]
    card = BTZSC.get(name) or MTEB[name]
    for count in (1000, 2000, card.rows):
        if count and all(abs(own - round(own * count) / count) < 1e-4 for own in accuracies):
            return count
    return None


def table(here: Mapping[str, int], sets: Iterable[str], tokens: Mapping[str, float]) -> str:
    """Make the table of sets: our rows, the benchmark's, those behind the published scores, tokens, the difference."""
    rows = []
    for name in (name for name in sets if name in here):
        card = BTZSC.get(name) or MTEB[name]
        counts = (here[name], card.rows, published_rows(name), tokens.get(name), PAPER_TOKENS.get(name))
        shown = ["-" if count is None else f"{count:,.0f}" for count in counts]
        rows.append([with_mark(name), *shown, ROWS[name].differ])
    rows_of = ["rows here", "rows of the benchmark", "rows of the published figures"]
    head = ["data set", *rows_of, "tokens a text here", "tokens in table 1", "what differs"]
    return noted(markdown(head, rows))
