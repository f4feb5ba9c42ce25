"""The two learning rates of a cross-encoder (BTZSC, appendix C.1)."""

from typing import NamedTuple

LARGE_WIDTH = 1024
"""Backbones of at least this width count as large. The paper only says "large" and "base"."""


class Rates(NamedTuple):
    """Learning rates of backbone and head."""

    backbone: float
    head: float


BASE = Rates(backbone=2e-5, head=1e-4)
LARGE = Rates(backbone=8e-6, head=4e-5)


def highest_rates(
    hidden_size: int, *, learning_rate: float | None = None, head_learning_rate: float | None = None
) -> Rates:
    """Return the peak rates, at the end of the warm-up: the paper's for this size, or those given.

    Args:
        hidden_size: width of the backbone.
        learning_rate: replaces the paper's rate of the backbone.
        head_learning_rate: replaces the paper's rate of the head.

    Returns:
        Both rates.

    Example:
        >>> highest_rates(384)
        Rates(backbone=2e-05, head=0.0001)
        >>> highest_rates(1024, head_learning_rate=1e-3)
        Rates(backbone=8e-06, head=0.001)

    Reference:
        BTZSC benchmark, appendix C.1, "Optimiser and schedules".
    """
    usual = LARGE if hidden_size >= LARGE_WIDTH else BASE
    return Rates(
        backbone=usual.backbone if learning_rate is None else learning_rate,
        head=usual.head if head_learning_rate is None else head_learning_rate,
    )
