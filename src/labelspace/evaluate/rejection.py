"""Accuracy-rejection curves: accuracy on the remaining documents when the most uncertain ones are rejected.

Each document's answer is its likeliest label, ignoring the model's own threshold and limit: a curve covers every
possible limit, the model's own among them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import entr

from labelspace.checks import check_number
from labelspace.errors import ConfigError, InputError, ShapeError
from labelspace.text_table import text_table
from labelspace.training.abstention import least_answers
from labelspace.training.calibration import ROUNDING, as_flags, detached, one_number_each

OWN = "the model's uncertainty"
LEAST_CONFIDENCE = "1 - highest probability"
ENTROPY = "softmax entropy"
"""Uncertainties to reject by, in the order of reports; `OWN` only for a model that has one."""

COVERAGES = (0.9, 0.8, 0.5)
"""Coverages (shares answered) at which reports give the accuracy."""

LEVELS = ("easy", "semi-hard", "hard")

EASY, HARD = 0.8, 1.0
"""The paper's bounds on the mean of sigma (section 5.8)."""


@final
@dataclass(frozen=True, kw_only=True)
class RejectionCurve:
    """Accuracy on the remaining documents for every number of rejections, the most uncertain rejected first."""

    accuracy: NDArray[np.float64]
    """[text] accuracy on the remaining documents with 0, 1, ..., n - 1 rejected; the mean over all orders of equally
    uncertain documents."""

    area: float
    """Area under the curve: mean accuracy over all shares rejected."""

    area_random: float
    """Area when rejecting at random: the accuracy on all documents."""

    area_best: float
    """Area of an oracle that rejects errors first, which no uncertainty exceeds."""

    @property
    def rejected(self) -> NDArray[np.float64]:
        """[text] share rejected at each accuracy: 0, 1/n, ..., (n - 1)/n."""
        return np.arange(len(self.accuracy)) / len(self.accuracy)

    @property
    def coverage(self) -> NDArray[np.float64]:
        """[text] share answered at each accuracy: 1, ..., 1/n."""
        return np.arange(len(self.accuracy), 0, -1) / len(self.accuracy)

    def accuracy_at(self, coverage: float) -> float:
        """Return the accuracy when at least this share is answered.

        Args:
            coverage: share answered, above 0 and at most 1.

        Raises:
            ConfigError: `coverage` is out of range.
        """
        check_number("coverage", coverage, above=0, most=1)
        return float(self.accuracy[-least_answers(coverage, len(self.accuracy))])


@final
@dataclass(frozen=True, kw_only=True)
class DifficultyBand:
    """Documents and errors at one level of uncertainty."""

    level: str
    """`"easy"`, `"semi-hard"` or `"hard"`."""

    documents: int
    """Number of documents in the band."""

    errors: int
    """Number of these answered wrongly."""

    error_rate: float | None
    """Share of the band's documents answered wrongly; None for an empty band."""

    share_of_errors: float | None
    """Share of all errors that fall into the band; None if there are no errors."""


