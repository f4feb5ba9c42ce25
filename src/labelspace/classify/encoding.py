"""Documents through an encoder, as many at a time as it sorts together, each different one once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import Documents, Kind
from labelspace.encoders import Encoder
from labelspace.encoders.encoder import WINDOW
from labelspace.training.features import answers, plain_vectors
from labelspace.training.rows import Document, tokenize

Matrix = NDArray[np.float32]


def in_windows(documents: Sequence[Any]) -> Iterator[tuple[NDArray[np.intp], list[Any], NDArray[np.intp]]]:
    """Yield the different documents, as many at a time as the encoder sorts together.

    Tokens, vectors and means of all of them would take many times the memory of the scores. A document that comes
    again is not encoded again: at another place of a batch its last bits would differ, and with them a tie would go
    one way on one processor and another way on the next.

    Args:
        documents: texts, or pairs of texts.

    Yields:
        Rows of the documents that these stand for; the different documents; for each row which of them it is.
    """
    first: dict[Any, int] = {}
    place = np.fromiter((first.setdefault(document, len(first)) for document in documents), np.intp, len(documents))
    different = list(first)
    rows = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[rows], np.arange(WINDOW, len(different) + WINDOW, WINDOW))
    start = 0
    for number, end in enumerate(ends):
        at = number * WINDOW
        yield rows[start:end], different[at : at + WINDOW], place[rows[start:end]] - at
        start = end


def windowed(documents: Sequence[Any], width: int, work: Callable[[list[Any]], Matrix]) -> Matrix:
    """Return what `work` makes of the documents of one window after another, [text width]."""
    found = np.empty((len(documents), width), dtype=np.float32)
    for rows, window, each in in_windows(documents):
        found[rows] = work(window)[each]
    return found


def plain(encoder: Encoder, documents: Sequence[Document]) -> Matrix:
    """Return unit vectors of texts or pairs of texts by the encoder alone, tokenised as in LaCon's training."""
    return answers(encoder, tokenize(encoder, documents), plain_vectors, words=False, width=encoder.dimension)


def own_vectors(encoder: Encoder, documents: Documents) -> Matrix:
    """Return the encoder's own vectors of documents, [text dim]."""
    return encoder.encode(documents.rows) if documents.kind is Kind.TEXTS else plain(encoder, documents)
