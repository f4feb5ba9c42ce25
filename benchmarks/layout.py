"""Markdown tables and their cells, for all reports."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any

import pandas as pd

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


def crossed(runs: pd.DataFrame, rows: Sequence[str], columns: Sequence[str], cell: Callable[..., Any]) -> pd.DataFrame:
    """Group runs by the columns of a frame, and make a table of the groups.

    Args:
        runs: a run per row.
        rows: columns whose values become the rows of the table.
        columns: columns whose values become its columns.
        cell: makes a cell from the runs of a group and the group's values.
    """
    groups = {key: cell(own, *key) for key, own in runs.groupby([*rows, *columns])}
    places = pd.MultiIndex.from_tuples(groups, names=[*rows, *columns])
    return pd.Series(groups.values(), index=places, dtype=object).unstack(list(columns)).infer_objects()


def products(*titles: Mapping[Any, str]) -> dict[tuple[Any, ...], tuple[str, ...]]:
    """Return the titles of every combination of keys, for an index of several levels."""
    return dict(zip(product(*titles), product(*(own.values() for own in titles)), strict=True))


def titled(cells: pd.DataFrame, rows: Mapping[Any, Any], columns: Mapping[Any, str]) -> pd.DataFrame:
    """Put rows and columns in the order of these mappings, and replace their keys by titles."""
    cells = cells.reindex(index=list(rows), columns=list(columns)).astype(object)
    return cells.set_axis(list(rows.values())).set_axis(list(columns.values()), axis=1)


def table(cells: pd.DataFrame, *heads: str, side: str = "---:|") -> str:
    """Lay out a frame of cells; its index becomes the first columns, with the titles `heads`.

    Rows without a cell are left out, and a missing cell is a dash.
    """
    cells = cells.dropna(how="all").astype(object).fillna("-")
    keys = (key if isinstance(key, tuple) else (key,) for key in cells.index)
    rows = [[*key, *row] for key, row in zip(keys, cells.to_numpy(), strict=True)]
    return markdown([*heads, *cells.columns], rows, side=side)


def bold_best(cells: Sequence[str]) -> list[str]:
    """Set the cells with the highest leading number in bold; all of them if several are equal as printed."""
    figures = [float(cell.split()[0]) for cell in cells]
    return [f"**{cell}**" if own == max(figures) else cell for cell, own in zip(cells, figures, strict=True)]


def spread(values: Sequence[float], form: str = "{:.3f}") -> str:
    """Format the mean, with the standard deviation if there are several values."""
    if len(values) == 0:
        return "-"
    mean = form.format(statistics.fmean(values))
    return f"{mean} ± {form.format(statistics.stdev(values))}" if len(values) > 1 else mean


def signed(values: Sequence[float], form: str = "{:+.3f}") -> str:
    """Format as in `spread`, the mean with its sign and the deviation without one."""
    return spread(values, form).replace("± +", "± ")


def percent(values: Sequence[float], beside: str = "") -> str:
    """Format shares as in `spread`, in percent, with another source's number in brackets."""
    cell = spread([100 * value for value in values], "{:.1f}")
    return f"{cell} ({beside})" if beside and len(values) else cell