@final
class Rejections:
    """Collect each document's correctness and uncertainty during an evaluation, for rejection curves.

    Memory: a flag and two numbers per document, and a third if the model has its own uncertainty: at most 25 bytes.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.evaluate import evaluate
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = Rejections()
        >>> texts, labels = ["the match", "the vote", "a team"], ["sports", "politics", "sports"]
        >>> evaluation = evaluate(clf, texts, labels, baselines=False, rejections=found)
        >>> {name: curve.area_random == evaluation.metrics.accuracy for name, curve in found.curves().items()}
        {'1 - highest probability': True, 'softmax entropy': True}
    """

    def __init__(self) -> None:
        self._right: list[NDArray[np.bool_]] = []
        self._unsure: dict[str, list[NDArray[np.float64]]] = {}

    def add(self, right: ArrayLike, probabilities: ArrayLike, uncertainty: ArrayLike | None = None) -> None:
        """Add the answers of a batch of documents.

        Args:
            right: [text] True where the likeliest label is the document's own.
            probabilities: [text label], each row sums to 1.
            uncertainty: [text] the model's own uncertainty, in every batch or in none.

        Raises:
            ShapeError: not one value or row for each document.
            InputError: rows that are not probabilities, or an uncertainty that is not finite.
        """
        shares = _probabilities(probabilities)
        flags = as_flags("right", right, len(shares))
        kinds = {} if uncertainty is None else {OWN: one_number_each("uncertainty", uncertainty)}
        kinds |= {LEAST_CONFIDENCE: _least_confidence(shares), ENTROPY: _entropy(shares)}
        if uncertainty is not None and len(kinds[OWN]) != len(flags):
            raise ShapeError(
                f"uncertainty must hold one number for each of {len(flags)} documents. Got {len(kinds[OWN])} instead."
            )
        self._right.append(flags)
        for name, values in kinds.items():
            self._unsure.setdefault(name, []).append(values)

    def curves(self) -> dict[str, RejectionCurve]:
        """Return one curve for each uncertainty: the model's own if it has one, then those from its probabilities.

        Raises:
            InputError: no document was added.
        """
        if not self._right:
            raise InputError("no document was evaluated, so there is nothing to reject; evaluate some first.")
        right = np.concatenate(self._right)
        return {name: rejection_curve(np.concatenate(parts), right) for name, parts in self._unsure.items()}

    def bands(self) -> tuple[DifficultyBand, DifficultyBand, DifficultyBand] | None:
        """Return the errors by level of the model's own uncertainty, see `difficulty`; None if it has none."""
        if OWN not in self._unsure:
            return None
        return difficulty(np.concatenate(self._unsure[OWN]), np.concatenate(self._right))


def rejection_curve(uncertainty: ArrayLike, right: ArrayLike) -> RejectionCurve:
    r"""Compute the accuracy-rejection curve and the area under it.

    .. math::
        \mathrm{accuracy}(k) = \frac{1}{k} \sum_{i \le k} \mathrm{right}_i, \qquad
        \mathrm{area} = \frac{1}{n} \sum_{k = 1}^{n} \mathrm{accuracy}(k)

    with documents sorted by uncertainty, the most certain first, and k of n remaining. For equally uncertain documents
    the curve is the mean over all their orders, so a constant uncertainty has exactly the area of chance. The point
    where all documents are rejected, which Nadeem et al. set to 1 by convention, is left out: it would lift the area of
    chance above the accuracy.

    Answers and uncertainty may come from different models: section 5.8 of the paper rejects a baseline's answers by the
    uncertainty of another model.

    Args:
        uncertainty: [text] larger is more uncertain.
        right: [text] True where the answer is right.

    Returns:
        A `RejectionCurve`.

    Raises:
        ShapeError: not one uncertainty and one flag per document.
        InputError: no document, or an uncertainty that is not finite.

    Example:
        The one error is the second most uncertain document.

        >>> curve = rejection_curve([0.1, 0.9, 0.5, 0.2], [True, True, False, True])
        >>> curve.accuracy.round(3).tolist()
        [0.75, 0.667, 1.0, 1.0]
        >>> round(curve.area, 3), curve.area_random, curve.area_best
        (0.854, 0.75, 0.9375)

    Reference:
        Nadeem et al., 2009, "Accuracy-rejection curves (ARCs) for comparing classification methods with a reject
        option"; the uncertainty-aware contrastive paper, section 5.8 and Figure 5.
    """
    unsure = one_number_each("uncertainty", uncertainty)
    flags = as_flags("right", right, len(unsure))
    documents, all_right = len(unsure), int(flags.sum())
    # Spread right answers evenly over equal uncertainties, which is the mean over their orders.
    _, group, sizes = np.unique(unsure, return_inverse=True, return_counts=True)
    ends = np.concatenate([[0], sizes.cumsum()])
    right_by_then = np.concatenate([[0], np.bincount(group, weights=flags).cumsum()])
    answered = np.arange(documents, 0, -1)
    accuracy = np.interp(answered, ends, right_by_then) / answered
    return RejectionCurve(
        accuracy=accuracy,
        area=float(accuracy.mean()),
        area_random=all_right / documents,
        area_best=float((np.minimum(answered, all_right) / answered).mean()),
    )


