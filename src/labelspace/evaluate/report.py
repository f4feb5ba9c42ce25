"""The result of an evaluation, and its text report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelspace.evaluate.intervals import FEW, Difference, Interval, Intervals, SeveralDifference, SeveralIntervals
from labelspace.evaluate.metrics import NONE_OF_THESE, LabelMetrics, Metrics
from labelspace.notebook import Report
from labelspace.text_table import shortened, text_table

MATRIX_LABELS = 12
"""Maximum number of labels for which the whole confusion matrix is shown; a larger one would not fit a screen."""

CONFUSIONS = 20
"""Number of most frequent confusions listed instead of a larger matrix."""

NAME_WIDTH = 48

# The table of metrics: heading, and field of `Metrics`.
_COLUMNS = (
    ("macro-F1", "macro_f1"),
    ("accuracy", "accuracy"),
    ("kappa", "kappa"),
    ("precision", "macro_precision"),
    ("recall", "macro_recall"),
    ("coverage", "coverage"),
    ("on covered", "accuracy_on_covered"),
    ("ECE", "expected_calibration_error"),
)


class Baseline(NamedTuple):
    """Metrics of something to compare the model with, on the same documents."""

    name: str
    """`"untrained: nearest verbalizer"`, `"untrained: mean of descriptions"`, `"alone: "` and a view of a consensus, or
    `"beside: "` and the class of the other model."""

    metrics: Metrics | None
    """None if there is no baseline; `note` gives the reason."""

    note: str
    """Reason for a missing baseline, or another remark; usually empty."""

    difference: Difference | None = None
    """The model's scores minus these; None if there are none."""

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain values, ready for JSON."""
        return {
            "name": self.name,
            "metrics": self.metrics and self.metrics.to_dict(),
            "note": self.note,
            "difference": self.difference and intervals_dict(self.difference),
        }


@final
@dataclass(frozen=True, kw_only=True)
class Evaluation(Report):
    """Metrics of a classifier on labelled documents. `print` it, or read its fields."""

    model: str
    """Class of the classifier."""

    space: str
    """Name of the label space."""

    metrics: Metrics
    """Metrics over all documents."""

    intervals: Intervals
    """95 % intervals of macro-F1 and accuracy, for documents drawn at random."""

    per_label: tuple[LabelMetrics, ...]
    """Metrics of each label, in the order of the space."""

    labels: tuple[str, ...]
    """The label names, rows and columns of `counts` and `confusion`. The last is "none of these" if `none`."""

    none: bool
    """Whether documents without a label count as texts that fit none."""

    counts: csr_array
    """[label, label + 1] number of documents, sparse: rows are true labels, columns predicted ones. The last column is
    "none of these", and empty if `none`."""

    baselines: tuple[Baseline, ...]
    """What the model is compared with: the untrained encoder, the views of a consensus, and the model `beside`."""

    provenance: dict[str, Any]
    """Code, versions, machine, seeds, data; see `provenance`."""

    seconds: float
    """Seconds spent in the classifier, without reading and baselines."""

    documents_per_second: float
    """Documents scored per second."""

    @property
    def confusion(self) -> NDArray[np.int64]:
        """`counts` as a dense matrix, built at each call: 8 bytes for each pair of labels."""
        return self.counts.toarray()

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON and for `write_result`.

        `confusion` has a row for each pair that occurs: true, predicted (None for none of these), documents.
        """
        return {
            "model": self.model,
            "label_space": self.space,
            "metrics": self.metrics.to_dict(),
            "intervals": intervals_dict(self.intervals),
            "baselines": [baseline.to_dict() for baseline in self.baselines],
            "per_label": [vars(row) for row in self.per_label],
            "labels": list(self.labels),
            "confusion": confusion_rows(self.counts, self.labels),
            "seconds": self.seconds,
            "documents_per_second": self.documents_per_second,
            "provenance": self.provenance,
        }

    def to_text(self) -> str:
        """Return plain-text tables: the metrics beside the baselines, each label, and the confusions."""
        differences = [(other.name, other.difference) for other in self.baselines if other.difference is not None]
        intervals = intervals_text(self.model, self.intervals, differences, self.per_label)
        parts = [_headline(self), _summary(self), intervals, labels_text(self.per_label)]
        if len(self.labels) <= MATRIX_LABELS:
            parts.append(_matrix(self.confusion, self.labels))
        else:
            parts.append(_confusions(self.counts, self.labels))
        return "\n\n".join([*parts, origin_text(self.provenance, self.seconds, self.documents_per_second)])


def intervals_dict(found: Intervals | Difference | SeveralIntervals | SeveralDifference) -> dict[str, Any]:
    """Return intervals as plain values, ready for JSON."""
    return {name: one._asdict() if isinstance(one, Interval) else one for name, one in found._asdict().items()}


