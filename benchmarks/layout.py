"""Markdown tables and their cells, for all reports."""

import statistics
from collections.abc import Iterable, Sequence

NOT_YET = "(not run yet)"
"""Text in place of a table without results."""

DAGGER = "†"
DAGGER_NOTE = f"{DAGGER} Measured on code with uncommitted changes, or at a commit that this repository does not hold."


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, side: str = "---:|") -> str:
    """Lay out a table, with a note below it if a cell has a dagger (see commits.py).

    Args:
        head: column titles.
        rows: cells of each row; empty gives `NOT_YET`.
        side: Markdown alignment of the columns after the first; default: right, for numbers.
    """
    if not rows:
        return NOT_YET
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, "|---|" + side * (len(head) - 1))
    notes = ["", DAGGER_NOTE] if any(DAGGER in line for line in lines) else []
    return "\n".join([*lines, *notes])


def filled(rows: Iterable[Sequence[str]], heads: int = 1) -> list[Sequence[str]]:
    """Leave out rows without results: a dash in every cell after the first `heads`."""
    return [row for row in rows if any(cell != "-" for cell in row[heads:])]


def bold_best(cells: Sequence[str]) -> list[str]:
    """Set the cells with the highest leading number in bold; all of them if several are equal as printed."""
    figures = [float(cell.split()[0]) for cell in cells]
    return [f"**{cell}**" if own == max(figures) else cell for cell, own in zip(cells, figures, strict=True)]


def spread(values: Sequence[float], form: str = "{:.3f}") -> str:
    """Format the mean, with the standard deviation if there are several values."""
    if not values:
        return "-"
    mean = form.format(statistics.fmean(values))
    return f"{mean} ± {form.format(statistics.stdev(values))}" if len(values) > 1 else mean


def percent(values: Sequence[float], beside: str = "") -> str:
    """Format shares as in `spread`, in percent, with another source's number in brackets."""
    cell = spread([100 * value for value in values], "{:.1f}")
    return f"{cell} ({beside})" if beside and values else cell
