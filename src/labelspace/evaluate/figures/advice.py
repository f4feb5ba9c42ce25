"""The figure of an advice: what leaving out the worst descriptions would do, and which labels are confused."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.evaluate.advice import HURTS, Advice, DescriptionAdvice, PairAdvice
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure
from labelspace.evaluate.figures.rows import EDGE, INK, name_rows, names_inches, rows_inches

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Dark, and pale with a hatch, so that they differ in greyscale.
HELPS: dict[str, Any] = {"facecolor": "#1f3b8f", "edgecolor": "#1f3b8f", "hatch": ""}
HARMS: dict[str, Any] = {"facecolor": "#f7ded9", "edgecolor": "#b3261e", "hatch": "xxxx"}


def advice_figure(advice: Advice, path: str | Path) -> tuple[Path, ...]:
    """Draw what leaving out each of the worst descriptions would do, and below it the labels that are confused.

    A bar to the right is a description that hurts: the macro-F1 expected without it is higher. The number of documents
    that it is nearest to stands beside it.

    Args:
        advice: result of `evaluate.advise`.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace.evaluate import advise
        >>> labels = {"sports": ["The team won.", "A player lost."], "money": ["The bank won.", "Prices fell."]}
        >>> pool = [f"the {who} won {row}" for who in ("team", "bank", "player") for row in range(20)]
        >>> found = advise(labels, pool, encoder="tests/data/tiny-bert")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in advice_figure(found, f"{folder}/advice")]
        ['advice.png', 'advice.svg']
    """
    files = files_of(path)
    worst = [one for one in advice.descriptions if one.macro_f1 is not None]
    names = [_described(one) for one in worst]
    names += [_paired(one) for one in advice.pairs]
    heights = [rows_inches(len(worst)), *([rows_inches(len(advice.pairs))] if advice.pairs else [])]
    with drawing("the advice") as new_figure:
        figure = new_figure(5.0 + names_inches(names), 1.2 * len(heights) + 0.4 + sum(heights))
        axes = figure.subplots(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
        _draw_descriptions(axes[0], worst)
        if advice.pairs:
            _draw_pairs(axes[1], advice.pairs)
        figure.suptitle(f"The worst descriptions on {advice.documents:,} documents without labels", fontsize=10)
        return write_figure(figure, files)


def _draw_descriptions(axes: "Axes", worst: Sequence[DescriptionAdvice]) -> None:
    """Draw the change of the expected macro-F1 without each description."""
    for row, one in enumerate(worst):
        change = one.macro_f1 or 0.0
        axes.barh(row, change, height=0.66, linewidth=0.7, **(HARMS if change >= HURTS else HELPS))
    names = [_described(one) for one in worst]
    name_rows(axes, names, [f"{one.wins:,}" for one in worst], heading="nearest to")
    axes.axvline(0, color=INK, linewidth=0.7)
    axes.margins(x=0.1)
    axes.set_xlabel("change of the expected macro-F1 without it; hatched: the description hurts")


def _draw_pairs(axes: "Axes", pairs: Sequence[PairAdvice]) -> None:
    """Draw how many documents are one label by the encoder, and the other by words."""
    axes.barh(range(len(pairs)), [one.confused for one in pairs], height=0.66, color=EDGE)
    name_rows(axes, [_paired(one) for one in pairs], [f"{one.confused:,}" for one in pairs])
    axes.set_xlabel("documents with one label by the encoder, the other by words")


# Names are cut first, so that a long one leaves room for what stands beside it.
def _described(one: DescriptionAdvice) -> str:
    return f"{short(one.label, 24)}: {one.text}"


def _paired(one: PairAdvice) -> str:
    return " and ".join(short(name, 27) for name in one.labels)
