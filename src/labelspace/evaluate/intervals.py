"""How much of a score is the luck of its rows: intervals of one model, and of the difference of two on the same rows.

All of them take the rows as drawn at random and independent of one another. Drawing n rows with replacement equals n
draws from the cells of the confusion matrix, with their shares as probabilities. So each repeat of a bootstrap is one
multinomial draw, and the time hardly depends on the number of rows (Efron and Tibshirani, 1993, chapter 13).
"""

import math
from collections.abc import Iterable, Iterator
from typing import NamedTuple, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import csr_array

from labelspace.checks import check_choice, check_number
from labelspace.corpus import Document
from labelspace.errors import InputError, ShapeError, warn
from labelspace.seeds import child_seed

SCORES = ("macro_f1", "accuracy", "macro_f1_predicted", "macro_precision_predicted", "macro_recall_predicted")
"""The scores that have an interval; `evaluate.metrics` explains the names."""

LEVEL = 0.95
TAILS = ((1 - LEVEL) / 2, (1 + LEVEL) / 2)
REPEATS = 1000

DRAWN = 20_000_000
"""Counts drawn in all: with thousands of labels there are as many cells, and 1,000 draws would take a minute."""

FEW = 6
"""Rows of a kind below which a bootstrap says nothing: that so few all fall on one side is no rare luck (2 / 2^6)."""

COPIES, MANY_COPIES = 0.1, 10
"""Share and number of documents that repeat others from which a word about them is worth it."""

HELD = 1_000_000
"""Rows that are held before they are counted, 8 bytes each."""

BLOCK = 2_000_000
"""Counts held at once, which bounds the memory of a bootstrap for any number of labels."""


@final
class Interval(NamedTuple):
    """A score or a difference of scores, and its 95 % interval over the rows."""

    value: float
    """As measured."""

    low: float | None
    """Lower end; None where too few rows can tell."""

    high: float | None
    """Upper end."""


@final
class Intervals(NamedTuple):
    """The 95 % intervals of a model's scores over the rows that it was evaluated on."""

    macro_f1: Interval
    """By bootstrap; without ends if fewer than 6 rows are wrong, or right."""

    accuracy: Interval
    """By Wilson, 1927, which also holds for few rows."""


@final
class Difference(NamedTuple):
    """A model's scores minus another's on the same rows, with 95 % intervals; from -1 to 1."""

    macro_f1: Interval
    """By paired bootstrap; without ends if fewer than 6 rows are answered differently, or alike."""

    accuracy: Interval
    """By Newcombe, 1998, "Improved confidence intervals for the difference between binomial proportions based on paired
    data", method 10, which also holds for few rows."""

    only_this_right: int
    """Rows that the model has right and the other has wrong."""

    only_other_right: int
    """Rows that the other has right and the model has wrong."""


@final
class SeveralIntervals(NamedTuple):
    """The 95 % intervals of a model's scores over the documents that it was evaluated on."""

    micro_f1: Interval
    """By bootstrap; without ends if fewer than 6 documents have an error, or fewer than 6 have a right label."""

    macro_f1: Interval
    """As `micro_f1`."""

    exact: Interval
    """By Wilson, 1927, which also holds for few documents."""


@final
class SeveralDifference(NamedTuple):
    """A model's scores minus another's on the same documents, with 95 % intervals; from -1 to 1."""

    micro_f1: Interval
    """By paired bootstrap; without ends if fewer than 6 documents are answered differently, or alike."""

    macro_f1: Interval
    """As `micro_f1`."""

    exact: Interval
    """By Newcombe's method 10, as in `Difference`."""

    only_this_right: int
    """Documents whose labels are all right by the model, and not by the other."""

    only_other_right: int
    """Documents whose labels are all right by the other, and not by the model."""


def score_intervals(counts: csr_array) -> Intervals:
    """Return the intervals of macro-F1 and accuracy.

    Args:
        counts: [label, label + 1] rows are true labels, columns predicted ones; the last holds abstentions.

    Example:
        >>> found = score_intervals(csr_array(np.array([[45, 5, 0], [5, 45, 0]])))
        >>> [round(end, 2) for end in found.accuracy]
        [0.9, 0.83, 0.94]
        >>> [round(end, 2) for end in found.macro_f1]
        [0.9, 0.84, 0.95]
    """
    labels, rows = len(counts.sum(axis=1)), counts.tocoo()
    cells = np.stack([rows.row, np.where(rows.col == labels, -1, rows.col)], axis=1).astype(np.int64)
    weights = rows.data.astype(np.int64)
    return Intervals(*(_interval_of(cells, weights, labels, metric) for metric in ("macro_f1", "accuracy")))


