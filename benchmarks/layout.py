"""Tables in Markdown and the figures in their cells, for every report."""

import statistics
from collections.abc import Iterable, Sequence

NOT_YET = "(not run yet)"
"""What stands where nothing has been run."""

DAGGER = "†"
DAGGER_NOTE = f"{DAGGER} Measured on code with uncommitted changes, or at a commit that this repository does not hold."


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, side: str = "---:|") -> str:
    """Lay out a table, with a note below it where a cell has a dagger (see commits.py).

    Args:
        head: a title for each column.
        rows: cells of each row; none: `NOT_YET`.
        side: how the columns after the first are aligned; numbers to the right.
    """
    if not rows:
        return NOT_YET
    lines = [f"| {' | '.join(row)} |" for row in (head, *rows)]
    lines.insert(1, "|---|" + side * (len(head) - 1))
    notes = ["", DAGGER_NOTE] if any(DAGGER in line for line in lines) else []
    return "\n".join([*lines, *notes])


def filled(rows: Iterable[Sequence[str]], heads: int = 1) -> list[Sequence[str]]:
    """Leave out the rows that have a dash in every cell behind so many heads: nothing of them was run."""
    return [row for row in rows if any(cell != "-" for cell in row[heads:])]


def bold_best(cells: Sequence[str]) -> list[str]:
    """Set the highest of the figures that cells begin with in bold; of equal ones, as printed, each."""
    figures = [float(cell.split()[0]) for cell in cells]
    return [f"**{cell}**" if own == max(figures) else cell for cell, own in zip(cells, figures, strict=True)]


def spread(values: Sequence[float], form: str = "{:.3f}") -> str:
    """Mean, and the standard deviation where there are several."""
    if not values:
        return "-"
    mean = form.format(statistics.fmean(values))
    return f"{mean} ± {form.format(statistics.stdev(values))}" if len(values) > 1 else mean


def percent(values: Sequence[float], beside: str = "") -> str:
    """The same of shares, in percent; and what another source has, in brackets."""
    cell = spread([100 * value for value in values], "{:.1f}")
    return f"{cell} ({beside})" if beside and values else cell