def softmax_entropy(probabilities: ArrayLike) -> NDArray[np.float64]:
    r"""Compute the entropy of each document's probabilities, in nats.

    .. math::
        H_i = - \sum_l p_{il} \log p_{il}

    Args:
        probabilities: [text label], each row sums to 1, as after a softmax in float32; half precision is too coarse.

    Returns:
        [text] entropies, from 0 (one label is certain) to the log of the number of labels.

    Raises:
        ShapeError: `probabilities` is not a matrix.
        InputError: rows that are not probabilities.

    Example:
        >>> softmax_entropy([[0.5, 0.5], [1.0, 0.0]]).round(4).tolist()
        [0.6931, 0.0]
    """
    return _entropy(_probabilities(probabilities))


def difficulty(
    uncertainty: ArrayLike, right: ArrayLike, *, easy: float = EASY, hard: float = HARD
) -> tuple[DifficultyBand, DifficultyBand, DifficultyBand]:
    """Count errors among easy, semi-hard and hard documents.

    A document is easy below `easy`, hard from `hard` on, and semi-hard in between; the paper does not say to which band
    a bound belongs. The defaults are the paper's bounds on the mean of sigma; other uncertainties need other bounds.

    Args:
        uncertainty: [text] larger is more uncertain.
        right: [text] True where the answer is right.
        easy: uncertainties below this are easy.
        hard: uncertainties from this on are hard; above `easy`.

    Returns:
        The three bands, easy first.

    Raises:
        ConfigError: a bound is not a number, or `hard` is not above `easy`.
        ShapeError: not one uncertainty and one flag per document.
        InputError: no document, or an uncertainty that is not finite.

    Example:
        >>> bands = difficulty([0.5, 0.7, 0.9, 1.2], [True, True, False, False])
        >>> [(band.level, band.documents, band.errors, band.share_of_errors) for band in bands]
        [('easy', 2, 0, 0.0), ('semi-hard', 1, 1, 0.5), ('hard', 1, 1, 0.5)]

    Reference:
        The uncertainty-aware contrastive paper, section 5.8 and Figure 5 (left).
    """
    check_number("easy", easy)
    check_number("hard", hard)
    if hard <= easy:
        raise ConfigError(f"hard must be above easy ({easy:g}). Got {hard!r} instead.")
    unsure = one_number_each("uncertainty", uncertainty)
    wrong = ~as_flags("right", right, len(unsure))
    band = np.searchsorted([easy, hard], unsure, side="right")
    documents, errors = np.bincount(band, minlength=3).tolist(), np.bincount(band[wrong], minlength=3).tolist()

    def of(number: int) -> DifficultyBand:
        return DifficultyBand(
            level=LEVELS[number],
            documents=documents[number],
            errors=errors[number],
            error_rate=errors[number] / documents[number] if documents[number] else None,
            share_of_errors=errors[number] / sum(errors) if any(errors) else None,
        )

    return of(0), of(1), of(2)


def bands_text(bands: Sequence[DifficultyBand]) -> str:
    """Format the bands of `Rejections.bands` at the paper's bounds, one line each.

    Args:
        bands: the three bands of `difficulty`.

    Example:
        >>> print(bands_text(difficulty([0.5, 0.7, 0.9, 1.2], [True, True, False, False])))
        errors by the model's uncertainty
        easy       below 0.8   0 of 2 wrong (0.0 %)
        semi-hard  0.8 to 1    1 of 1 wrong (100.0 %)
        hard       1 or above  1 of 1 wrong (100.0 %)
    """
    places = (f"below {EASY:g}", f"{EASY:g} to {HARD:g}", f"{HARD:g} or above")
    lines = ["errors by the model's uncertainty"]
    for band, place in zip(bands, places, strict=True):
        rate = "" if band.error_rate is None else f" ({100 * band.error_rate:.1f} %)"
        lines.append(f"{band.level:9}  {place:10}  {band.errors:,} of {band.documents:,} wrong{rate}")
    return "\n".join(lines)


