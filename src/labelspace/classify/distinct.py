"""Distinct documents, in windows of as many as the encoder sorts together."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelspace.config.encoding import WINDOW

CELLS = 2**23
"""Most scores, documents times labels, that are computed together: 64 MiB in float64."""

KEPT = 2**26
"""Most scores of documents that are encoded together: 256 MiB in float32."""

TILE = 2**17
"""Scores that a processor's cache holds, 1 MiB in float64: several steps on each tile are faster than each on all."""


def at_once(labels: int) -> int:
    """Return how many documents are compared with so many labels together: a window, or fewer of thousands of labels.

    Example:
        >>> at_once(100), at_once(2048), at_once(10_000)
        (4096, 4096, 838)
    """
    return _most(CELLS, labels)


def _most(cells: int, labels: int) -> int:
    return max(1, min(WINDOW, cells // max(labels, 1)))


def tiles(rows: int, labels: int) -> Iterator[slice]:
    """Yield the rows of a matrix [row label] in parts that a processor's cache holds.

    Example:
        >>> list(tiles(3, TILE // 2))
        [slice(0, 2, None), slice(2, 3, None)]
    """
    size = max(1, TILE // max(labels, 1))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def in_windows(
    documents: Sequence[Any], labels: int = 1
) -> Iterator[tuple[NDArray[np.intp], list[Any], NDArray[np.intp]]]:
    """Yield the distinct documents, in windows of as many as the encoder sorts together, or as `labels` leave room for.

    Holding tokens, vectors and means of all documents would take many times the memory of the scores. A repeated
    document is encoded once: in another batch its last bits could differ, and a tie would then depend on the processor.

    Args:
        documents: texts, or pairs of texts.
        labels: number of labels that they are compared with.

    Yields:
        The rows of a window; its distinct documents; for each row, the index of its document in the window.
    """
    first: dict[Any, int] = {}
    place = np.fromiter((first.setdefault(document, len(first)) for document in documents), np.intp, len(documents))
    different, size = list(first), _most(KEPT, labels)
    rows = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[rows], np.arange(size, len(different) + size, size))
    start = 0
    for number, end in enumerate(ends):
        at = number * size
        yield rows[start:end], different[at : at + size], place[rows[start:end]] - at
        start = end
