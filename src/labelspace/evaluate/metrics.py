"""How good predictions are, counted in constant memory and computed by scikit-learn.

Decisions that a reader of the numbers should know:

    macro         There are two means, and each has its name. `macro_f1` is the mean over the labels that occur in y.
                  `macro_f1_predicted`, "macro-F1 over predicted labels too", is scikit-learn's default, the mean over
                  the labels that occur in y or are predicted. The two differ only where a label is predicted that does
                  not occur in y: it counts as 0 in the second, which is then the lower. Where every label occurs in
                  y, as in the usual test sets, both are the same number. `labelspace evaluate` prints the first, whose
                  number of labels does not depend on the model, so that a model and its baseline can be compared.
                  BTZSC publishes the second, and so `labelspace bench` measures it. Precision and recall are alike.
    abstention    A document for which the model names no label counts as wrong: it lowers accuracy and the recall of
                  its label, and no label's precision. `coverage` says how many were answered, `accuracy_on_covered`
                  how well.
    missing y     Documents without a label are left out, and counted.
    calibration   Expected calibration error: 15 bins of equal width, of the winner's probability, over the documents
                  that were answered (Guo et al., 2017, https://arxiv.org/abs/1706.04599, eq. 3).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import coo_array, csr_array
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from labelspace.errors import InputError, ShapeError
from labelspace.training.calibration import ECE_BINS, calibration_bins, error_of_bins

# A label that is never predicted has precision 0, and no warning. (Stubs take the argument for a str.)
NO_DIVISION: dict[str, Any] = {"zero_division": 0}
NONE_OF_THESE = "none of these"
"""What the last column of a confusion matrix is called."""

ABSTAINED = -1
"""The column number of a document for which no label is named."""


@final
@dataclass(frozen=True, kw_only=True)
class Metrics:
    """A model on a set of labelled documents, as numbers from 0 to 1."""

    macro_f1: float
    """Mean F1 over the labels that occur in y."""

    accuracy: float
    """Share of documents that got their own label; an abstention is wrong."""

    macro_precision: float
    """Mean precision over the labels that occur in y; 0 for a label never predicted."""

    macro_recall: float
    """Mean recall over the labels that occur in y."""

    macro_f1_predicted: float
    """Mean F1 over the labels that occur in y or are predicted."""

    macro_precision_predicted: float
    """Mean precision over the same labels."""

    macro_recall_predicted: float
    """Mean recall over the same labels."""

    coverage: float
    """Share of documents for which a label was named."""

    accuracy_on_covered: float | None
    """Share of those that got their own label; None where there are none."""

    expected_calibration_error: float | None
    """How far probability and accuracy lie apart; None without probabilities or without an answer."""

    documents: int
    """Documents with a label in y: what the other numbers are about."""

    left_out: int
    """Documents without one."""

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers as plain values, ready for JSON."""
        return asdict(self)


@final
@dataclass(frozen=True, kw_only=True)
class LabelMetrics:
    """One label's row of the table."""

    label: str
    """Its name."""

    precision: float
    """Share of the documents predicted so that are so; 0 where none is predicted."""

    recall: float
    """Share of the documents that are so that are predicted so; 0 where there are none."""

    f1: float
    """Harmonic mean of the two."""

    support: int
    """Documents with this label in y."""

    predicted: int
    """Documents for which it was predicted."""


@final
class Tally:
    """Counts predictions batch by batch; it holds a number for each pair of labels that came, and no documents.

    Args:
        names: the label names, in the order of the columns.

    Example:
        >>> tally = Tally(["sports", "world"])
        >>> tally.add([0, 0, 1], [0, 1, 1])
        >>> tally.add([1, -1], [-1, 0])
        >>> tally.counts.toarray().tolist()
        [[1, 1, 0], [0, 1, 1]]
        >>> found = tally.metrics()
        >>> found.accuracy, found.coverage, found.documents, found.left_out
        (0.5, 0.75, 4, 1)
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.left_out = 0
        # Without its zeros: of 10,000 labels a whole matrix would take 0.8 GB.
        self._counts = csr_array((len(self.names), len(self.names) + 1), dtype=np.int64)
        # As `calibration_bins` counts them.
        self._bins = np.zeros((3, ECE_BINS))
        self._with_confidence = True

    def add(self, targets: ArrayLike, predicted: ArrayLike, confidence: ArrayLike | None = None) -> None:
        """Count some more documents.

        Args:
            targets: [text] column number of each document's own label, -1 where there is none.
            predicted: [text] column number of the label predicted, -1 for none of them.
            confidence: [text] probability of that label; without it for all documents there is no calibration error.

        Raises:
            ShapeError: not one number per document, or a column that is not there.
        """
        own = np.asarray(targets, dtype=np.int64)
        answer = np.asarray(predicted, dtype=np.int64)
        sure = None if confidence is None else np.asarray(confidence, dtype=np.float64)
        self._check(own, answer, sure)
        known = own >= 0
        self.left_out += int((~known).sum())
        column = np.where(answer[known] == ABSTAINED, len(self.names), answer[known])
        ones = np.ones(len(column), dtype=np.int64)
        self._counts = self._counts + csr_array(coo_array((ones, (own[known], column)), shape=self._counts.shape))
        if sure is None:
            self._with_confidence &= not known.any()
            return
        covered = known & (answer >= 0)
        self._bins += calibration_bins(sure[covered], (own == answer)[covered])

    @property
    def counts(self) -> csr_array:
        """[label, label + 1]: rows are true labels, columns predicted ones, the last column "none of these"."""
        return self._counts.copy()

    def metrics(self) -> Metrics:
        """Return the numbers of all documents counted.

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
        covered = int(self._counts[:, :-1].sum())
        right = int(self._counts.diagonal().sum())
        return Metrics(
            macro_f1=float(over_own[2]),
            accuracy=float(accuracy_score(own, answer, sample_weight=weight)),
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
        """Return one row for each label of the space, those without a document too."""
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
        """One sample per cell that holds something, weighed by its count: the same sums as one per document."""
        cells = self._counts.tocoo()
        return cells.row, cells.col, cells.data.astype(np.int64)

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
            if len(values) and not (values.min() >= ABSTAINED and values.max() < len(self.names)):
                bad = values[(values < ABSTAINED) | (values >= len(self.names))][0]
                raise ShapeError(
                    f"{what} must be column numbers from 0 to {len(self.names) - 1}, or -1. Got {bad} instead."
                )
