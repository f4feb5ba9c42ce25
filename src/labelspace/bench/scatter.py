"""Shared parts of the benchmark's scatter plots: points, colours and markers of the families, axes, legend.

Published models are hollow, measured ones filled and named. Each family has its own colour and marker, so that it can
be recognised in greyscale and by colour-blind readers.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from labelspace.bench.cards import BTZSC
from labelspace.bench.models import FAMILIES_OF_MODELS
from labelspace.bench.naming import name_points
from labelspace.bench.rows import Record
from labelspace.bench.tables import WORDS
from labelspace.evaluate.drawing import short
from labelspace.evaluate.palette import FEW, MARKERS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = dict(zip(FAMILIES_OF_MODELS, (FEW[7], FEW[0], FEW[2], FEW[1], FEW[3], FEW[5]), strict=True))
SIGNS = dict(zip(FAMILIES_OF_MODELS, MARKERS, strict=False))


class Point(NamedTuple):
    """A model in a scatter plot."""

    name: str
    """Name of the model."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    x: float
    """Position on the x-axis."""

    y: float
    """Position on the y-axis."""

    measured: bool
    """True for a model of the store, False for a published one."""


def scatter(axes: "Axes", points: Sequence[Point]) -> None:
    """Draw the points."""
    for point in sorted(points, key=lambda point: point.measured):
        colour = COLOURS.get(point.family, "#555555")
        sign = SIGNS.get(point.family, "o")
        inside = colour if point.measured else "white"
        size = 70 if point.measured else 30
        axes.scatter(
            point.x, point.y, s=size, marker=sign, facecolors=inside, edgecolors=colour, zorder=2 + point.measured
        )


def log_axis(axes: "Axes", values: Sequence[float]) -> None:
    """Make the x-axis logarithmic, with tick labels such as 20M."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axes.set_xscale("log")
    # The margin gives a range even to a single model, whose point then lies in the middle.
    axes.set_xlim(min(values) / 2, max(values) * 2)
    wide = max(values) > 100 * min(values)
    axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if wide else (1.0, 2.0, 5.0)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
    axes.xaxis.set_minor_formatter(NullFormatter())


def _count(value: float) -> str:
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{letter}"
    return f"{value:g}"


def finish(
    figure: "Figure",
    axes: "Axes",
    metric: str,
    sets: Sequence[str],
    points: Sequence[Point],
    words: Mapping[str, str] | None = None,
) -> None:
    """Label the y-axis and the measured models, and draw the legend; `words` are added to a family's entry."""
    from matplotlib.lines import Line2D

    def entry(colour: str, sign: str, inside: str) -> Line2D:
        return Line2D([], [], linestyle="none", marker=sign, color=colour, markerfacecolor=inside, markersize=6)

    axes.set_ylabel(f"{WORDS[metric]}, mean over {len(sets)} of {len(BTZSC)} data sets")
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)
    entries = []
    for family, name in FAMILIES_OF_MODELS.items():
        if any(point.family == family for point in points):
            more = f"\n{words[family]}" if words and family in words else ""
            entries.append((entry(COLOURS[family], SIGNS[family], COLOURS[family]), name + more))
    if len({point.measured for point in points}) == 2:
        entries.append((entry("#555555", "o", "white"), "published"))
        entries.append((entry("#555555", "o", "#555555"), "measured"))
    if entries:
        handles, names = zip(*entries, strict=True)
        figure.legend(handles, names, loc="outside right center")
    named = sorted((point for point in points if point.measured), key=lambda point: (-point.y, point.x, point.name))
    others = [point for point in points if not point.measured]
    name_points(
        axes,
        np.array([(point.x, point.y) for point in (*named, *others)], dtype=np.float64),
        [short(point.name.partition(":")[2] or point.name, 36) for point in named],
        colours=[COLOURS.get(point.family, "#555555") for point in named],
        all_of_them=True,
    )


def machines(records: Sequence[Record]) -> str:
    """Describe the hardware that scored the texts, for an axis label."""
    hardware = {
        record["provenance"]["hardware"].get("accelerator") or record["provenance"]["hardware"].get("processor")
        for record in records
        if record.get("benchmark") == "btzsc" and "hardware" in record.get("provenance", {})
    }
    if len(hardware) == 1:
        return f"on {short(str(hardware.pop()), 48)}"
    return "on different machines: not comparable" if hardware else "measured here"
