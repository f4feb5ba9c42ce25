"""Learning rate schedules, as shares of the peak rate."""

import math


def warmup_factor(step: int, total: int, warmup: float) -> float:
    """Share of the peak rate at a step, counted from 0: linear up, then constant.

    Args:
        step: updates made before, 0 or more.
        total: updates of the run.
        warmup: share of them with a rising rate, 0 to 1; their number is rounded up.

    Returns:
        Above 0, at most 1.

    Example:
        >>> [warmup_factor(step, 8, 0.5) for step in range(6)]
        [0.25, 0.5, 0.75, 1.0, 1.0, 1.0]

    Reference:
        Description-only supervision, section 4.
    """
    rise = _rising(total, warmup)
    return min(1.0, (step + 1) / rise) if rise > 0 else 1.0


def rate_factor(step: int, total: int, warmup: float) -> float:
    """Share of the peak rate at a step, counted from 0: linear up, then linear down, and 0 from `total` on.

    Args:
        step: updates made before, 0 or more.
        total: updates of the run.
        warmup: share of them with a rising rate, 0 to 1; their number is rounded up.

    Returns:
        From 0 to 1, above 0 for every update of the run.

    Example:
        >>> [round(rate_factor(step, 5, 0.4), 2) for step in range(5)]
        [0.5, 1.0, 0.75, 0.5, 0.25]
    """
    if step >= total:
        return 0.0
    rise = _rising(total, warmup)
    if step < rise:
        return (step + 1) / rise
    return (total - step) / (total - rise + 1) if rise else (total - step) / total


def cosine_factor(step: int, total: int, warmup: float = 0.1) -> float:
    r"""Share of the peak rate at a step: linear up, then half a cosine down to 0, and 0 from `total` on.

    .. math::
        \frac{\eta_t}{\eta_0} = \begin{cases}
            t / (0.1\,T) & 0 \le t < 0.1\,T \\
            \frac{1}{2}\Bigl(1 + \cos\frac{\pi (t - 0.1\,T)}{0.9\,T}\Bigr) & 0.1\,T \le t \le T
        \end{cases}

    Paper: the same. t counts the updates made before, as in torch's schedulers, so the first update has rate 0 and the
    last one a rate above 0. A single update has the peak rate.

    Args:
        step: t, 0 or more.
        total: T, the updates of the run.
        warmup: share of the steps with a rising rate, `0 <= warmup < 1`; 0.1 in the paper.

    Returns:
        Between 0 and 1.

    Example:
        >>> [round(cosine_factor(step, 20), 3) for step in (0, 1, 2, 11, 20)]
        [0.0, 0.5, 1.0, 0.5, 0.0]

    See also:
        rate_factor: linear decay, for LaCon and the uncertainty head.

    Reference:
        BTZSC benchmark, appendix C.1, "Optimiser and schedules"; REZE, appendix B, names the cosine alone.
    """
    if step >= total:
        return 0.0
    if total == 1:
        return 1.0
    rising = warmup * total
    if step < rising:
        return step / rising
    return 0.5 * (1.0 + math.cos(math.pi * (step - rising) / (total - rising)))


def _rising(total: int, warmup: float) -> int:
    # Rounding can push the product just above a whole number: 0.07 * 100 is more than 7.
    return math.ceil(warmup * total - 1e-9)
