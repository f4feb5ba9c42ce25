"""Parts shared by the figures with a row for each label: names at the left, numbers at the right."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from labelspace.evaluate.drawing import short
from labelspace.text_table import width_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_ROWS = 100
"""Maximum number of labels drawn; more would make the figure too tall."""

NAME = 60
FEW = 12
"""Up to this many labels have taller rows."""

INK, EDGE, PALE = "#111111", "#555555", "#8a8a8a"


def rows_inches(count: int) -> float:
    """Return the height of rows, in inches.

    Example:
        >>> rows_inches(2), rows_inches(100)
        (0.64, 20.0)
    """
    return round(count * (0.32 if count <= FEW else 0.2), 2)


def names_inches(names: Sequence[str]) -> float:
    """Return the width of the longest name as it is drawn, in inches."""
    return max(width_of(short(name, NAME)) for name in names) * 9.0 * 0.62 / 72


def name_rows(axes: "Axes", names: Sequence[str], beside: Sequence[str], *, heading: str = "") -> None:
    """Name the rows of an axes, the first at the top.

    Args:
        axes: the axes; row r is at y = r.
        names: left of the rows.
        beside: right of the rows.
        heading: what stands at the right, above the first row.
    """
    rows, font = range(len(names)), 9.0 if len(names) <= FEW else 8.0
    axes.set_ylim(len(names) - 0.4, -0.6)
    axes.set_yticks(rows, [short(name, NAME) for name in names], fontsize=font)
    axes.tick_params(axis="y", length=0)
    right = axes.secondary_yaxis("right")
    right.set_yticks(rows, beside, fontsize=font)
    right.tick_params(length=0)
    right.spines["right"].set_visible(False)
    axes.text(1.0, 1.0, f"  {heading}", transform=axes.transAxes, va="bottom", fontsize=8, color=EDGE)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.grid(axis="x", color="#e2e2e2", linewidth=0.5)
    axes.set_axisbelow(True)
