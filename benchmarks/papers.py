"""Numbers of a paper, transcribed from its tables to CSV: one line per table row, one column per data set."""

import csv
from pathlib import Path
from typing import Any


def tables_of(path: Path) -> dict[str, dict[str, dict[str, Any]]]:
    """Return numbers by table, row and column; a cell with several, such as mean and deviation, is a tuple."""
    found: dict[str, dict[str, dict[str, Any]]] = {}
    with path.open(encoding="utf-8", newline="") as lines:
        for line in csv.DictReader(lines):
            own = found.setdefault(line.pop("table"), {}).setdefault(line.pop("row"), {})
            own |= {column: _figure(cell) for column, cell in line.items() if cell}
    return found


def _figure(cell: str) -> Any:
    numbers = tuple(float(word) if "." in word else int(word) for word in cell.split())
    return numbers if len(numbers) > 1 else numbers[0]
