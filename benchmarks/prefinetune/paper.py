"""The paper's numbers with a counterpart in our results: tables 2, 3, 5 and 7."""

import csv
import functools
from pathlib import Path

TABLE = Path(__file__).with_name("paper.csv")
E5 = "e5-base-v2"
QWEN3 = "Qwen3-Embedding-0.6B"


@functools.cache
def figures() -> dict[tuple[str, str, str, int], float]:
    """Return scores by encoder, set (a domain name for its average), method and rows."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {
            (row["encoder"], row["set"], row["method"], int(row["rows"])): float(row["score"])
            for row in csv.DictReader(file)
        }


def figure(encoder: str, name: str, method: str, rows: int) -> float | None:
    """Return one score; None if the paper has none."""
    return figures().get((encoder, name, method, rows))
