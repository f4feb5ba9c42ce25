"""How often two views, or near documents, agree beyond chance."""

import numpy as np
from numpy.typing import NDArray

from labelspace.geometry.neighbours import Graph

Columns = NDArray[np.intp]
Values = NDArray[np.float64]


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


def near_agreement(answers: Columns, graph: Graph, labels: int) -> tuple[float, Values]:
    """Return how far near documents agree beyond chance, and [text] the share of them with the same answer."""
    near = (answers[graph.own] == answers[:, None]).mean(axis=1)
    shares = np.bincount(answers, minlength=labels) / len(answers)
    chance = float(shares @ shares)
    return (float(near.mean()) - chance) / (1 - chance) if chance < 1 else 0.0, near
