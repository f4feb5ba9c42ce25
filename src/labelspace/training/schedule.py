"""The learning rate from step to step: up, and down again."""

import math


def rate_factor(step: int, total: int, warmup: float) -> float:
    """Share of the highest rate at a step, counted from 0: linear up, then linear down.

    Example:
        >>> [round(rate_factor(step, 5, 0.4), 2) for step in range(5)]
        [0.5, 1.0, 0.75, 0.5, 0.25]
    """
    rise = math.ceil(warmup * total)
    if step < rise:
        return (step + 1) / rise
    return (total - step) / (total - rise + 1) if rise else (total - step) / total
