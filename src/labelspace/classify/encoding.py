"""Encoding of documents in windows, each distinct document once."""

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
    """Yield the distinct documents, in windows of as many as the encoder sorts together.

    Holding tokens, vectors and means of all documents would take many times the memory of the scores. A repeated
    document is encoded once: in another batch its last bits could differ, and a tie would then depend on the processor.

    Args:
        documents: texts, or pairs of texts.

    Yields:
        The rows of a window; its distinct documents; for each row, the index of its document in the window.
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
    """Apply `work` to the documents of each window; return its results, [text width]."""
    found = np.empty((len(documents), width), dtype=np.float32)
    for rows, window, each in in_windows(documents):
        found[rows] = work(window)[each]
    return found


def plain(encoder: Encoder, documents: Sequence[Document]) -> Matrix:
    """Return the encoder's unit vectors of texts or pairs, tokenised as in LaCon's training."""
    return answers(encoder, tokenize(encoder, documents), plain_vectors, words=False, width=encoder.dimension)


def own_vectors(encoder: Encoder, documents: Documents) -> Matrix:
    """Return the encoder's own vectors of documents, [text dim]."""
    return encoder.encode(documents.rows) if documents.kind is Kind.TEXTS else plain(encoder, documents)
