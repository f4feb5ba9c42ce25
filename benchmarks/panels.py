"""Figures of the docs pages: panels in one style, one file per figure."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS

Figures = Mapping[str, Callable[[Path], tuple[Path, ...]]]
Panel = Callable[[Any], None]
"""A function that draws into its axes."""


def all_figures(figures: Figures, folder: Path) -> list[Path]:
    """Draw every figure that has results, as .png, the format of the pages."""
    return [path for name, draw in figures.items() for path in draw(folder / f"{name}.png")]


def panelled(
    path: Path,
    panels: Sequence[Panel],
    size: tuple[float, float],
    *,
    columns: int | None = None,
    finish: Callable[[Any], None] = lambda _: None,
) -> tuple[Path, ...]:
    """Draw panels, and return the files; without panels nothing is drawn.

    Args:
        path: file of the figure; its stem names it in error messages.
        panels: panels, row by row.
        size: width and height in inches.
        columns: panels per row; None: all in one row.
        finish: draws what belongs to the whole figure.
    """
    if not panels:
        return ()
    columns = columns or len(panels)
    with drawing(path.stem) as new_figure:
        figure = new_figure(*size)
        for place, draw in enumerate(panels, 1):
            draw(figure.add_subplot(-(-len(panels) // columns), columns, place))
        finish(figure)
        return write_figure(figure, files_of(path))


def quiet(axes: Any, **which: str) -> None:
    """Draw a pale grid in the background."""
    axes.grid(color="#e4e4e4", linewidth=0.6, **which)
    axes.set_axisbelow(True)


def line(axes: Any, points: Mapping[Any, Sequence[float]], place: int, title: str) -> None:
    """Draw means, with a band of one standard deviation for several scores."""
    if not points:
        return
    across = sorted(points)
    means = np.array([statistics.fmean(points[x]) for x in across])
    spread = np.array([statistics.stdev(points[x]) if len(points[x]) > 1 else 0.0 for x in across])
    axes.plot(across, means, color=FEW[place], marker=MARKERS[place], markersize=4, label=title)
    axes.fill_between(across, means - spread, means + spread, color=FEW[place], alpha=0.12, linewidth=0)


def level(axes: Any, height: float, place: int) -> None:
    """Draw a dashed reference line."""
    axes.axhline(height, color=FEW[place], linestyle="--", linewidth=0.9)


def dots(axes: Any, points: Any, place: int, **looks: Any) -> None:
    """Scatter points, (x, y) each, with the colour and marker of a place in the palette."""
    own = np.array([point[:2] for point in points], dtype=float).reshape(-1, 2)
    looks = {"color": FEW[place % len(FEW)], "marker": MARKERS[place % len(MARKERS)], "linewidths": 0, **looks}
    axes.scatter(own[:, 0], own[:, 1], **looks)


def bare(axes: Any) -> None:
    """Remove the ticks of a map, whose axes have no meaning."""
    axes.set_xticks([])
    axes.set_yticks([])
