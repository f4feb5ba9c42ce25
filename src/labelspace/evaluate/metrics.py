"""Classification metrics, counted in memory that does not grow with the documents and computed by scikit-learn.

Definitions:

    macro         There are two means. `macro_f1` is the mean over the labels that occur in y. `macro_f1_predicted`,
                  "macro-F1 over predicted labels too", is scikit-learn's default: the mean over the labels that occur
                  in y or are predicted. They differ only if a label is predicted that does not occur in y; it counts
                  as 0 in the second, which is then lower. `labelspace evaluate` prints the first: its number of labels
                  does not depend on the model, so a model and its baseline can be compared. `labelspace bench` measures
                  the second, which BTZSC publishes. The same holds for precision and recall.
    abstention    A document without a predicted label counts as wrong: it lowers accuracy and the recall of its label,
                  but no label's precision. `coverage` is the share of documents answered, `accuracy_on_covered` the
                  accuracy on them.
    missing y     Documents without a label are left out and counted. With `none` they fit no label: "none of these" is
                  a class like the labels, and an abstention is right there.
    kappa         Cohen, 1960, "A coefficient of agreement for nominal scales".
    calibration   Expected calibration error: 15 bins of equal width over the winner's probability, for answered
                  documents (Guo et al., 2017, https://arxiv.org/abs/1706.04599, eq. 3).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from labelspace.errors import InputError, ShapeError
from labelspace.notebook import Plain
from labelspace.training.calibration import ECE_BINS, calibration_bins, error_of_bins

# A label that is never predicted gets precision 0 without a warning. A dict, because the stubs type it as a str.
NO_DIVISION: dict[str, Any] = {"zero_division": 0}
NONE_OF_THESE = "none of these"
"""Name of the last column of a confusion matrix, and of the class of texts that fit no label."""

ABSTAINED = -1
"""Predicted column of a document without a predicted label."""


@final
@dataclass(frozen=True, kw_only=True)
class Metrics(Plain):
    """Metrics of a model on labelled documents; scores are from 0 to 1."""

    macro_f1: float
    """Mean F1 over the labels that occur in y."""

    accuracy: float
    """Share of documents with the right label; an abstention is wrong, but on texts that are said to fit no label."""

    kappa: float
    """Cohen's kappa: agreement with y beyond chance, as of two coders; an abstention is a code of its own."""

    macro_precision: float
    """Mean precision over the labels that occur in y; 0 for a label never predicted."""

    macro_recall: float
    """Mean recall over the labels that occur in y."""

    macro_f1_predicted: float
    """Mean F1 over the labels that occur in y or are predicted."""

    macro_precision_predicted: float
    """Mean precision over the labels that occur in y or are predicted."""

    macro_recall_predicted: float
    """Mean recall over the labels that occur in y or are predicted."""

    coverage: float
    """Share of documents with a predicted label."""

    accuracy_on_covered: float | None
    """Accuracy on the covered documents; None if there are none."""

    expected_calibration_error: float | None
    """Mean gap between probability and accuracy; None without probabilities or without an answer."""

    documents: int
    """Number of documents with a label in y, or said to fit none; the other metrics are over these."""

    left_out: int
    """Number of documents without a label in y, unless these are said to fit none."""


@final
@dataclass(frozen=True, kw_only=True)
class LabelMetrics:
    """Metrics of one label."""

    label: str
    """Name of the label."""

    precision: float
    """Share of right ones among the documents predicted as this label; 0 if none is."""

    recall: float
    """Share of this label's documents that are predicted as it; 0 if there are none."""

    f1: float
    """Harmonic mean of precision and recall."""

    support: int
    """Number of documents with this label in y."""

    predicted: int
    """Number of documents predicted as this label."""


