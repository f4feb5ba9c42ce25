"""The figure of accuracy-rejection curves."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from labelspace.errors import InputError
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure
from labelspace.evaluate.palette import label_colours
from labelspace.evaluate.rejection import RejectionCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_POINTS = 400
"""Maximum points drawn per line; a curve has one per document, and more would not be visible."""

FEW_DOCUMENTS = 20
"""With many documents, points with fewer remaining than this do not set the y-range: their accuracy is mostly noise."""

# Line styles that differ without colour as well.
STROKES = ("-", (0, (6, 2)), (0, (6, 2, 1, 2)), (0, (3, 1.5)), (0, (6, 2, 1, 2, 1, 2)), (0, (1, 1)))
GREY = "#808080"


def rejection_figure(curves: Mapping[str, RejectionCurve], path: str | Path, *, best: bool = True) -> tuple[Path, ...]:
    """Draw accuracy-rejection curves: accuracy on the remaining documents against the share rejected.

    The most uncertain documents are rejected first, so a rising line means that the uncertainty finds errors. Two grey
    lines are drawn once for all curves of the same accuracy: random rejection, which stays level, and the best
    possible, which rejects the errors first.

    Args:
        curves: name -> curve; the legend gives names and areas.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.
        best: False leaves out the best possible curve, which takes much of the height when accuracy is high.

    Returns:
        The files written.

    Raises:
        MissingDependencyError: matplotlib is not installed.
        InputError: no curve.
        OutputError: an unknown extension, or a file that cannot be written.

    Example:
        >>> import tempfile
        >>> from labelspace.evaluate import rejection_curve
        >>> curve = rejection_curve([0.1, 0.9, 0.5, 0.2], [True, True, False, True])
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     [file.name for file in rejection_figure({"sigma": curve}, f"{folder}/rejection")]
        ['rejection.png', 'rejection.svg']

    Reference:
        The uncertainty-aware contrastive paper, Figure 5 (right); Nadeem et al., 2009.
    """
    files = files_of(path)
    if not curves:
        raise InputError("there is no curve to draw; give one or more.")
    with drawing("the accuracy-rejection curve") as new_figure:
        from matplotlib.ticker import PercentFormatter

        bounds = _bounds(curves)
        figure = new_figure(6.2, 4.0 + 0.17 * (len(curves) + (1 + best) * len(bounds)))
        axes = figure.add_subplot()
        for number, (name, curve) in enumerate(curves.items()):
            drawn = _drawn(len(curve.accuracy))
            # The leading space keeps a name with an underscore in the legend: matplotlib drops such labels.
            shown = short(f" {name}" if name.startswith("_") else name, 60)
            axes.plot(
                curve.rejected[drawn],
                curve.accuracy[drawn],
                color=label_colours(len(curves))[number],
                linestyle=STROKES[number % len(STROKES)],
                linewidth=1.6,
                label=f"{shown}, area {curve.area:.3f}",
                zorder=3,
            )
        for name, curve in bounds.items():
            _draw_bounds(axes, curve, f" ({short(name, 40)})" if len(bounds) > 1 else "", best=best)
        axes.set_ylim(*_limits(curves))
        axes.set_xlim(0, 1)
        axes.xaxis.set_major_formatter(PercentFormatter(1, symbol=" %"))
        axes.set_xlabel("documents rejected, the least sure first")
        axes.set_ylabel("accuracy of what is left")
        counts = sorted({len(curve.accuracy) for curve in curves.values()})
        axes.set_title(f"Accuracy-rejection curve, {' or '.join(f'{count:,}' for count in counts)} documents")
        axes.grid(color="#ececec", linewidth=0.5)
        axes.set_axisbelow(True)
        figure.legend(loc="outside lower center", ncols=1)
        return write_figure(figure, files)


def _drawn(documents: int) -> np.ndarray:
    return np.unique(np.linspace(0, documents - 1, min(documents, MOST_POINTS)).round().astype(int))


def _bounds(curves: Mapping[str, RejectionCurve]) -> dict[str, RejectionCurve]:
    """Return the first curve of each accuracy: curves over the same answers share chance and oracle."""
    first: dict[tuple[float, int], str] = {}
    for name, curve in curves.items():
        first.setdefault((curve.area_random, len(curve.accuracy)), name)
    return {name: curves[name] for name in first.values()}


def _draw_bounds(axes: "Axes", curve: RejectionCurve, whose: str, *, best: bool) -> None:
    accuracy = curve.area_random
    level = f"random{whose}, area {accuracy:.3f}"
    axes.axhline(accuracy, color=GREY, linewidth=1.3, linestyle=(0, (1, 1.5)), label=level, zorder=2)
    if best:
        across = np.sort(np.append(np.linspace(0, 1, MOST_POINTS, endpoint=False), 1 - accuracy))
        with np.errstate(invalid="ignore"):  # 0 / 0 if no answer is right
            height = np.minimum(1, np.nan_to_num(accuracy / (1 - across)))
        label = f"best possible{whose}, area {curve.area_best:.3f}"
        axes.plot(across, height, color=GREY, linewidth=1.0, label=label, zorder=1)


def _limits(curves: Mapping[str, RejectionCurve]) -> tuple[float, float]:
    lows = []
    for curve in curves.values():
        many = len(curve.accuracy) >= 10 * FEW_DOCUMENTS
        lows.append(curve.accuracy[: 1 - FEW_DOCUMENTS if many else None].min())
    room = max(0.06 * (1 - min(lows)), 0.005)
    return float(min(lows) - room), 1 + room