@final
class Copies:
    """Count the documents that repeat another: copies are not independent, as every interval takes rows to be."""

    def __init__(self) -> None:
        self._hashes: list[NDArray[np.int64]] = []

    def add(self, documents: Iterable[Document]) -> None:
        """Count some documents; 8 bytes of each are held."""
        self._hashes.append(np.fromiter(map(hash, documents), dtype=np.int64))

    def tell(self) -> None:
        """Warn if more than a tenth of the documents, and ten or more, repeat another.

        Warns:
            LabelSpaceWarning: they do.
        """
        total = sum(map(len, self._hashes))
        copies = total - len(np.unique(np.concatenate(self._hashes))) if total else 0
        if copies >= MANY_COPIES and copies > COPIES * total:
            warn(
                f"{copies:,} of the {total:,} documents repeat another. If these are copies, and not messages that "
                "happen to be alike, the intervals are too narrow."
            )


@final
class PairedTally:
    """Count the answers of two models to the same rows, with one number for each combination that occurs.

    Args:
        labels: number of labels.
        none: whether rows without a label fit none, as in `Tally`.

    Example:
        >>> tally = PairedTally(2)
        >>> tally.add([0, 1] * 50, [0, 1] * 45 + [1, 0] * 5, [0, 1] * 40 + [0, 0] * 10)
        >>> found = tally.difference()
        >>> found.only_this_right, found.only_other_right, round(found.accuracy.value, 2)
        (5, 5, 0.0)
        >>> [round(end, 2) for end in found.accuracy]
        [0.0, -0.07, 0.07]
    """

    def __init__(self, labels: int, *, none: bool = False) -> None:
        self._labels, self._none = labels + none, none
        self._codes, self._counts = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
        self._new: list[NDArray[np.int64]] = []

    def add(self, targets: ArrayLike, this: ArrayLike, other: ArrayLike) -> None:
        """Count some rows.

        Args:
            targets: [text] column of the true label; -1: no label, which is left out unless none of them fits.
            this: [text] column that the model predicts; -1: none of the labels.
            other: [text] column that the other model predicts.
        """
        cells = np.stack([np.asarray(given, dtype=np.int64) for given in (targets, this, other)])
        if self._none:
            cells[cells < 0] = self._labels - 1
        own, first, second = cells[:, cells[0] >= 0] + 1
        self._new.append((own * (self._labels + 1) + first) * (self._labels + 1) + second)
        # Not at each call: to sort what is held again and again would take longer than to answer.
        if sum(map(len, self._new)) > max(HELD, len(self._codes)):
            self._merge()

    def _merge(self) -> None:
        given = np.concatenate([self._codes, *self._new])
        counts = np.concatenate([self._counts, np.ones(len(given) - len(self._codes), dtype=np.int64)])
        self._codes, places = np.unique(given, return_inverse=True)
        self._counts = np.zeros(len(self._codes), dtype=np.int64)
        np.add.at(self._counts, places, counts)
        self._new = []

    def difference(self) -> Difference:
        """Return the model's scores minus the other's; at least one row was counted."""
        self._merge()
        rest, second = np.divmod(self._codes, self._labels + 1)
        own, first = np.divmod(rest, self._labels + 1)
        cells = np.stack([own, first, second], axis=1) - 1

        def minus(counts: NDArray[np.int64]) -> NDArray[np.float64]:
            this, other = (cell_scores(cells[:, [0, at]], counts, self._labels, "macro_f1") for at in (1, 2))
            return this - other

        macro_f1 = Interval(float(minus(self._counts[None])[0]), None, None)
        if FEW <= self._counts[first != second].sum() <= self._counts.sum() - FEW:
            drawn = [minus(block) for block in _draws(self._counts, self._labels)]
            macro_f1 = around(macro_f1.value, np.concatenate(drawn), least=-1.0)
        right, wrong = own == first, own != first
        also = own == second
        both, this, other, neither = (
            int(self._counts[which].sum()) for which in (right & also, right & ~also, wrong & also, wrong & ~also)
        )
        accuracy = paired_difference(both, this, other, neither)
        return Difference(macro_f1, accuracy, this, other)


