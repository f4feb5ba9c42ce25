"""The figure of an estimate without labels: two ranges, and the trust in each label."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.figures.rows import EDGE, INK, MOST_ROWS, PALE, name_rows, names_inches, rows_inches
from labelspace.evaluate.quality import Estimate
from labelspace.evaluate.trust import TRUSTED, LabelTrust

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Face, edge and hatch of a bar; in greyscale dark, middle and pale, and each has its own hatch.
LOOKS: dict[str, dict[str, Any]] = {
    "trusted": {"facecolor": "#1f3b8f", "edgecolor": "#1f3b8f", "hatch": ""},
    "doubtful": {"facecolor": "#e8a200", "edgecolor": "#7a4a1c", "hatch": "////"},
    "not to be trusted": {"facecolor": "#f7ded9", "edgecolor": "#b3261e", "hatch": "xxxx"},
    "too few documents": {"facecolor": "#ffffff", "edgecolor": "#5f6368", "hatch": "...."},
}


def estimate_figure(estimate: Estimate, path: str | Path) -> tuple[Path, ...]:
    """Draw an estimate: the ranges of accuracy and macro-F1, and below them the agreement of each label.

    A white line marks the median of a range. The bar of a label is coloured and hatched by its trust, and the number of
    its documents stands beside it. With more than `MOST_ROWS` labels, those with the most documents are drawn, and
    the title says so.

    Args:
        estimate: result of `evaluate.estimate`.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.evaluate import estimate
        >>> clf = ZeroShotClassifier(["sports", "money"], encoder="tests/data/tiny-bert").fit()
        >>> found = estimate(clf, [f"the {who} won {row}" for who in ("team", "bank", "player") for row in range(20)])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in estimate_figure(found, f"{folder}/estimate")]
        ['estimate.png', 'estimate.svg']
    """
    files = files_of(path)
    labels = estimate.labels[:MOST_ROWS]
    with drawing("the estimate") as new_figure:
        tall = rows_inches(len(labels))
        figure = new_figure(5.4 + names_inches([one.name for one in labels]), 2.7 + tall)
        above, below = figure.subplots(2, 1, height_ratios=[rows_inches(2), tall])
        _draw_ranges(above, estimate)
        _draw_labels(below, labels)
        known = f", {estimate.labelled:,} of them labelled" if estimate.labelled else ""
        more = len(estimate.labels) - len(labels)
        which = f"\nthe {len(labels)} labels with the most documents, of {len(estimate.labels):,}" if more else ""
        figure.suptitle(f"Estimate from {estimate.documents:,} documents{known}{which}", fontsize=10)
        _draw_legend(figure, {one.trust for one in labels})
        return write_figure(figure, files)


def _draw_ranges(axes: "Axes", estimate: Estimate) -> None:
    """Draw each range as a bar, with a line at its median."""
    ranges = {"accuracy": estimate.accuracy, "macro-F1": estimate.macro_f1}
    for row, found in enumerate(ranges.values()):
        axes.barh(row, found.high - found.low, left=found.low, height=0.55, color=EDGE)
        axes.plot([found.expected] * 2, [row - 0.275, row + 0.275], color="white", linewidth=1.6, solid_capstyle="butt")
    told = [str(found) for found in ranges.values()]
    name_rows(axes, list(ranges), told, heading="median (8 of 10 cases)")
    axes.set_xlim(0, 1)


def _draw_labels(axes: "Axes", labels: Sequence[LabelTrust]) -> None:
    """Draw the agreement of each label as a bar; a label without documents has none."""
    for row, label in enumerate(labels):
        if label.trust in LOOKS:
            axes.barh(row, label.agreement, height=0.66, linewidth=0.7, **LOOKS[label.trust])
        else:
            axes.text(0.01, row, label.trust, va="center", fontsize=8, color=PALE)
    name_rows(axes, [one.name for one in labels], [f"{one.documents:,}" for one in labels], heading="documents")
    axes.set_xlim(0, 1)
    axes.axvline(TRUSTED, color=INK, linewidth=0.7, linestyle=(0, (4, 3)))
    axes.set_xlabel("agreement of words, and near documents, with the label's answers")


def _draw_legend(figure: Any, trusts: set[str]) -> None:
    from matplotlib.patches import Patch

    shown = {trust: look for trust, look in LOOKS.items() if trust in trusts}
    bound = {"trusted": f" ({TRUSTED:.2f} or more)"}
    entries = [Patch(label=trust + bound.get(trust, ""), linewidth=0.7, **look) for trust, look in shown.items()]
    if entries:
        figure.legend(handles=entries, loc="outside lower center", ncols=len(entries), fontsize=8)
