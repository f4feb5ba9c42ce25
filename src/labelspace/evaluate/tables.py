"""An evaluation as plain text: the whole beside the baselines, each label, the confusions."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelspace.evaluate.metrics import NONE_OF_THESE, LabelMetrics, Metrics

if TYPE_CHECKING:
    from labelspace.evaluate.evaluation import Evaluation

MATRIX_LABELS = 12
"""Up to so many labels the confusion matrix is shown whole; beyond it would not fit a screen."""

CONFUSIONS = 20
"""How many of the most frequent confusions are listed then."""

NAME_WIDTH = 48


def evaluation_text(found: "Evaluation") -> str:
    """Return the report of an evaluation; see `Evaluation.to_text`."""
    parts = [_headline(found), _summary(found), _labels(found.per_label)]
    if len(found.labels) <= MATRIX_LABELS:
        parts.append(_matrix(found.confusion, found.labels))
    else:
        parts.append(_confusions(found.counts, found.labels))
    parts.append(_origin(found))
    return "\n\n".join(parts)


def confusion_rows(counts: csr_array, labels: Sequence[str]) -> list[dict[str, Any]]:
    """Return `true`, `predicted` (None for none of these) and `documents` of each cell that holds some.

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
        most: how many to return.

    Example:
        >>> most_frequent_confusions(csr_array(np.array([[5, 2, 0], [0, 3, 4]])), ["sports", "world"])
        [('world', 'none of these', 4), ('sports', 'world', 2)]
    """
    columns = [*labels, NONE_OF_THESE]
    wrong = sorted((cell for cell in _cells(counts) if cell[0] != cell[1]), key=lambda cell: -cell[2])
    return [(labels[row], columns[column], count) for row, column, count in wrong[:most]]


def _cells(counts: csr_array) -> list[tuple[int, int, int]]:
    """Row, column and count of each cell above 0, row by row."""
    cells = counts.tocoo()
    return sorted(zip(cells.row.tolist(), cells.col.tolist(), cells.data.tolist(), strict=True))


def rejection_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return what `rejection_rows` tells as a plain-text table.

    Args:
        rows: one for each way to reject, one or more.

    Example:
        >>> print(rejection_text([{"by": "sigma", "area": 0.875, "accuracy_at_coverage": {"0.9": 0.75, "0.5": 1.0}}]))
        accuracy where the least sure are not answered
                area  90 % answered  50 % answered
        sigma  0.875          0.750          1.000
    """
    shares = (f"{100 * float(coverage):g} % answered" for coverage in rows[0]["accuracy_at_coverage"])
    table = [["", "area", *shares]]
    for row in rows:
        numbers = (row["area"], *row["accuracy_at_coverage"].values())
        table.append([str(row["by"]), *(f"{number:.3f}" for number in numbers)])
    return "\n".join(["accuracy where the least sure are not answered", _table(table)])


def _headline(found: "Evaluation") -> str:
    metrics = found.metrics
    left_out = f"; {metrics.left_out:,} without a label left out" if metrics.left_out else ""
    return f"{found.space}: {metrics.documents:,} labelled documents, {len(found.labels)} labels{left_out}"


def _summary(found: "Evaluation") -> str:
    rows = [["", "macro-F1", "accuracy", "precision", "recall", "coverage", "on covered", "ECE"]]
    rows.append([found.model, *_numbers(found.metrics)])
    for name, metrics, _ in found.baselines:
        rows.append([name, *(_numbers(metrics) if metrics else ["-"] * 7)])
    # One line for a reason that both share.
    notes = dict.fromkeys(note for _, _, note in found.baselines if note)
    return "\n".join([_table(rows), *(f"note: {note}" for note in notes)])


def _numbers(metrics: Metrics) -> list[str]:
    values = (
        metrics.macro_f1,
        metrics.accuracy,
        metrics.macro_precision,
        metrics.macro_recall,
        metrics.coverage,
        metrics.accuracy_on_covered,
        metrics.expected_calibration_error,
    )
    return ["-" if value is None else f"{value:.3f}" for value in values]


def _labels(per_label: Sequence[LabelMetrics]) -> str:
    rows = [["label", "precision", "recall", "F1", "documents", "predicted"]]
    for row in per_label:
        shares = (f"{value:.3f}" for value in (row.precision, row.recall, row.f1))
        rows.append([_short(row.label), *shares, f"{row.support:,}", f"{row.predicted:,}"])
    return _table(rows)


def _matrix(confusion: NDArray[np.int64], labels: Sequence[str]) -> str:
    # Columns go by number, so that long names cost no width; "none of these" only where it happened.
    abstained = bool(confusion[:, -1].any())
    shown = confusion if abstained else confusion[:, :-1]
    width = len(str(len(labels)))
    head = ["true \\ predicted", *(str(number) for number in range(1, len(labels) + 1))]
    rows = [[*head, NONE_OF_THESE] if abstained else head]
    for number, (name, counts) in enumerate(zip(labels, shown, strict=True), 1):
        rows.append([f"{number:>{width}} {_short(name)}", *(f"{count:,}" if count else "." for count in counts)])
    return _table(rows)


def _confusions(counts: csr_array, labels: Sequence[str]) -> str:
    found = most_frequent_confusions(counts, labels)
    if not found:
        return "no document was confused"
    lines = [f"{true} -> {predicted}: {count:,}" for true, predicted, count in found]
    return "\n".join(["most frequent confusions, true -> predicted: documents", *lines])


def _origin(found: "Evaluation") -> str:
    origin: dict[str, Any] = found.provenance
    hardware = origin["hardware"]
    commit = f" ({origin['commit']})" if origin["commit"] else ""
    return (
        f"{found.seconds:,.1f} s, {found.documents_per_second:,.0f} documents/s in {hardware['dtype']} on "
        f"{hardware['accelerator'] or hardware['processor']}, {hardware['torch_threads']} threads\n"
        f"labelspace {origin['labelspace']}{commit}, {origin['date']}"
    )


def _table(rows: list[list[str]]) -> str:
    """First column to the left, the others to the right."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    lines = []
    for row in rows:
        numbers = (cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))
        lines.append("  ".join([row[0].ljust(widths[0]), *numbers]).rstrip())
    return "\n".join(lines)


def _short(name: str) -> str:
    return name if len(name) <= NAME_WIDTH else name[: NAME_WIDTH - 3] + "..."
