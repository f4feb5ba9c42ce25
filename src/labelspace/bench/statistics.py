"""How sure a score is, whether two rankings agree, and whether scores tell entailment apart."""

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
"""Counts held at once: bounds the memory of a bootstrap whatever the number of labels."""


class RankCorrelation(NamedTuple):
    """How far two rankings agree."""

    tau: float
    """Kendall's tau-b, from -1 (reversed) to 1 (the same)."""

    p: float
    """Chance of a tau at least so far from 0 where the two have nothing to do with one another."""


class Regression(NamedTuple):
    """A line, and how well its place is known."""

    at: NDArray[np.float64]
    """[place] its height."""

    half_width: NDArray[np.float64] | None
    """[place] half of the 95 % interval of the mean; None where two points alone make the line."""


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

    Drawing n rows with replacement is drawing n times from the cells of the confusion matrix with their shares as
    chances. So one multinomial draw a repeat does, and the time hardly depends on the number of rows.

    A macro figure is the mean over the labels that occur or are predicted among the rows drawn, as in the published
    results; an answer of -1 (none of the labels) is wrong, and nobody's false positive.

    Args:
        targets: [text] column number of each row's label.
        predicted: [text] column number of the label predicted, -1 for none of them.
        names_count: labels in the space.
        metric: one of `cards.METRICS`.
        repeats: draws, 1 or more.
        level: share of the draws within the interval, between 0 and 1.
        seed: another seed, another draw.

    Returns:
        The lower and the upper end, from 0 to 1.

    Raises:
        ShapeError: not one prediction per target, or a number that is no column.
        InputError: no rows.
        ConfigError: another metric, or options out of range.

    Example:
        >>> low, high = bootstrap_interval([0, 1] * 50, [0, 1] * 40 + [1, 0] * 10, 2)
        >>> low < 0.8 < high, round(high - low, 2)
        (True, 0.15)

    Reference:
        Efron and Tibshirani, 1993, chapter 13. The paper gives no intervals per model.
    """
    check_choice("metric", metric, METRICS)
    check_number("repeats", repeats, least=1, whole=True)
    check_number("level", level, above=0)
    check_number("level", level, most=1)
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
    """Return the score of each of several confusion matrices, given by the same cells.

    Args:
        cells: [cell 2] true and predicted column of each cell; -1 in the second: none of the labels.
        counts: [repeat cell] rows in each.
        names_count: labels in the space.
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
    """Return how far two lists of scores order the same models alike (Kendall's tau-b).

    Args:
        a: [model] scores.
        b: [model] other scores of the same models.

    Raises:
        ShapeError: not two lists of one length.
        InputError: fewer than two models, a score that is not finite, a list in which all scores are equal.

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
    """Fit the least-squares line of y over x, with the interval of its mean (Student's t, n - 2 degrees of freedom).

    Args:
        x: [point] across; at least two different values.
        y: [point] up.
        at: [place] where the line is wanted.

    Returns:
        The line at the places, and half the width of its 95 % interval; no width for fewer than three points, which
        leave no residual to estimate it from.

    Raises:
        ShapeError: not one y per x.
        InputError: a value that is not finite, or all x are the same.

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
    """Return the chance that an entailed pair scores above one that is not (area under the ROC curve).

    Args:
        scores: [pair] any numbers, higher is likelier; only their order counts.
        is_entailment: [pair] true where the premise entails the hypothesis.

    Returns:
        From 0 to 1; 0.5 is chance.

    Raises:
        ShapeError: not one answer per score.
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
    # The column after the last is that of -1.
    codes, counts = np.unique(own * (names_count + 1) + answer % (names_count + 1), return_counts=True)
    places = codes % (names_count + 1)
    return np.stack([codes // (names_count + 1), np.where(places == names_count, -1, places)], axis=1), counts


def _same_length(a: ArrayLike, b: ArrayLike, *names: str) -> Sequence[NDArray[np.float64]]:
    first, second = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    if first.ndim != 1 or first.shape != second.shape:
        raise ShapeError(f"{names[0]} and {names[1]} must be of one length. Got {first.shape} and {second.shape}.")
    for name, values in zip(names, (first, second), strict=True):
        bad = [value for value in values.tolist() if not math.isfinite(value)]
        if bad:
            raise InputError(
                f"{name} must be finite numbers. Got {bad[0]} among {len(values)}; the scorer is at fault."
            )
    return first, second
