"""Bootstrap intervals of a score, rank correlation, regression with an interval, and AUROC."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelspace.bench.cards import METRICS
from labelspace.checks import check_choice, check_number
from labelspace.errors import InputError, ShapeError
from labelspace.seeds import child_seed

BLOCK = 2_000_000
"""Counts held at once, which bounds the memory of a bootstrap for any number of labels."""


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


def bootstrap_interval(
    targets: ArrayLike,
    predicted: ArrayLike,
    names_count: int,
    *,
    metric: str = "macro_f1_predicted",
    repeats: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> tuple[float, float]:
    """Return the percentile bootstrap interval of a score over the rows of a test set.

    Drawing n rows with replacement equals n draws from the cells of the confusion matrix, with their shares as
    probabilities. So each repeat is one multinomial draw, and the time hardly depends on the number of rows.

    A macro figure is the mean over the labels that occur or are predicted in the drawn rows, as in the published
    results. A prediction of -1 (none of the labels) is wrong, but no label's false positive.

    Args:
        targets: [text] column of each row's label.
        predicted: [text] column of the predicted label; -1: none of the labels.
        names_count: number of labels in the space.
        metric: one of `cards.METRICS`.
        repeats: number of draws, 1 or more.
        level: share of the draws within the interval, above 0 and at most 1.
        seed: seed of the draws.

    Returns:
        The lower and the upper end, from 0 to 1.

    Raises:
        ShapeError: not one prediction per target, or a column out of range.
        InputError: no rows.
        ConfigError: an unknown metric, or an option out of range.

    Example:
        >>> low, high = bootstrap_interval([0, 1] * 50, [0, 1] * 40 + [1, 0] * 10, 2)
        >>> low < 0.8 < high, round(high - low, 2)
        (True, 0.15)

    Reference:
        Efron and Tibshirani, 1993, chapter 13. The paper gives no intervals per model.
    """
    check_choice("metric", metric, METRICS)
    check_number("repeats", repeats, least=1, whole=True)
    check_number("level", level, above=0, most=1)
    cells, counts = _confusion_cells(targets, predicted, names_count)
    total = int(counts.sum())
    generator = np.random.default_rng(child_seed(seed, "bootstrap"))
    scores = []
    left, block = repeats, max(1, BLOCK // max(len(counts), names_count))
    while left:
        drawn = generator.multinomial(total, counts / total, size=min(block, left))
        scores.append(cell_scores(cells, drawn, names_count, metric))
        left -= len(drawn)
    low, high = np.quantile(np.concatenate(scores), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def cell_scores(
    cells: NDArray[np.int64], counts: NDArray[np.int64], names_count: int, metric: str
) -> NDArray[np.float64]:
    """Return the score of several confusion matrices over the same cells.

    Args:
        cells: [cell 2] true and predicted column of each cell; predicted -1: none of the labels.
        counts: [repeat cell] number of rows in each cell.
        names_count: number of labels in the space.
        metric: one of `cards.METRICS`.

    Returns:
        [repeat] scores from 0 to 1.

    Example:
        >>> cells = np.array([[0, 0], [0, 1], [1, 1]])
        >>> cell_scores(cells, np.array([[1, 1, 2], [2, 0, 2]]), 2, "accuracy").tolist()
        [0.75, 1.0]
    """
    own, answer = cells.T
    rows = counts.astype(np.float64)
    right = own == answer
    if metric == "accuracy":
        return rows[:, right].sum(axis=1) / rows.sum(axis=1)
    labels = np.arange(names_count)
    hits = rows[:, right] @ (own[right, None] == labels)
    support = rows @ (own[:, None] == labels)
    guessed = rows @ (answer[:, None] == labels)
    over, under = {
        "macro_f1_predicted": (2 * hits, support + guessed),
        "macro_precision_predicted": (hits, guessed),
        "macro_recall_predicted": (hits, support),
    }[metric]
    each = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
    occurs = support + guessed > 0
    return (each * occurs).sum(axis=1) / occurs.sum(axis=1)


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


def _confusion_cells(
    targets: ArrayLike, predicted: ArrayLike, names_count: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    own, answer = np.asarray(targets, dtype=np.int64), np.asarray(predicted, dtype=np.int64)
    if own.ndim != 1 or own.shape != answer.shape:
        raise ShapeError(f"predicted must hold one number per target {own.shape}. Got shape {answer.shape} instead.")
    if not len(own):
        raise InputError("there are no rows to draw from; give one or more.")
    for what, values, least in (("targets", own, 0), ("predicted", answer, -1)):
        if values.min() < least or values.max() >= names_count:
            bad = values[(values < least) | (values >= names_count)][0]
            raise ShapeError(f"{what} must be column numbers from {least} to {names_count - 1}. Got {bad} instead.")
    # -1 is coded as the column after the last.
    codes, counts = np.unique(own * (names_count + 1) + answer % (names_count + 1), return_counts=True)
    places = codes % (names_count + 1)
    return np.stack([codes // (names_count + 1), np.where(places == names_count, -1, places)], axis=1), counts


def _same_length(a: ArrayLike, b: ArrayLike, *names: str) -> Sequence[NDArray[np.float64]]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(f"{names[0]} and {names[1]} must have one length. Got {first.shape} and {second.shape}.")
    for name, values in zip(names, (first, second), strict=True):
        bad = [value for value in values.tolist() if not math.isfinite(value)]
        if bad:
            raise InputError(f"{name} must be finite numbers. Got {bad[0]} among {len(values)}; check the scorer.")
    return first, second
