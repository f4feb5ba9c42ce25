"""The confusion matrix figure."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from labelspace.errors import ConfigError
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure
from labelspace.evaluate.figures.panels import MOST_INCHES
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.evaluate.report import Evaluation
from labelspace.evaluate.several.report import SeveralEvaluation
from labelspace.text_table import width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


MOST_LABELS = 100
"""Maximum number of labels drawn, because more cells would be too small; those with the most errors are chosen."""


def confusion_figure(evaluation: Evaluation | SeveralEvaluation, path: str | Path) -> tuple[Path, ...]:
    """Draw the confusion matrix of an evaluation.

    Darkness is the share of the true label's documents, on a square-root scale that keeps rare confusions visible; the
    numbers are documents. The column "none of these" appears if the model abstained. With more than `MOST_LABELS`
    labels, those with the most errors are drawn, in the order of the space, and the title says so.

    Args:
        evaluation: result of `evaluate`.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        ConfigError: the evaluation is of several labels a text.
        MissingDependencyError: matplotlib is not installed.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.evaluate import evaluate
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = evaluate(clf, ["the match", "the vote"], ["sports", "politics"], baselines=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in confusion_figure(found, f"{folder}/confusion")]
        ['confusion.png', 'confusion.svg']
    """
    if isinstance(evaluation, SeveralEvaluation):
        raise ConfigError(
            "a confusion matrix is of one label a text, and the texts of this evaluation may have several."
        )
    files = files_of(path)
    drawn = _most_errors(evaluation.counts)
    labels = [evaluation.labels[number] for number in drawn]
    counts = evaluation.counts[drawn][:, [*drawn, len(evaluation.labels)]].toarray()
    shares = counts / np.maximum(evaluation.counts[drawn].sum(axis=1), 1)[:, None]
    if not counts[:, -1].any():
        counts, shares = counts[:, :-1], shares[:, :-1]
    columns = [*labels, NONE_OF_THESE][: counts.shape[1]]
    longest = max(width_of(short(name, 60)) for name in columns)
    with drawing("the confusion matrix") as new_figure:
        # Cell size in inches: room for four digits with few labels, for two with many.
        cell = 0.62 if len(columns) <= 12 else 0.36 if len(columns) <= 30 else 0.24
        font = 9.0 if len(columns) <= 30 else 6.5
        margin = 0.9 + longest * font * 0.6 / 72
        size = max(3.2, cell * len(columns))
        inches = min(MOST_INCHES, size + margin)
        font *= min(1.0, inches / (size + margin))
        figure = new_figure(inches + 0.4, inches)
        axes = figure.add_subplot()
        _draw_confusion(axes, counts, shares, labels, font)
        metrics = evaluation.metrics
        left = len(evaluation.labels) - len(labels)
        which = f"\nthe {len(labels)} labels with the most errors, of {len(evaluation.labels):,}" if left else ""
        figure.suptitle(
            f"{short(evaluation.space, 40)}, {evaluation.model}\n{metrics.documents:,} documents, "
            f"macro-F1 {metrics.macro_f1:.3f}, accuracy {metrics.accuracy:.3f}{which}",
            fontsize=9 if len(columns) <= 12 else 12 if len(columns) <= 30 else 18,
        )
        return write_figure(figure, files)


def _most_errors(counts: csr_array) -> list[int]:
    """Return the columns of the labels to draw, in their order; ties in errors go to the first."""
    rights = counts.diagonal()
    errors = np.asarray(counts.sum(axis=1)) + np.asarray(counts.sum(axis=0))[:-1] - 2 * rights
    return sorted(np.argsort(-errors, kind="stable")[:MOST_LABELS].tolist())


def _draw_confusion(
    axes: "Axes", counts: NDArray[np.int64], shares: NDArray[np.floating], rows: Sequence[str], font: float
) -> None:
    from matplotlib.colors import PowerNorm

    axes.imshow(shares, cmap="Blues", norm=PowerNorm(0.5, vmin=0, vmax=1), interpolation="nearest")
    slanted = counts.shape[1] > 12 or max(map(width_of, rows)) > 10
    below = [short(name, 60) for name in rows]
    if counts.shape[1] > len(rows):
        below.append(NONE_OF_THESE if slanted else NONE_OF_THESE.replace("of ", "of\n"))
    axes.set_xticks(range(counts.shape[1]), below, fontsize=font)
    axes.set_yticks(range(len(rows)), [short(name, 60) for name in rows], fontsize=font)
    axes.tick_params(axis="x", rotation=90 if slanted else 0, length=2)
    axes.tick_params(axis="y", length=2)
    axes.set_xlabel("predicted", fontsize=font + 1)
    axes.set_ylabel("true", fontsize=font + 1)
    # Lines between the cells, and a stronger one before "none of these".
    axes.set_xticks(np.arange(counts.shape[1] - 1) + 0.5, minor=True)
    axes.set_yticks(np.arange(len(rows) - 1) + 0.5, minor=True)
    axes.grid(which="minor", color="#d5d5d5", linewidth=0.4)
    axes.tick_params(which="minor", length=0)
    if counts.shape[1] > len(rows):
        axes.axvline(len(rows) - 0.5, color="#555555", linewidth=0.8)
    smaller = font if counts.shape[1] <= 12 else font * 0.85
    for row, column in zip(*np.nonzero(counts), strict=True):
        number = f"{counts[row, column]}"
        axes.text(
            column,
            row,
            number,
            ha="center",
            va="center",
            fontsize=smaller * min(1.0, 3.5 / len(number)) if counts.shape[1] > 12 else smaller,
            color="white" if shares[row, column] > 0.35 else "#111111",
        )
