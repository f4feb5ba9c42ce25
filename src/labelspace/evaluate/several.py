"""The evaluation of a model whose texts may have several labels: counted batch by batch, and reported."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.evaluate.metrics import LabelMetrics
from labelspace.evaluate.report import labels_text, origin_text
from labelspace.notebook import Shown
from labelspace.text_table import text_table


@final
@dataclass(frozen=True, kw_only=True)
class SeveralMetrics:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the metrics as plain values, ready for JSON."""
        return asdict(self)


@final
class SetTally:
    """Count right and wrong labels batch by batch, holding three numbers per label and no documents.

    Args:
        names: the label names, in the order of the columns.

    Example:
        >>> tally = SetTally(["sports", "world"])
        >>> tally.add(np.array([[1, 1], [0, 1]], dtype=bool), np.array([[1, 0], [0, 1]], dtype=bool))
        >>> found = tally.metrics()
        >>> found.micro_f1, found.exact, [row.f1 for row in tally.per_label()]
        (0.8, 0.5, [1.0, 0.6666666666666666])
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.left_out = 0
        self._documents = self._exact = 0
        self._right, self._own, self._predicted = (np.zeros(len(self.names), dtype=np.int64) for _ in range(3))

    def add(self, truth: NDArray[np.bool_], predicted: NDArray[np.bool_]) -> None:
        """Count a batch of documents, [text label] each."""
        self._documents += len(truth)
        self._exact += int((truth == predicted).all(axis=1).sum())
        self._right += (truth & predicted).sum(axis=0)
        self._own += truth.sum(axis=0)
        self._predicted += predicted.sum(axis=0)

    def metrics(self) -> SeveralMetrics:
        """Compute the metrics of all documents counted, one or more."""
        right, own, predicted = (int(counts.sum()) for counts in (self._right, self._own, self._predicted))
        occurring = self._own > 0
        return SeveralMetrics(
            micro_f1=_share(2 * right, own + predicted),
            micro_precision=_share(right, predicted),
            micro_recall=_share(right, own),
            macro_f1=float(np.mean([row.f1 for row in np.array(self.per_label(), dtype=object)[occurring]] or [0.0])),
            exact=self._exact / self._documents,
            labels_per_text=own / self._documents,
            predicted_per_text=predicted / self._documents,
            documents=self._documents,
            left_out=self.left_out,
        )

    def per_label(self) -> tuple[LabelMetrics, ...]:
        """Return one row for each label of the space, including labels without a document."""
        counts = zip(self.names, self._right.tolist(), self._own.tolist(), self._predicted.tolist(), strict=True)
        return tuple(
            LabelMetrics(
                label=name,
                precision=_share(right, predicted),
                recall=_share(right, own),
                f1=_share(2 * right, own + predicted),
                support=own,
                predicted=predicted,
            )
            for name, right, own, predicted in counts
        )


@final
@dataclass(frozen=True, kw_only=True)
class SeveralEvaluation(Shown):
    """Metrics of a classifier of several labels on labelled documents. `print` it, or read its fields."""

    model: str
    """Class of the classifier."""

    space: str
    """Name of the label space."""

    metrics: SeveralMetrics
    """Metrics over all documents."""

    per_label: tuple[LabelMetrics, ...]
    """Metrics of each label, in the order of the space."""

    provenance: dict[str, Any]
    """Code, versions, machine, seeds, data; see `provenance`."""

    seconds: float
    """Seconds spent in the classifier, without reading."""

    documents_per_second: float
    """Documents scored per second."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON and for `write_result`."""
        return {
            "model": self.model,
            "label_space": self.space,
            "metrics": self.metrics.to_dict(),
            "per_label": [vars(row) for row in self.per_label],
            "seconds": self.seconds,
            "documents_per_second": self.documents_per_second,
            "provenance": self.provenance,
        }

    def to_text(self) -> str:
        """Return plain-text tables: the metrics, and each label."""
        found = self.metrics
        left_out = f"; {found.left_out:,} whose labels are not known left out" if found.left_out else ""
        head = f"{self.space}: {found.documents:,} documents, {len(self.per_label)} labels{left_out}"
        rows = [["", "micro-F1", "macro-F1", "precision", "recall", "exact", "labels a text", "predicted"]]
        shares = (found.micro_f1, found.macro_f1, found.micro_precision, found.micro_recall, found.exact)
        per_text = (found.labels_per_text, found.predicted_per_text)
        rows.append([self.model, *(f"{value:.3f}" for value in shares), *(f"{value:.2f}" for value in per_text)])
        origin = origin_text(self.provenance, self.seconds, self.documents_per_second)
        return "\n\n".join([head, text_table(rows), labels_text(self.per_label), origin])

    def __str__(self) -> str:
        return self.to_text()


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
