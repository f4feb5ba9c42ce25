"""Metrics of a model that gives each document a set of labels, counted batch by batch, and their intervals.

The intervals of F1 come from a Poisson bootstrap: in each repeat a document counts as often as a draw of the Poisson
distribution with mean 1 says. For many documents that is a draw with replacement, but batches can be counted and
forgotten (Chamandy et al., 2012, "Estimating uncertainty for massive data streams").
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelspace.evaluate.intervals import (
    BLOCK,
    FEW,
    REPEATS,
    Interval,
    SeveralDifference,
    SeveralIntervals,
    around,
    paired_difference,
    wilson,
)
from labelspace.evaluate.metrics import LabelMetrics
from labelspace.notebook import Plain
from labelspace.seeds import child_seed


@final
@dataclass(frozen=True, kw_only=True)
class SeveralMetrics(Plain):
    """Metrics of a model that gives each document a set of labels; scores are from 0 to 1."""

    micro_f1: float
    """F1 over all pairs of a document and a label."""

    micro_precision: float
    """Share of right ones among all labels predicted."""

    micro_recall: float
    """Share of all labels in y that are predicted."""

    macro_f1: float
    """Mean F1 over the labels that occur in y."""

    exact: float
    """Share of documents whose labels are all right."""

    labels_per_text: float
    """Mean number of labels in y."""

    predicted_per_text: float
    """Mean number of labels predicted."""

    documents: int
    """Number of documents whose labels are known; the other metrics are over these."""

    left_out: int
    """Number of documents whose labels are not known."""


@final
class Weights:
    """How often each document counts: once as measured, and by a draw of its own in each repeat of the bootstrap.

    Args:
        labels: number of labels. With thousands there are fewer repeats, at least 200: each keeps three counts a label.
    """

    def __init__(self, labels: int) -> None:
        self.repeats = max(REPEATS // 5, min(REPEATS, BLOCK // labels))
        self._generator = np.random.default_rng(child_seed(0, "bootstrap"))

    def draw(self, documents: int) -> NDArray[np.float64]:
        """Return [1 + repeat, text] weights of the next documents, the first row 1. Their batches may have any size."""
        weights = np.ones((1 + self.repeats, documents))
        weights[1:] = self._generator.poisson(1.0, (documents, self.repeats)).T
        return weights


@final
class SetTally:
    """Count right and wrong labels batch by batch, as measured and in each repeat of a bootstrap.

    Args:
        names: the label names, in the order of the columns.
        repeats: number of repeats, as in the `Weights`.

    Example:
        >>> weights = Weights(2)
        >>> tally = SetTally(["sports", "world"], weights.repeats)
        >>> truth = np.array([[1, 1], [0, 1]] * 20, dtype=bool)
        >>> tally.add(truth, np.array([[1, 0], [0, 1]] * 20, dtype=bool), weights.draw(40))
        >>> found = tally.metrics()
        >>> found.micro_f1, found.exact, [round(row.f1, 2) for row in tally.per_label()]
        (0.8, 0.5, [1.0, 0.67])
        >>> [round(end, 2) for end in tally.intervals().micro_f1]
        [0.8, 0.75, 0.85]
    """

    def __init__(self, names: Sequence[str], repeats: int) -> None:
        self.names = tuple(names)
        self.left_out = 0
        self._documents = self._exact = self._hit = 0
        self._right, self._own, self._predicted = (np.zeros((1 + repeats, len(self.names))) for _ in range(3))

    def add(self, truth: NDArray[np.bool_], predicted: NDArray[np.bool_], weights: NDArray[np.float64]) -> None:
        """Count a batch of documents.

        Args:
            truth: [text label] whether a document has a label.
            predicted: [text label] whether it is given the label.
            weights: [1 + repeat, text] how often each document counts.
        """
        right = truth & predicted
        self._documents += len(truth)
        self._exact += int((truth == predicted).all(axis=1).sum())
        self._hit += int(right.any(axis=1).sum())
        for counts, sets in ((self._right, right), (self._own, truth), (self._predicted, predicted)):
            counts += weights @ csr_array(sets, dtype=np.float64)

    def metrics(self) -> SeveralMetrics:
        """Compute the metrics of all documents counted, one or more."""
        right, own, predicted = (int(counts[0].sum()) for counts in (self._right, self._own, self._predicted))
        micro_f1, macro_f1 = self.f1()
        return SeveralMetrics(
            micro_f1=float(micro_f1[0]),
            micro_precision=_share(right, predicted),
            micro_recall=_share(right, own),
            macro_f1=float(macro_f1[0]),
            exact=self._exact / self._documents,
            labels_per_text=own / self._documents,
            predicted_per_text=predicted / self._documents,
            documents=self._documents,
            left_out=self.left_out,
        )

    def per_label(self) -> tuple[LabelMetrics, ...]:
        """Return one row for each label of the space, including labels without a document."""
        measured = (counts[0].astype(int).tolist() for counts in (self._right, self._own, self._predicted))
        return tuple(
            LabelMetrics(
                label=name,
                precision=_share(right, predicted),
                recall=_share(right, own),
                f1=_share(2 * right, own + predicted),
                support=own,
                predicted=predicted,
            )
            for name, right, own, predicted in zip(self.names, *measured, strict=True)
        )

    def f1(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return micro- and macro-F1, each [1 + repeat], first as measured."""
        hits, marked, occurs = 2 * self._right, self._own + self._predicted, self._own > 0
        micro = _shares(hits.sum(axis=1), marked.sum(axis=1))
        return micro, _shares((_shares(hits, marked) * occurs).sum(axis=1), occurs.sum(axis=1))

    def intervals(self) -> SeveralIntervals:
        """Return the intervals of all documents counted, one or more."""
        told = self._hit >= FEW and self._documents - self._exact >= FEW
        exact = Interval(self._exact / self._documents, *wilson(self._exact, self._documents))
        micro_f1, macro_f1 = (_interval(scores, 0.0, told=told) for scores in self.f1())
        return SeveralIntervals(micro_f1, macro_f1, exact)


