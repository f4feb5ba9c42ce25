"""Pools of other sizes, and pools whose labels are not equally frequent."""

import numpy as np
from numpy.typing import NDArray

from views.sets import Setting

UNBALANCED = ("half", "hundredth", "absent")
"""The first label is half of the documents (three quarters of two labels), one in a hundred, or does not occur."""


def taken(setting: Setting, *, size: int, most: int, kind: str) -> tuple[list[str], list[int], list[int]]:
    """Return a pool, its rows among the first `most` documents, and the test rows, which have the same shares.

    Args:
        setting: the set.
        size: number of documents, before labels are left out.
        most: number of documents that the views look at.
        kind: a kind of UNBALANCED; empty: as drawn.
    """
    pool = setting.pool[: min(size, most)]
    rows, tested = list(range(len(pool))), list(range(len(setting.texts)))
    if kind:
        assert setting.pool_truth is not None
        rows = unbalanced(setting.pool_truth[: len(pool)], setting.space.names, kind)
        tested = unbalanced(setting.truth, setting.space.names, kind)
    return [pool[row] for row in rows], rows, tested


def unbalanced(truth: list[str], names: tuple[str, ...], kind: str) -> list[int]:
    """Draw rows with these shares, in ascending order.

    Example:
        >>> truth = ["a", "b"] * 300
        >>> rows = unbalanced(truth, ("a", "b"), "half")
        >>> sum(truth[row] == "a" for row in rows), len(rows)
        (300, 400)
    """
    draw, labels = np.random.default_rng(0), np.array(truth)
    rows: list[NDArray[np.intp]] = [draw.permutation(np.flatnonzero(labels == name)) for name in names]
    first, others = rows[0], rows[1:]
    if kind == "half":
        each = min(len(first) // (3 if len(names) == 2 else len(others)), *(len(one) for one in others))
        first = first[: each * (3 if len(names) == 2 else len(others))]
        others = [one[:each] for one in others]
    else:
        count = sum(len(one) for one in others)
        first = first[: max(1, round(count / 99))] if kind == "hundredth" else first[:0]
    return np.sort(np.concatenate([first, *others])).tolist()