def rejection_rows(curves: Mapping[str, RejectionCurve]) -> list[dict[str, Any]]:
    """Return area and accuracies of curves over the same answers, of chance and of the oracle, ready for JSON.

    Args:
        curves: name -> curve, one or more, as from `Rejections.curves`.

    Example:
        >>> curve = rejection_curve([0.1, 0.9, 0.5, 0.2], [True, True, False, True])
        >>> for row in rejection_rows({"sigma": curve}):
        ...     print(row["by"], row["area"], row["accuracy_at_coverage"]["0.5"])
        sigma 0.8541666666666666 1.0
        random 0.75 0.75
        best possible 0.9375 1.0
    """
    any_of_them = next(iter(curves.values()))
    documents, overall = len(any_of_them.accuracy), any_of_them.area_random
    answered = {coverage: least_answers(coverage, documents) for coverage in COVERAGES}
    right = round(overall * documents)

    def row(by: str, area: float, accuracies: Mapping[float, float]) -> dict[str, Any]:
        return {"by": by, "area": area, "accuracy_at_coverage": {f"{at:g}": found for at, found in accuracies.items()}}

    rows = [row(name, curve.area, {at: curve.accuracy_at(at) for at in COVERAGES}) for name, curve in curves.items()]
    rows.append(row("random", overall, dict.fromkeys(COVERAGES, overall)))
    best = {at: min(given, right) / given for at, given in answered.items()}
    return [*rows, row("best possible", any_of_them.area_best, best)]


def rejection_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Format the rows of `rejection_rows` as a plain-text table.

    Args:
        rows: one for each curve, one or more.

    Example:
        >>> print(rejection_text([{"by": "sigma", "area": 0.875, "accuracy_at_coverage": {"0.9": 0.75, "0.5": 1.0}}]))
        accuracy where the least sure are not answered
                area  90 % answered  50 % answered
        sigma  0.875          0.750          1.000
    """
    shares = (f"{100 * float(coverage):g} % answered" for coverage in rows[0]["accuracy_at_coverage"])
    table = [["", "area", *shares]]
    for row in rows:
        numbers = (row["area"], *row["accuracy_at_coverage"].values())
        table.append([str(row["by"]), *(f"{number:.3f}" for number in numbers)])
    return "\n".join(["accuracy where the least sure are not answered", text_table(table)])


def _probabilities(values: ArrayLike) -> NDArray[np.float64]:
    shares = np.asarray(detached(values), dtype=np.float64)
    if shares.ndim != 2:
        raise ShapeError(f"probabilities must be a matrix [text label]. Got shape {shares.shape} instead.")
    if not shares.size:
        raise InputError(f"probabilities are empty. Got shape {shares.shape}; give one document or more.")
    sums = shares.sum(axis=1)
    # Phrased with `not`, so that NaN is refused as well.
    if not ((shares >= 0).all() and (np.abs(sums - 1) <= ROUNDING * shares.shape[1]).all()):
        raise InputError(
            f"probabilities must be 0 or more, with rows that sum to 1. Got {shares.min():g} to {shares.max():g} in "
            f"rows with sums from {sums.min():g} to {sums.max():g}; give those of a softmax in float32 or wider."
        )
    return shares


def _entropy(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    # A probability rounded to above 1 would have a negative entropy.
    return np.maximum(entr(shares).sum(axis=1), 0)


def _least_confidence(shares: NDArray[np.float64]) -> NDArray[np.float64]:
    # Sum the other labels: 1 minus the highest would round all near-certain documents to 0.
    others = shares.copy()
    others[np.arange(len(shares)), shares.argmax(axis=1)] = 0
    return others.sum(axis=1)
