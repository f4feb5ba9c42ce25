"""The result of an evaluation of a model whose texts may have several labels, and its text report."""

from dataclasses import dataclass
from typing import Any, NamedTuple, final

from labelspace.evaluate.intervals import SeveralDifference, SeveralIntervals
from labelspace.evaluate.metrics import LabelMetrics
from labelspace.evaluate.report import intervals_dict, intervals_text, labels_text, origin_text
from labelspace.evaluate.several.metrics import SeveralMetrics
from labelspace.notebook import Report
from labelspace.text_table import text_table


class SeveralBaseline(NamedTuple):
    """Metrics of another model to compare with, on the same documents."""

    name: str
    """`"beside: "` and its class."""

    metrics: SeveralMetrics
    """Its metrics."""

    difference: SeveralDifference
    """The model's scores minus these."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return {"name": self.name, "metrics": self.metrics.to_dict(), "difference": intervals_dict(self.difference)}


@final
@dataclass(frozen=True, kw_only=True)
class SeveralEvaluation(Report):
    """Metrics of a classifier of several labels on labelled documents. `print` it, or read its fields."""

    model: str
    """Class of the classifier."""

    space: str
    """Name of the label space."""

    metrics: SeveralMetrics
    """Metrics over all documents."""

    intervals: SeveralIntervals
    """95 % intervals of micro-F1, macro-F1 and the share of exact sets, for documents drawn at random."""

    per_label: tuple[LabelMetrics, ...]
    """Metrics of each label, in the order of the space."""

    baselines: tuple[SeveralBaseline, ...]
    """The model `beside`, if there is one."""

    provenance: dict[str, Any]
    """Code, versions, machine, seeds, data; see `provenance`."""

    seconds: float
    """Seconds spent in the classifier, without reading and the model beside."""

    documents_per_second: float
    """Documents scored per second."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON and for `write_result`."""
        return {
            "model": self.model,
            "label_space": self.space,
            "metrics": self.metrics.to_dict(),
            "intervals": intervals_dict(self.intervals),
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "per_label": [vars(row) for row in self.per_label],
            "seconds": self.seconds,
            "documents_per_second": self.documents_per_second,
            "provenance": self.provenance,
        }

    def to_text(self) -> str:
        """Return plain-text tables: the metrics beside another model's, and each label."""
        found = self.metrics
        left_out = f"; {found.left_out:,} whose labels are not known left out" if found.left_out else ""
        head = f"{self.space}: {found.documents:,} documents, {len(self.per_label)} labels{left_out}"
        rows = [["", "micro-F1", "macro-F1", "precision", "recall", "exact", "labels a text", "predicted"]]
        rows += [[name, *_numbers(one)] for name, one in [(self.model, found), *(row[:2] for row in self.baselines)]]
        differences = [(row.name, row.difference) for row in self.baselines]
        intervals = intervals_text(self.model, self.intervals, differences, self.per_label)
        origin = origin_text(self.provenance, self.seconds, self.documents_per_second)
        return "\n\n".join([head, text_table(rows), intervals, labels_text(self.per_label), origin])


def _numbers(found: SeveralMetrics) -> list[str]:
    shares = (found.micro_f1, found.macro_f1, found.micro_precision, found.micro_recall, found.exact)
    per_text = (found.labels_per_text, found.predicted_per_text)
    return [*(f"{value:.3f}" for value in shares), *(f"{value:.2f}" for value in per_text)]