def around(value: float, drawn: NDArray[np.float64], *, least: float) -> Interval:
    """Return the percentiles of the draws, moved so that their mean is the measured value.

    Draws leave out a third of the rows, and score lower where labels have few: with ten rows for each of 10,000 labels
    their percentiles do not hold the value.
    """
    low, high = np.quantile(drawn, TAILS) + value - drawn.mean()
    return Interval(value, max(least, float(low)), min(1.0, float(high)))


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return both ends of the interval of a share (Wilson, 1927)."""
    from scipy.stats import binomtest

    ends = binomtest(right, total).proportion_ci(LEVEL, method="wilson")
    return float(ends.low), float(ends.high)


def paired_difference(both: int, this: int, other: int, neither: int) -> Interval:
    """Return the difference of two shares of right rows, by counts of the rows that both, one or neither have right."""
    total = both + this + other + neither
    first, second = (both + this) / total, (both + other) / total
    (low, high), (low_second, high_second) = wilson(both + this, total), wilson(both + other, total)
    product = (both + this) * (other + neither) * (both + other) * (this + neither)
    agreed = both * neither - this * other
    # With the continuity correction of the paper.
    agreed = agreed - total / 2 if agreed > total / 2 else min(agreed, 0)
    phi = agreed / math.sqrt(product) if product else 0.0

    def reach(one: float, two: float) -> float:
        return math.sqrt(max(0.0, one * one - 2 * phi * one * two + two * two))

    value = first - second
    return Interval(
        value, value - reach(first - low, high_second - second), value + reach(high - first, second - low_second)
    )


def interval(
    targets: ArrayLike,
    predicted: ArrayLike,
    names_count: int,
    *,
    metric: str = "macro_f1_predicted",
    repeats: int = REPEATS,
    seed: int = 0,
) -> Interval:
    """Return a score and its interval over the rows of a test set: of accuracy by Wilson, of the others by bootstrap.

    A macro figure is the mean over the labels that occur in the drawn rows or, if its name ends so, are predicted
    there. A prediction of -1 (none of the labels) is wrong, but no label's false positive.

    Args:
        targets: [text] column of each row's label.
        predicted: [text] column of the predicted label; -1: none of the labels.
        names_count: number of labels in the space.
        metric: one of `SCORES`.
        repeats: number of draws, 1 or more.
        seed: seed of the draws.

    Returns:
        Without ends, except for accuracy, if fewer than 6 rows are wrong, or right.

    Raises:
        ShapeError: not one prediction per target, or a column out of range.
        InputError: no rows.
        ConfigError: an unknown metric, or an option out of range.

    Example:
        >>> found = interval([0, 1] * 50, [0, 1] * 40 + [1, 0] * 10, 2)
        >>> [round(end, 2) for end in found]
        [0.8, 0.72, 0.87]

    Reference:
        Efron and Tibshirani, 1993, chapter 13. The BTZSC paper gives no intervals of a model.
    """
    check_choice("metric", metric, SCORES)
    check_number("repeats", repeats, least=1, whole=True)
    cells, counts = _confusion_cells(targets, predicted, names_count)
    return _interval_of(cells, counts, names_count, metric, repeats=repeats, seed=seed)


def _interval_of(
    cells: NDArray[np.int64],
    counts: NDArray[np.int64],
    names_count: int,
    metric: str,
    *,
    repeats: int | None = None,
    seed: int = 0,
) -> Interval:
    right, total = int(counts[cells[:, 0] == cells[:, 1]].sum()), int(counts.sum())
    if metric == "accuracy":
        return Interval(right / total, *wilson(right, total))
    value = float(cell_scores(cells, counts[None], names_count, metric)[0])
    if not FEW <= right <= total - FEW:
        return Interval(value, None, None)
    drawn = _draws(counts, names_count, repeats=repeats, seed=seed)
    return around(value, np.concatenate([cell_scores(cells, block, names_count, metric) for block in drawn]), least=0.0)


def cell_scores(
    cells: NDArray[np.int64], counts: NDArray[np.int64], names_count: int, metric: str
) -> NDArray[np.float64]:
    """Return the score of several confusion matrices over the same cells.

    Args:
        cells: [cell 2] true and predicted column of each cell; predicted -1: none of the labels.
        counts: [repeat cell] number of rows in each cell.
        names_count: number of labels in the space.
        metric: one of `SCORES`.

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
    hits = rows[:, right] @ _indicator(own[right], names_count)
    support, guessed = (rows @ _indicator(columns, names_count) for columns in (own, answer))
    over, under = {
        "macro_f1": (2 * hits, support + guessed),
        "macro_f1_predicted": (2 * hits, support + guessed),
        "macro_precision_predicted": (hits, guessed),
        "macro_recall_predicted": (hits, support),
    }[metric]
    each = np.divide(over, under, out=np.zeros_like(over), where=under > 0)
    occurs = support + (0 if metric == "macro_f1" else guessed) > 0
    return (each * occurs).sum(axis=1) / occurs.sum(axis=1)


def _draws(
    counts: NDArray[np.int64], names_count: int, *, repeats: int | None = None, seed: int = 0
) -> Iterator[NDArray[np.int64]]:
    """Yield blocks of [repeat cell] counts, as many rows drawn with replacement in each repeat as there are.

    By default there are 1,000 repeats, and not less than 200 with very many cells.
    """
    repeats = repeats or max(REPEATS // 5, min(REPEATS, DRAWN // len(counts)))
    total = int(counts.sum())
    generator = np.random.default_rng(child_seed(seed, "bootstrap"))
    block = max(1, BLOCK // max(len(counts), names_count))
    for done in range(0, repeats, block):
        yield generator.multinomial(total, counts / total, size=min(block, repeats - done))


def _indicator(columns: NDArray[np.int64], names_count: int) -> csr_array:
    """[cell label] 1 where a cell has the label. Sparse: dense, 10,000 labels and as many cells would take 0.8 GB."""
    known = np.flatnonzero(columns >= 0)
    return csr_array((np.ones(len(known)), (known, columns[known])), shape=(len(columns), names_count))


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