@final
class Tally:
    """Count predictions batch by batch, holding one number per (true, predicted) pair that occurs and no documents.

    Args:
        names: the label names, in the order of the columns.
        none: whether documents without a label fit none, rather than being left out. "none of these" is then the last
            of `names`.

    Raises:
        InputError: `none`, and a label has that name.

    Example:
        >>> tally = Tally(["sports", "world"])
        >>> tally.add([0, 0, 1], [0, 1, 1])
        >>> tally.add([1, -1], [-1, 0])
        >>> tally.counts.toarray().tolist()
        [[1, 1, 0], [0, 1, 1]]
        >>> found = tally.metrics()
        >>> found.accuracy, found.coverage, found.documents, found.left_out
        (0.5, 0.75, 4, 1)
        >>> tally = Tally(["sports", "world"], none=True)
        >>> tally.add([0, -1, -1], [0, -1, 1])
        >>> [(row.label, row.recall) for row in tally.per_label()]
        [('sports', 1.0), ('world', 0.0), ('none of these', 0.5)]
    """

    def __init__(self, names: Sequence[str], *, none: bool = False) -> None:
        if none and NONE_OF_THESE in names:
            raise InputError(
                f"a label is called {NONE_OF_THESE!r}, as is the class of texts that fit no label; rename the label, "
                "or give it to these texts."
            )
        self.names = (*names, NONE_OF_THESE) if none else tuple(names)
        self.left_out = 0
        self._none = none
        self._labels = len(names)
        # Sparse, because a dense matrix of 10,000 labels would take 0.8 GB.
        self._counts = csr_array((len(self.names), len(self.names) + 1), dtype=np.int64)
        self._bins = np.zeros((3, ECE_BINS))
        self._with_confidence = True

    def add(self, targets: ArrayLike, predicted: ArrayLike, confidence: ArrayLike | None = None) -> None:
        """Count a batch of documents.

        Args:
            targets: [text] column of each document's true label; -1: no label, or none of them fits.
            predicted: [text] column of the predicted label; -1: none of the labels.
            confidence: [text] probability of the predicted label. The calibration error needs it in every batch.

        Raises:
            ShapeError: not one number per document, or a column out of range.
        """
        own = np.asarray(targets, dtype=np.int64)
        answer = np.asarray(predicted, dtype=np.int64)
        sure = None if confidence is None else np.asarray(confidence, dtype=np.float64)
        self._check(own, answer, sure)
        known = (own >= 0) | self._none
        self.left_out += int((~known).sum())
        # What has no label goes to the column after the last one, for texts that fit none a class of its own.
        row, column = (np.where(given[known] < 0, self._labels, given[known]) for given in (own, answer))
        ones = np.ones(len(column), dtype=np.int64)
        self._counts = self._counts + csr_array(coo_array((ones, (row, column)), shape=self._counts.shape))
        if sure is None:
            self._with_confidence &= not known.any()
            return
        covered = known & (answer >= 0)
        self._bins += calibration_bins(sure[covered], (own == answer)[covered])

    @property
    def counts(self) -> csr_array:
        """[name, name + 1]: rows are true labels, columns predicted ones. The last column holds abstentions, unless
        these have a class of their own."""
        return self._counts.copy()

    def metrics(self) -> Metrics:
        """Compute the metrics of all documents counted.

        Raises:
            InputError: no document has a label.
        """
        documents = int(self._counts.sum())
        if documents == 0:
            raise InputError(
                f"y has no label for any of the {self.left_out} documents; give labelled ones to compare with."
            )
        own, answer, weight = self._as_samples()
        occurring = self._counts.sum(axis=1)
        over_own, over_predicted = (
            precision_recall_fscore_support(
                own, answer, labels=np.flatnonzero(counted), average="macro", sample_weight=weight, **NO_DIVISION
            )
            for counted in (occurring, occurring + self._counts[:, :-1].sum(axis=0))
        )
        covered = int(self._counts[:, : self._labels].sum())
        right = int(self._counts.diagonal()[: self._labels].sum())
        return Metrics(
            macro_f1=float(over_own[2]),
            accuracy=float(accuracy_score(own, answer, sample_weight=weight)),
            kappa=self._kappa(),
            macro_precision=float(over_own[0]),
            macro_recall=float(over_own[1]),
            macro_f1_predicted=float(over_predicted[2]),
            macro_precision_predicted=float(over_predicted[0]),
            macro_recall_predicted=float(over_predicted[1]),
            coverage=covered / documents,
            accuracy_on_covered=right / covered if covered else None,
            expected_calibration_error=self._calibration_error(),
            documents=documents,
            left_out=self.left_out,
        )

    def per_label(self) -> tuple[LabelMetrics, ...]:
        """Return one row for each of `names`, including labels without a document."""
        own, answer, weight = self._as_samples()
        if not len(own):
            return ()
        columns = np.arange(len(self.names))
        table: Any = precision_recall_fscore_support(
            own, answer, labels=columns, average=None, sample_weight=weight, **NO_DIVISION
        )
        precision, recall, f1, _ = table
        support, predicted = self._counts.sum(axis=1), self._counts.sum(axis=0)
        return tuple(
            LabelMetrics(
                label=name,
                precision=float(precision[column]),
                recall=float(recall[column]),
                f1=float(f1[column]),
                support=int(support[column]),
                predicted=int(predicted[column]),
            )
            for column, name in enumerate(self.names)
        )

    def _as_samples(self) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Return one sample per nonzero cell, weighted by its count: the same sums as one sample per document."""
        cells = self._counts.tocoo()
        return cells.row, cells.col, cells.data.astype(np.int64)

    def _kappa(self) -> float:
        shares = self._counts / self._counts.sum()
        agreed, chance = shares.diagonal().sum(), shares.sum(axis=1) @ shares.sum(axis=0)[:-1]
        return 1.0 if chance >= 1 else float((agreed - chance) / (1 - chance))

    def _calibration_error(self) -> float | None:
        return error_of_bins(self._bins) if self._with_confidence and self._bins.any() else None

    def _check(self, own: NDArray[np.int64], answer: NDArray[np.int64], sure: NDArray[np.float64] | None) -> None:
        for what, values in (("targets", own), ("predicted", answer), ("confidence", sure)):
            if values is not None and (values.ndim != 1 or values.shape != own.shape):
                raise ShapeError(
                    f"{what} must hold one number for each of {own.shape[0] if own.ndim else 1} documents. "
                    f"Got shape {values.shape} instead."
                )
        for what, values in (("targets", own), ("predicted", answer)):
            if len(values) and not (values.min() >= ABSTAINED and values.max() < self._labels):
                bad = values[(values < ABSTAINED) | (values >= self._labels)][0]
                raise ShapeError(
                    f"{what} must be column numbers from 0 to {self._labels - 1}, or -1. Got {bad} instead."
                )
