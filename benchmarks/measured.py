"""Helpers of the scripts that measure one thing: timing, and a row in the table `single`."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from store import COMMIT, RESULTS, Table, refuse_dirty

from labelspace.evaluate.provenance import provenance

SINGLE = Table(RESULTS / "single.jsonl")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Call `work`, and return its seconds and result."""
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def measure(name: str, data: str, work: Callable[[], Mapping[str, Any]], table: Table = SINGLE) -> None:
    """Measure one thing and store it in place of the previous result.

    Args:
        name: name of the row.
        data: name of the data.
        work: function that measures and returns the result.
        table: where the row goes.
    """
    refuse_dirty(table.path)
    table.add("measured", name, work(), provenance=provenance(seeds=[0], data=data) | {"commit": COMMIT})
