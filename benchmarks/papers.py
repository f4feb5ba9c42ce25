"""Figures of a paper, typed from its tables into a CSV file: a line for each table and row, a column for each set."""

import csv
from pathlib import Path
from typing import Any


def tables_of(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return figures by table, row and column; several numbers in a cell, as a mean and its deviation, are a tuple."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            own = found.setdefault(line.pop("table"), {}).setdefault(line.pop("row"), {})
            own |= {column: _figure(cell) for column, cell in line.items() if cell}
    return found


def _figure(cell: str) -> Any:
    numbers = tuple(float(word) if "." in word else int(word) for word in cell.split())
    return numbers if len(numbers) > 1 else numbers[0]
