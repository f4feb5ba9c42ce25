"""What a hosted view will cost, told before its first call."""

import logging

from labelspace.consensus.store import ScoreStore
from labelspace.families.endpoint import MAX_CHARACTERS
from labelspace.families.endpoint_question import Question
from labelspace.labels import LabelSpace

_logger = logging.getLogger("labelspace")


def calls_of(view: str, store: ScoreStore, space: LabelSpace, *, price: float | None) -> str:
    """Return how many calls a hosted view needs, their tokens and, with a price per million tokens, their cost.

    Example:
        >>> space = LabelSpace.from_dict({"labels": {"sports": "Matches.", "money": "Banks."}})
        >>> store = ScoreStore(None, "openai:m@http://localhost/v1", ["a match", "a bank"], space)
        >>> calls_of("openai:m@http://localhost/v1", store, space, price=2.5).partition(";")[0]
        'openai:m@http://localhost/v1: 2 calls, about 207 tokens of input, about 0.00052 at 2.5 per million'
    """
    missing, kept = store.missing, store.documents - len(store.missing)
    question = Question.of(space, max_characters=MAX_CHARACTERS)
    tokens = sum(question.tokens(text) for text in missing)
    parts = [f"{view}: {len(missing):,} call{'' if len(missing) == 1 else 's'}"]
    if missing:
        parts.append(f"about {tokens:,} tokens of input")
    if missing and price is not None:
        parts.append(f"about {tokens * price / 1e6:.2g} at {price:g} per million")
    told = ", ".join(parts)
    if kept:
        told += f"; {kept:,} of {store.documents:,} documents are answered already"
    if missing and not store.keeps:
        told += "; without a checkpoint folder, the answers are lost if the fit is stopped"
    return f"{told}."


def tell_calls(view: str, store: ScoreStore, space: LabelSpace, *, price: float | None) -> None:
    """Log `calls_of` for a view that is hosted."""
    if view.startswith("openai:"):
        _logger.info(calls_of(view, store, space, price=price))