def confusion_rows(counts: csr_array, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return `true`, `predicted` (None for none of these) and `documents` of each nonzero cell.

    Args:
        counts: [label, label + 1], the last column "none of these".
        labels: the label names.

    Example:
        >>> confusion_rows(csr_array(np.array([[5, 0, 2], [0, 0, 0]])), ["sports", "world"])[1]
        {'true': 'sports', 'predicted': None, 'documents': 2}
    """
    columns = [*labels, None]
    return [
        {"true": labels[row], "predicted": columns[column], "documents": count} for row, column, count in _cells(counts)
    ]


def most_frequent_confusions(
    counts: csr_array, labels: Sequence[str], most: int = CONFUSIONS
) -> list[tuple[str, str, int]]:
    """Return (true, predicted, documents) of the largest cells off the diagonal, largest first.

    Args:
        counts: [label, label + 1], the last column "none of these".
        labels: the label names.
        most: maximum number of cells to return.

    Example:
        >>> most_frequent_confusions(csr_array(np.array([[5, 2, 0], [0, 3, 4]])), ["sports", "world"])
        [('world', 'none of these', 4), ('sports', 'world', 2)]
    """
    columns = [*labels, NONE_OF_THESE]
    wrong = sorted((cell for cell in _cells(counts) if cell[0] != cell[1]), key=lambda cell: -cell[2])
    return [(labels[row], columns[column], count) for row, column, count in wrong[:most]]


def _cells(counts: csr_array) -> list[tuple[int, int, int]]:
    """Return row, column and count of each nonzero cell, row by row."""
    cells = counts.tocoo()
    return sorted(zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True))


def _headline(found: Evaluation) -> str:
    metrics = found.metrics
    left_out = f"; {metrics.left_out:,} without a label left out" if metrics.left_out else ""
    if found.none:
        fit_none = found.per_label[-1].support
        documents = f"{metrics.documents:,} documents, of which {fit_none:,} fit no label"
        return f"{found.space}: {documents}, {len(found.labels) - 1} labels"
    documents = f"{metrics.documents:,} labelled document{'' if metrics.documents == 1 else 's'}"
    return f"{found.space}: {documents}, {len(found.labels)} labels{left_out}"


def _summary(found: Evaluation) -> str:
    rows = [["", *(heading for heading, _ in _COLUMNS)], [found.model, *_numbers(found.metrics)]]
    rows += [[other.name, *_numbers(other.metrics)] for other in found.baselines]
    # A reason shared by both baselines is printed once.
    notes = dict.fromkeys(other.note for other in found.baselines if other.note)
    return "\n".join([text_table(rows), *(f"note: {note}" for note in notes)])


def intervals_text(
    model: str,
    intervals: Intervals | SeveralIntervals,
    differences: Sequence[tuple[str, Difference | SeveralDifference]],
    per_label: Sequence[LabelMetrics],
) -> str:
    """Return how much of the scores, and of the differences from what the model is compared with, may be luck.

    Args:
        model: class of the classifier.
        intervals: those of its scores.
        differences: name of each other model or baseline, and the model's scores minus its.
        per_label: of each label; those of few documents make the interval of macro-F1 too narrow.
    """
    names = {name: name.replace("_", "-").replace("f1", "F1") for name in intervals._fields}
    told = ", ".join(f"{names[field]} {_ends(one, '.3f')}" for field, one in intervals._asdict().items())
    few = sum(0 < label.support < FEW for label in per_label)
    if few and intervals.macro_f1.low is not None:
        told += f"\nthe interval of macro-F1 is too narrow: fewer than {FEW} documents for {few:,} of the labels"
    if not differences:
        return f"95 % intervals: {told}"
    heads = [head for name in names.values() for head in (name, "95 %")]
    rows = [[f"{model} minus", *heads, "only this right", "only that right"]]
    for name, (*scores, this, that) in differences:
        cells = [cell for one in scores for cell in (f"{one.value:+.3f}", _ends(one, "+.3f"))]
        rows.append([name, *cells, f"{this:,}", f"{that:,}"])
    return f"95 % intervals: {told}\n\n{text_table(rows)}"


def _ends(one: Interval, form: str) -> str:
    return "(too few rows)" if one.low is None else f"{one.low:{form}} to {one.high:{form}}"


def _numbers(metrics: Metrics | None) -> list[str]:
    values = [None if metrics is None else getattr(metrics, field) for _, field in _COLUMNS]
    return ["-" if value is None else f"{value:.3f}" for value in values]


def labels_text(per_label: Sequence[LabelMetrics]) -> str:
    """Return a table of the metrics of each label."""
    rows = [["label", "precision", "recall", "F1", "documents", "predicted"]]
    for row in per_label:
        shares = (f"{value:.3f}" for value in (row.precision, row.recall, row.f1))
        rows.append([shortened(row.label, NAME_WIDTH), *shares, f"{row.support:,}", f"{row.predicted:,}"])
    return text_table(rows)


def _matrix(confusion: NDArray[np.int64], labels: Sequence[str]) -> str:
    # Number the columns, so that long names take no width; show "none of these" only if it occurs.
    abstained = bool(confusion[:, -1].any())
    shown = confusion if abstained else confusion[:, :-1]
    width = len(str(len(labels)))
    head = ["true \\ predicted", *(str(number) for number in range(1, len(labels) + 1))]
    rows = [[*head, NONE_OF_THESE] if abstained else head]
    for number, (name, counts) in enumerate(zip(labels, shown, strict=True), 1):
        rows.append(
            [f"{number:>{width}} {shortened(name, NAME_WIDTH)}", *(f"{count:,}" if count else "." for count in counts)]
        )
    return text_table(rows)


def _confusions(counts: csr_array, labels: Sequence[str]) -> str:
    found = most_frequent_confusions(counts, labels)
    if not found:
        return "no document was confused"
    lines = [f"{true} -> {predicted}: {count:,}" for true, predicted, count in found]
    return "\n".join(["most frequent confusions, true -> predicted: documents", *lines])


def origin_text(origin: dict[str, Any], seconds: float, documents_per_second: float) -> str:
    """Return the speed, the machine and the version in two lines.

    Args:
        origin: the provenance.
        seconds: seconds spent in the classifier.
        documents_per_second: documents scored per second.
    """
    hardware = origin["hardware"]
    commit = f" ({origin['commit']})" if origin["commit"] else ""
    return (
        f"{seconds:,.1f} s, {documents_per_second:,.0f} documents/s in {hardware['dtype']} on "
        f"{hardware['accelerator'] or hardware['processor']}, {hardware['torch_threads']} threads\n"
        f"labelspace {origin['labelspace']}{commit}, {origin['date']}"
    )
