"""The formulas of `losses/` and `geometry/`, term by term, in Python floats: no torch, no numpy, no tricks."""

import math
from collections.abc import Sequence

Row = Sequence[float]
Table = Sequence[Row]


def rows_by_hand(scores: Table, targets: Sequence[int]) -> float:
    """Description-only supervision, equation 1."""
    total = 0.0
    for row, own in zip(scores, targets, strict=True):
        total += math.log(sum(math.exp(score) for score in row)) - row[own]
    return total / len(targets)


def columns_by_hand(scores: Table, targets: Sequence[int]) -> float:
    """Description-only supervision, equation 2."""
    labels = len(scores[0])
    total = 0.0
    for label in range(labels):
        everything = 0.0
        positives = 0.0
        for row, own in zip(scores, targets, strict=True):
            everything += math.exp(row[label])
            if own == label:
                positives += math.exp(row[label])
        total += math.log(everything) - math.log(positives)
    return total / labels


def both_by_hand(scores: Table, targets: Sequence[int]) -> float:
    """Description-only supervision, equation 3."""
    return 0.5 * rows_by_hand(scores, targets) + 0.5 * columns_by_hand(scores, targets)


def cosine_by_hand(one: Row, other: Row) -> float:
    """Dot product over the product of the lengths."""
    dot = sum(a * b for a, b in zip(one, other, strict=True))
    return dot / math.sqrt(sum(a * a for a in one)) / math.sqrt(sum(b * b for b in other))


def pairs_by_hand(anchors: Table, positives: Table, t: float) -> float:
    """REZE, equation 9; Gao et al., equation 1."""
    total = 0.0
    for i, anchor in enumerate(anchors):
        below = sum(math.exp(cosine_by_hand(anchor, other) / t) for other in positives)
        total += math.log(math.exp(cosine_by_hand(anchor, positives[i]) / t) / below)
    return -total / len(anchors)


def squared_distance_by_hand(one: Row, other: Row) -> float:
    """Sum of the squared differences."""
    return sum((a - b) ** 2 for a, b in zip(one, other, strict=True))


def uniformity_by_hand(embeddings: Table, pairs: Sequence[tuple[int, int]], t: float) -> float:
    """Description-only supervision, equation 4, right-hand side."""
    total = 0.0
    for i, j in pairs:
        total += math.exp(-t * squared_distance_by_hand(embeddings[i], embeddings[j]))
    return math.log(total / len(pairs))


def alignment_by_hand(first: Table, second: Table, alpha: float) -> float:
    """Wang & Isola, 2020, equation 1."""
    total = 0.0
    for one, other in zip(first, second, strict=True):
        total += math.sqrt(squared_distance_by_hand(one, other)) ** alpha
    return total / len(first)


def mean_by_hand(rows: Table) -> list[float]:
    """Sum over count, coordinate by coordinate."""
    return [math.fsum(row[j] for row in rows) / len(rows) for j in range(len(rows[0]))]


def covariance_by_hand(rows: Table) -> list[list[float]]:
    """Mean product of deviations, divided by the count."""
    mean, width = mean_by_hand(rows), len(rows[0])
    return [
        [math.fsum((row[i] - mean[i]) * (row[j] - mean[j]) for row in rows) / len(rows) for j in range(width)]
        for i in range(width)
    ]
