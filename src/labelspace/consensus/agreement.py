"""How often two views agree, beyond chance."""

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[np.intp]


def kappa(one: Columns, other: Columns, labels: int) -> float:
    """Return Cohen's kappa of two views' answers: 1 if equal, 0 if they agree no more than by chance.

    Args:
        one: [text], columns of labels.
        other: [text], columns of labels.
        labels: number of labels.

    Example:
        >>> kappa(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)
        0.5
    """
    agreed = float((one == other).mean())
    first, second = (np.bincount(each, minlength=labels) / len(each) for each in (one, other))
    chance = float(first @ second)
    return 1.0 if chance >= 1 else (agreed - chance) / (1 - chance)
