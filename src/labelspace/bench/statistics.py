"""Rank correlation, regression with an interval, and AUROC."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelspace.errors import InputError, ShapeError


class RankCorrelation(NamedTuple):
    """Agreement of two rankings."""

    tau: float
    """Kendall's tau-b, from -1 (reversed) to 1 (identical)."""

    p: float
    """Two-sided p-value of the hypothesis that the rankings are independent."""


class Regression(NamedTuple):
    """A least-squares line and the interval of its mean."""

    at: NDArray[np.float64]
    """[place] values of the line."""

    half_width: NDArray[np.float64] | None
    """[place] half-width of the 95 % interval of the mean; None for fewer than three points."""


def kendall_tau(a: ArrayLike, b: ArrayLike) -> RankCorrelation:
    """Compute Kendall's tau-b between two lists of scores of the same models.

    Args:
        a: [model] scores.
        b: [model] other scores of the same models.

    Raises:
        ShapeError: the lists have different lengths.
        InputError: fewer than two models, a score that is not finite, or a list whose scores are all equal.

    Example:
        >>> round(kendall_tau([0.1, 0.2, 0.3, 0.4], [1, 2, 4, 3]).tau, 2)
        0.67

    Reference:
        BTZSC, appendix E.
    """
    from scipy.stats import kendalltau

    first, second = _same_length(a, b, "a", "b")
    if len(first) < 2 or len(np.unique(first)) < 2 or len(np.unique(second)) < 2:
        raise InputError(
            f"a rank correlation needs two models or more with different scores. Got {len(first)} models, "
            f"{len(np.unique(first))} and {len(np.unique(second))} different scores."
        )
    found: Any = kendalltau(first, second)
    return RankCorrelation(float(found.statistic), float(found.pvalue))


def regression(x: ArrayLike, y: ArrayLike, at: ArrayLike) -> Regression:
    """Fit a least-squares line of y on x, with the interval of its mean (Student's t, n - 2 degrees of freedom).

    Args:
        x: [point] x values, at least two of them different.
        y: [point] y values.
        at: [place] x values at which to evaluate the line.

    Returns:
        The line at these places, and the half-width of its 95 % interval; None for fewer than three points, which leave
        no residual to estimate it from.

    Raises:
        ShapeError: not one y per x.
        InputError: a value that is not finite, or all x are equal.

    Example:
        >>> line = regression([0, 1, 2], [0.0, 1.0, 2.0], [3])
        >>> line.at.round(6).tolist(), line.half_width.round(6).tolist()
        ([3.0], [0.0])

    Reference:
        BTZSC, Figure 2b.
    """
    from scipy.stats import t as student

    first, second = _same_length(x, y, "x", "y")
    places = np.asarray(at, dtype=np.float64)
    if len(np.unique(first)) < 2:
        raise InputError(f"a line needs points at two different places. Got {len(first)} points at one; add another.")
    middle, spread = first.mean(), ((first - first.mean()) ** 2).sum()
    slope = ((first - middle) * (second - second.mean())).sum() / spread
    line = second.mean() + slope * (places - middle)
    if len(first) < 3:
        return Regression(line, None)
    residuals = second - second.mean() - slope * (first - middle)
    variance = (residuals**2).sum() / (len(first) - 2)
    error = np.sqrt(variance * (1 / len(first) + (places - middle) ** 2 / spread))
    return Regression(line, float(student.ppf(0.975, len(first) - 2)) * error)


def auroc(scores: ArrayLike, is_entailment: ArrayLike) -> float:
    """Compute the probability that an entailed pair scores above a non-entailed one (area under the ROC curve).

    Args:
        scores: [pair] any numbers, higher is likelier; only their order matters.
        is_entailment: [pair] True where the premise entails the hypothesis.

    Returns:
        From 0 to 1; 0.5 is chance.

    Raises:
        ShapeError: not one flag per score.
        InputError: a score that is not finite, or pairs of one kind only.

    Example:
        >>> auroc([0.9, 0.2, 0.6, 0.4], [True, False, False, True])
        0.75

    Reference:
        BTZSC, section 3.1.
    """
    from sklearn.metrics import roc_auc_score

    values, kinds = _same_length(scores, is_entailment, "scores", "is_entailment")
    if len(np.unique(kinds)) != 2:
        raise InputError(
            f"an AUROC needs pairs of both kinds. Got {int(kinds.sum())} entailed of {len(kinds)}; give a mixed set."
        )
    return float(roc_auc_score(kinds.astype(bool), values))


def _same_length(a: ArrayLike, b: ArrayLike, *names: str) -> Sequence[NDArray[np.float64]]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(f"{names[0]} and {names[1]} must have one length. Got {first.shape} and {second.shape}.")
    for name, values in zip(names, (first, second), strict=True):
        bad = [value for value in values.tolist() if not math.isfinite(value)]
        if bad:
            raise InputError(f"{name} must be finite numbers. Got {bad[0]} among {len(values)}; check the scorer.")
    return first, second
