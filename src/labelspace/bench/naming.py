"""Place names beside the points of a figure without covering points or other names."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.text import Annotation

# Offsets of a name from its point, in typographic points: near ones first, far ones get a thin line.
_NEAR = tuple((side * 6, up) for up in (3, -3) for side in (1, -1))
_FAR = tuple(
    (side * across, up)
    for across, ups in ((10, (14, -14, 26, -26)), (14, (38, -38, 50, -50, 62, -62)))
    for up in ups
    for side in (1, -1)
)


def name_points(
    axes: "Axes",
    points: NDArray[np.float64],
    names: Sequence[str],
    *,
    colours: Sequence[str] | None = None,
    way: NDArray[np.float64] | None = None,
    all_of_them: bool = False,
) -> None:
    """Write names beside points, in the order given.

    Call this last: it fixes the axes' range and position, which decide where a name fits.

    Args:
        axes: finished axes; only names may be added afterwards.
        points: [point 2], in data units.
        names: names of the first points, one each; empty names are skipped.
        colours: colours of the names; None: dark grey.
        way: [corner 2], a line that names should not cover; None: no line.
        all_of_them: True moves a name away, with a thin line, if there is no room beside its point, and writes it even
            if it covers something; False leaves it out.
    """
    from matplotlib.transforms import Bbox

    figure: Any = axes.figure
    figure.draw_without_rendering()
    inside = axes.get_window_extent()
    pixels = figure.dpi / 72

    def boxes(places: NDArray[np.float64], size: float) -> list[Any]:
        half = size * pixels
        return [Bbox.from_bounds(x - half, y - half, 2 * half, 2 * half) for x, y in axes.transData.transform(places)]

    taken = boxes(points, 4)
    if way is not None and len(way) > 1:
        at = np.linspace(0, len(way) - 1, 24 * len(way))
        along = np.stack([np.interp(at, np.arange(len(way)), way[:, axis]) for axis in (0, 1)], axis=1)
        taken += boxes(along, 1.5)
    for number, name in enumerate(names):
        if not name:
            continue
        written = axes.annotate(
            name,
            (float(points[number, 0]), float(points[number, 1])),
            xytext=_NEAR[0],
            textcoords="offset points",
            fontsize=7,
            color=colours[number] if colours else "#333333",
            zorder=4,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.7, "pad": 0.6},
        )
        written.set_in_layout(False)
        best, covered = _best_place(written, (*_NEAR, *_FAR) if all_of_them else _NEAR, taken, inside)
        if covered and not all_of_them:
            written.remove()
            continue
        _move(written, best)
        taken.append(written.get_window_extent())
        if best in _FAR:
            line = {"arrowstyle": "-", "color": "#777777", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 4}
            leader = axes.annotate("", written.xy, best, textcoords="offset points", arrowprops=line)
            leader.set_in_layout(False)


def _best_place(
    name: "Annotation", places: Sequence[tuple[int, int]], taken: Sequence[Any], inside: Any
) -> tuple[tuple[int, int], int]:
    """Return the first of the places with least overlap, and that overlap."""
    covered: dict[tuple[int, int], int] = {}
    for place in places:
        _move(name, place)
        box = name.get_window_extent()
        outside = box.x0 < inside.x0 or box.x1 > inside.x1 or box.y0 < inside.y0 or box.y1 > inside.y1
        covered[place] = sum(box.overlaps(other) for other in taken) + 100 * outside
        if not covered[place]:
            break
    best = min(covered, key=lambda place: covered[place])
    return best, covered[best]


def _move(name: "Annotation", place: tuple[int, int]) -> None:
    across, up = place
    name.set(position=place, ha="left" if across > 0 else "right", va="bottom" if up > 0 else "top")
