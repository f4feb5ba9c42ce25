"""Tables in Markdown and the figures in their cells, for every report."""

import statistics
from collections.abc import Sequence

NOT_YET = "(not run yet)"
"""What stands where nothing has been run."""


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, side: str = "---:|") -> str:
    """Lay out a table.

    Args:
        head: a title for each column.
        rows: cells of each row; none: `NOT_YET`.
        side: how the columns after the first are aligned; numbers to the right.
    """
    if not rows:
        return NOT_YET
    lines = [f"| {' | '.join(head)} |", "|---|" + side * (len(head) - 1)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


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
