"""Scores of different labels on one scale: standardised over unlabelled documents."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

FEW = 20
"""With fewer documents of other labels, all are the standard of a label."""

LEAST = 1e-6
"""Least standard deviation, so that a label whose scores are all alike divides nothing by zero."""


@final
@dataclass(frozen=True)
class Standard:
    """Mean and standard deviation of each label's score over a pool of documents.

    Some labels are near every document. How unusual a score is for its label says more than the score.

    Example:
        >>> scores = np.array([[0.1, 0.5], [0.3, 0.7]], dtype=np.float32)
        >>> Standard.of(("sports", "money"), scores).apply(("sports", "money"), scores).round(2).tolist()
        [[-1.0, -1.0], [1.0, 1.0]]
    """

    of_labels: Mapping[str, tuple[float, float]]
    """Mean and standard deviation by label name."""

    @classmethod
    def of(cls, labels: Sequence[str], scores: NDArray[np.float32], best: NDArray[np.intp] | None = None) -> "Standard":
        """Return the standard of some scores.

        Args:
            labels: [label] names.
            scores: [text label] scores of the pool.
            best: [text] column of each document's likeliest label, to take each label's standard from the documents of
                the others, unless there are fewer than twenty: where most documents have one label, its scores would
                be the standard else. None: all documents count.
        """
        wide = scores.astype(np.float64)
        pairs = {}
        for column, name in enumerate(labels):
            own = wide[:, column]
            others = own if best is None else own[best != column]
            used = others if len(others) >= FEW else own
            pairs[name] = (float(used.mean()), max(float(used.std()), LEAST))
        return cls(pairs)

    def apply(self, labels: Sequence[str], scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return scores in standard deviations above the mean of their label, [text label].

        Args:
            labels: [label] names, all of them known.
            scores: [text label].
        """
        mean, deviation = np.array([self.of_labels[name] for name in labels]).T
        return (scores.astype(np.float64) - mean) / deviation

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> "Standard":
        """Return the standard with a label renamed or removed."""
        return Standard(change(dict(self.of_labels)))

    def to_dict(self) -> dict[str, list[float]]:
        """Return plain values, ready for JSON; `from_dict` is the inverse."""
        return {name: list(pair) for name, pair in self.of_labels.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Standard":
        """Return the standard that `to_dict` was called on."""
        return cls({name: (float(mean), float(deviation)) for name, (mean, deviation) in values.items()})
