"""Two learning rates, and their way from 0 up and back to 0 (BTZSC, appendix C.1)."""

import math
from typing import NamedTuple

LARGE_WIDTH = 1024
"""Backbones this wide or wider count as large. The paper says "large" and "base", and no more."""


class Rates(NamedTuple):
    """A learning rate for each half of the model."""

    backbone: float
    head: float


BASE = Rates(backbone=2e-5, head=1e-4)
LARGE = Rates(backbone=8e-6, head=4e-5)


def highest_rates(
    hidden_size: int, *, learning_rate: float | None = None, head_learning_rate: float | None = None
) -> Rates:
    """Return the rates at the end of the warm-up: the paper's for this size, or those given.

    Args:
        hidden_size: width of the backbone, in coordinates.
        learning_rate: in place of the backbone's.
        head_learning_rate: in place of the head's.

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


def rate_factor(step: int, total: int, warmup: float = 0.1) -> float:
    r"""Share of the highest rate at a step: linear up, then half a cosine down to 0.

    .. math::
        \frac{\eta_t}{\eta_0} = \begin{cases}
            t / (0.1\,T) & 0 \le t < 0.1\,T \\
            \frac{1}{2}\Bigl(1 + \cos\frac{\pi (t - 0.1\,T)}{0.9\,T}\Bigr) & 0.1\,T \le t \le T
        \end{cases}

    Paper: the same; the OCR lost the fraction in front of the cosine. t counts the updates already made, as torch's
    schedulers do, so the first update has rate 0 and the last one a rate above 0.

    Args:
        step: t, `0 <= step <= total`.
        total: T, 1 or more.
        warmup: share of the steps with a rising rate, `0 <= warmup < 1`; the paper's is 0.1.

    Returns:
        Between 0 and 1.

    Example:
        >>> [round(rate_factor(step, 20), 3) for step in (0, 1, 2, 11, 20)]
        [0.0, 0.5, 1.0, 0.5, 0.0]

    Reference:
        BTZSC benchmark, appendix C.1, "Optimiser and schedules".
    """
    rising = warmup * total
    if step < rising:
        return step / rising
    return 0.5 * (1.0 + math.cos(math.pi * (step - rising) / (total - rising)))
