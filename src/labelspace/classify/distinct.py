"""Distinct documents, in windows of as many as the encoder sorts together."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from labelspace.config.encoding import WINDOW


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
