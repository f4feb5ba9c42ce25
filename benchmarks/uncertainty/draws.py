"""Bootstrap intervals of differences in area under the rejection curve, over test rows."""

import functools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.evaluate import rejection_curve
from labelspace.seeds import child_seed
from uncertainty.answers import Answers

DRAWS = 1000
AT_ONCE = 50
RANDOM = "random"


class Gap(NamedTuple):
    """A mean over runs, and its 95 % bootstrap interval."""

    value: float
    low: float
    high: float


def area_gap(runs: Sequence[Answers], by: str, other: str) -> Gap:
    """Return the area under the rejection curve by one uncertainty minus that by another, averaged over runs.

    Each draw takes the same rows from all runs.

    Args:
        runs: runs on the same test rows.
        by: `"uncertainty"` or `"entropy"`.
        other: `"uncertainty"`, `"entropy"` or `"random"`, whose area is the accuracy.
    """
    value = float(np.mean([_area(run, by) - _area(run, other) for run in runs]))
    drawn = np.mean([_drawn(run, by) - _drawn(run, other) for run in runs], axis=0)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Gap(value, float(low), float(high))


def _area(run: Answers, by: str) -> float:
    if by == RANDOM:
        return rejection_curve(run.entropy, run.right).area_random
    return rejection_curve(getattr(run, by), run.right).area


def _drawn(run: Answers, by: str) -> NDArray[np.float64]:
    return drawn_areas(None if by == RANDOM else getattr(run, by), run.right)


def drawn_areas(doubts: NDArray[np.float64] | None, right: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Return the area of each draw.

    Args:
        doubts: uncertainty of each row; None: random order.
        right: True for rows answered rightly.
    """
    flags = right.astype(np.float64)
    rows = drawn_rows(len(flags))
    if doubts is None:
        return flags[rows].mean(axis=1)
    _, rank, sizes = np.unique(doubts, return_inverse=True, return_counts=True)
    # Spread right answers evenly over equal uncertainties, as in `rejection_curve`.
    share = np.bincount(rank, weights=flags) / sizes
    rank, answered = rank.astype(rows.dtype), np.arange(1, len(flags) + 1)
    areas = []
    for start in range(0, len(rows), AT_ONCE):
        surest_first = np.sort(rank[rows[start : start + AT_ONCE]], axis=1, kind="stable")
        areas.append((share[surest_first].cumsum(axis=1) / answered).mean(axis=1))
    return np.concatenate(areas)


@functools.lru_cache(maxsize=2)
def drawn_rows(count: int) -> NDArray[np.integer]:
    """Return the rows of each draw; they depend on the count only, so that differences are over the same rows."""
    kind = np.int16 if count <= np.iinfo(np.int16).max else np.int64  # numpy sorts int16 in linear time
    return np.random.default_rng(child_seed(0, "bootstrap", count)).integers(0, count, (DRAWS, count), dtype=kind)