@final
class PairedSets:
    """Two models' sets of labels for the same documents.

    Args:
        names: the label names, in the order of the columns.
        repeats: number of repeats, as in the `Weights`.

    Example:
        >>> weights = Weights(2)
        >>> truth = np.array([[1, 1], [0, 1]] * 20, dtype=bool)
        >>> this, other = SetTally("ab", weights.repeats), PairedSets("ab", weights.repeats)
        >>> batch, predicted = weights.draw(40), np.array([[1, 0], [0, 1]] * 20, dtype=bool)
        >>> this.add(truth, predicted, batch)
        >>> other.add(truth, predicted, truth, batch)
        >>> found = other.difference(this)
        >>> [round(end, 2) for end in found.exact], found.only_other_right
        ([-0.5, -0.65, -0.33], 20)
    """

    def __init__(self, names: Sequence[str], repeats: int) -> None:
        self.other = SetTally(names, repeats)
        self._cells, self._differing = np.zeros(4, dtype=np.int64), 0

    def add(
        self,
        truth: NDArray[np.bool_],
        this: NDArray[np.bool_],
        other: NDArray[np.bool_],
        weights: NDArray[np.float64],
    ) -> None:
        """Count a batch of documents, [text label] each; the weights are those of the model's own tally."""
        self.other.add(truth, other, weights)
        wrong, also_wrong = (truth != this).any(axis=1), (truth != other).any(axis=1)
        self._cells += np.bincount(2 * wrong + also_wrong, minlength=4)
        self._differing += int((this != other).any(axis=1).sum())

    def difference(self, this: SetTally) -> SeveralDifference:
        """Return the model's scores minus the other's; at least one document was counted."""
        both, only_this, only_other, neither = self._cells.tolist()
        told = FEW <= self._differing <= self._cells.sum() - FEW
        pairs = zip(this.f1(), self.other.f1(), strict=True)
        micro_f1, macro_f1 = (_interval(mine - others, -1.0, told=told) for mine, others in pairs)
        exact = paired_difference(both, only_this, only_other, neither)
        return SeveralDifference(micro_f1, macro_f1, exact, only_this, only_other)


def _interval(scores: NDArray[np.float64], least: float, *, told: bool) -> Interval:
    """Return the interval of [1 + repeat] scores, first as measured."""
    value = float(scores[0])
    return around(value, scores[1:], least=least) if told else Interval(value, None, None)


def _shares(parts: NDArray[np.float64], wholes: NDArray[np.number]) -> NDArray[np.float64]:
    return np.divide(parts, wholes, out=np.zeros_like(parts), where=wholes > 0)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
