"""Encoding of documents in windows, each distinct document once."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.distinct import in_windows
from labelspace.corpus import Documents, Kind
from labelspace.encoders import Encoder
from labelspace.progress import Progress, silent
from labelspace.training.features import plain_vectors
from labelspace.training.rows import Document, tokenize

Matrix = NDArray[np.float32]


def windowed(
    documents: Sequence[Any], width: int, work: Callable[[list[Any]], Matrix], *, labels: int | None = None
) -> Matrix:
    """Apply `work` to the documents of each window; return its results, [text width].

    Args:
        documents: texts, or pairs of texts.
        width: number of columns of a result.
        work: returns the results of different documents, [text width].
        labels: number of labels, which limits a window; None: `width`.
    """
    found = np.empty((len(documents), width), dtype=np.float32)
    for rows, window, each in in_windows(documents, labels or width):
        results = work(window)
        found[rows] = results if len(results) == len(rows) else results[each]  # a copy of thousands of columns less
    return found


def vectors_of(encoder: Encoder, documents: Sequence[Document]) -> Matrix:
    """Return the encoder's unit vectors of texts or pairs, tokenised as in LaCon's training."""
    return plain_vectors(encoder, tokenize(encoder, documents), words=False)


def own_vectors(encoder: Encoder, documents: Documents, report: Progress = silent) -> Matrix:
    """Return the encoder's own vectors of documents, [text dim]; `report` gets the number of texts done."""
    if documents.kind is Kind.PAIRS:
        return vectors_of(encoder, documents)
    return encoder.encode(documents.rows, report=report)
