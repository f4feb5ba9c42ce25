"""What the scripts that measure one thing share: a time, and a row of the table `single`."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from store import COMMIT, RESULTS, Table, refuse_dirty

from labelspace.evaluate.provenance import provenance

SINGLE = Table(RESULTS / "single.jsonl")


def seconds(work: Callable[[], Any]) -> tuple[float, Any]:
    """Time one call."""
    started = time.perf_counter()
    value = work()
    return time.perf_counter() - started, value


def measure(name: str, data: str, work: Callable[[], Mapping[str, Any]]) -> None:
    """Measure one thing and keep it, in place of what was measured before.

    Args:
        name: of the row.
        data: which data it is of.
        work: returns the result.
    """
    refuse_dirty(SINGLE.path)
    SINGLE.add("measured", name, work(), provenance=provenance(seeds=[0], data=data) | {"commit": COMMIT})
