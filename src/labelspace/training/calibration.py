"""Calibration: how far probabilities can be trusted, and temperature scaling, which corrects them.

    expected calibration error   distance between confidence and accuracy, in bins (Guo et al., 2017, eq. 3)
    temperature                  divides the logits before the softmax; no answer changes, because the order of the
                                 labels stays the same (section 4.2)

Everything is numpy in float64, for any classifier with logits. Fit the temperature on documents that neither training
nor early stopping has used; otherwise the model looks more certain than it should be.

Reference:
    Guo et al., 2017, "On calibration of modern neural networks", https://arxiv.org/abs/1706.04599
"""

import math
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelspace.checks import check_number
from labelspace.errors import InputError, ShapeError

ECE_BINS = 15
"""Number of bins, of equal width, as in most papers since Guo et al."""

MOST_TEMPERATURE = 20.0
"""The search covers temperatures from 1/20 to 20."""

HALF_AN_ERROR = 0.5
"""Pseudo-errors added to the documents, spread over all other labels: half of Platt's correction for few rows."""

# A smaller gain, in nats per document, does not count: the temperature then stays 1.
LEAST_GAIN = 1e-9
# Logits are clipped to this size: larger ones carry no more information, and 20 times their sums would overflow.
LARGEST_LOGIT = 1e290
# How far float32 rounding may take probabilities beyond 0 and 1.
ROUNDING = 1e-6


@final
@dataclass(frozen=True, kw_only=True)
class Calibration:
    """A temperature, and its effect on the documents it was fitted on."""

    temperature: float
    """Divisor of the logits; above 1 means the model was overconfident."""

    ece_before: float
    """Expected calibration error with the original logits."""

    ece_after: float
    """Expected calibration error with the logits divided by the temperature."""

    nll_before: float
    """Mean negative log-likelihood of the true label, in nats, with the original logits."""

    nll_after: float
    """Mean negative log-likelihood with the logits divided by the temperature."""

    documents: int
    """Number of documents it was fitted on."""


def calibration_bins(confidence: ArrayLike, right: ArrayLike, bins: int = ECE_BINS) -> NDArray[np.float64]:
    """Count documents in confidence bins of equal width; the counts of several batches may be added up.

    Args:
        confidence: [text] probability of the answer, 0 to 1.
        right: [text] True where the answer is right.
        bins: number of bins; each includes its upper edge: ]0, 1/15], ]1/15, 2/15], ...; 0 is in the first.

    Returns:
        [3 bin]: documents, sum of confidences, right answers.

    Example:
        >>> calibration_bins([0.25, 0.75, 1.0], [False, True, True], bins=2).tolist()
        [[1.0, 2.0], [0.25, 1.75], [0.0, 2.0]]
    """
    share = np.asarray(confidence, dtype=np.float64)
    place = np.searchsorted(np.arange(1, bins) / bins, share, side="left")
    rows = (np.ones(len(share)), share, np.asarray(right))
    return np.stack([np.bincount(place, weights=weights, minlength=bins) for weights in rows], dtype=np.float64)


def error_of_bins(counts: NDArray[np.float64]) -> float:
    """Return the expected calibration error of counts from `calibration_bins`.

    Args:
        counts: [3 bin], of at least one document.
    """
    documents, confidence, right = counts
    return float(np.abs(confidence - right).sum() / documents.sum())


def expected_calibration_error(confidence: ArrayLike, right: ArrayLike, bins: int = ECE_BINS) -> float:
    r"""Return the mean distance between confidence and accuracy, over bins of equal width.

    .. math::
        \mathrm{ECE} = \sum_m \frac{|B_m|}{n} \, \bigl| \mathrm{acc}(B_m) - \mathrm{conf}(B_m) \bigr|

    Args:
        confidence: [text] probability of the answer, 0 to 1.
        right: [text] True where the answer is right.
        bins: number of bins.

    Returns:
        From 0 (calibrated) to 1.

    Raises:
        ConfigError: `bins` is not a positive whole number.
        ShapeError: not one confidence and one answer per document.
        InputError: no document, or a confidence that is not a probability.

    Example:
        Certain of four answers, and right in three.

        >>> expected_calibration_error([1.0, 1.0, 1.0, 1.0], [True, True, True, False])
        0.25

    Reference:
        Guo et al., 2017, https://arxiv.org/abs/1706.04599, eq. 3.
    """
    check_number("bins", bins, least=1, whole=True)
    sure = one_number_each("confidence", confidence)
    flags = as_flags("right", right, len(sure))
    if sure.min() < -ROUNDING or sure.max() > 1 + ROUNDING:
        bad = sure[(sure < -ROUNDING) | (sure > 1 + ROUNDING)][0]
        raise InputError(f"confidence must be probabilities from 0 to 1. Got {bad:g} instead; give those of a softmax.")
    return error_of_bins(calibration_bins(sure, flags, bins))


def temperature_for_accuracy(logits: ArrayLike, accuracy: float) -> float:
    r"""Return the temperature at which answers are as sure, on average, as they are right.

    .. math::
        \frac{1}{n} \sum_i \max_k \mathrm{softmax}(z_i / T)_k = \mathrm{accuracy}

    No label is read, so the accuracy may be an estimate of one. The mean falls as the temperature rises, so there is
    one solution; the search is bounded, from 1/20 to 20.

    Args:
        logits: [text label] input of the softmax, finite; divide cosines by the model's temperature first.
        accuracy: accuracy of the answers, 0 to 1.

    Returns:
        1/20 to 20.

    Raises:
        ConfigError: `accuracy` is out of range.
        ShapeError: not a matrix.
        InputError: no document, or a logit that is not finite.

    Example:
        >>> round(temperature_for_accuracy([[6.0, 0.0], [6.0, 0.0], [0.0, 6.0]], 0.9), 2)
        2.73

    Reference:
        Guo et al., 2017, https://arxiv.org/abs/1706.04599, section 4.2, with the accuracy in place of labels.
    """
    check_number("accuracy", accuracy, least=0, most=1)
    table = np.asarray(detached(logits), dtype=np.float64)
    targets = table.argmax(axis=1) if table.ndim == 2 and table.shape[1] else [0] * len(table)
    below, _ = _below_the_highest(table, targets)

    from scipy.optimize import brentq

    def too_sure(log_temperature: float) -> float:
        # The highest logit is 0 after subtraction, so its probability is 1 over the sum.
        return float((1 / np.exp(below / math.exp(log_temperature)).sum(axis=1)).mean()) - accuracy

    least, most = -math.log(MOST_TEMPERATURE), math.log(MOST_TEMPERATURE)
    if too_sure(least) <= 0 or too_sure(most) >= 0:
        return math.exp(least if too_sure(least) <= 0 else most)
    return math.exp(float(brentq(too_sure, least, most)))  # pyright: ignore[reportArgumentType]


def calibrate(logits: ArrayLike, targets: ArrayLike) -> Calibration:
    r"""Fit a temperature, and measure the calibration before and after on the same documents.

    The temperature has the highest likelihood of the true labels, smoothed by half an error:

    .. math::
        T = \arg\min_T \; - \frac{1}{n} \sum_i \sum_k q_{ik} \log \mathrm{softmax}(z_i / T)_k, \quad
        q_{ik} = \begin{cases} 1 - \epsilon & k = y_i \\ \epsilon / (K - 1) & \text{else} \end{cases}, \quad
        \epsilon = \frac{1/2}{n + 1}

    Without the half error the likelihood has no optimum if every answer is right, as is common with few rows: it grows
    with ever lower temperatures, and the model would become certain of everything. With hundreds of rows the half error
    changes nothing.

    The search over log T is bounded, from 1/20 to 20. There is one optimum, because the sum is convex in 1/T. If no
    temperature improves the likelihood, T stays 1.

    Only one number is fitted, so with hundreds of documents the error afterwards is hardly optimistic; with a handful
    it may be. For an unbiased error, use `expected_calibration_error` on other documents.

    Args:
        logits: [text label] input of the softmax, finite. Divide cosines by the model's temperature first: the best
            temperature of bare cosines may lie below 1/20.
        targets: [text] column of each document's own label.

    Returns:
        A `Calibration`.

    Raises:
        ShapeError: not a matrix, not one target per row, or a target out of range.
        InputError: no document, or a logit that is not finite.

    Example:
        >>> found = calibrate([[6.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 0.0]], [0, 0, 1, 1])
        >>> round(found.ece_before, 2), round(found.ece_after, 2), found.documents
        (0.25, 0.05, 4)

    Reference:
        Guo et al., 2017, https://arxiv.org/abs/1706.04599, section 4.2; the paper gives no range. Platt, 1999,
        "Probabilistic outputs for support vector machines", section 2.2, adds one error where this adds half.
    """
    below, columns = _below_the_highest(logits, targets)
    temperature = _best_temperature(below, columns)
    right = below.argmax(axis=1) == columns

    def error(at: float) -> float:
        # The highest logit is 0 in `below`, so its probability is 1 over the sum.
        return error_of_bins(calibration_bins(1 / np.exp(below / at).sum(axis=1), right))

    return Calibration(
        temperature=temperature,
        ece_before=error(1.0),
        ece_after=error(temperature),
        nll_before=_nll(below, columns, 1.0),
        nll_after=_nll(below, columns, temperature),
        documents=len(columns),
    )


def detached(values: ArrayLike) -> ArrayLike:
    """Return a torch tensor in main memory, in float64 and without its gradient, for numpy; all else unchanged."""
    detach = getattr(values, "detach", None)
    return values if detach is None else detach().cpu().double()


def one_number_each(name: str, values: ArrayLike) -> NDArray[np.float64]:
    """Return [text] finite numbers, one for each of at least one document.

    Args:
        name: the caller's name for the values.
        values: [text] numbers.

    Raises:
        ShapeError: not one number per document.
        InputError: no document, or a number that is not finite.
    """
    try:
        numbers = np.asarray(detached(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must hold numbers. {error}.") from error
    if numbers.ndim != 1:
        raise ShapeError(f"{name} must hold one number for each document. Got shape {numbers.shape} instead.")
    if not len(numbers):
        raise InputError(f"{name} holds no document; give one or more.")
    if not np.isfinite(numbers).all():
        place = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise InputError(f"{name}[{place}] must be a finite number. Got {numbers[place]} instead.")
    return numbers


def as_flags(name: str, values: ArrayLike, documents: int) -> NDArray[np.bool_]:
    """Return True or False for each document, [text], from booleans or from 0 and 1.

    Args:
        name: the caller's name for the values.
        values: [text].
        documents: required number of values.

    Raises:
        ShapeError: another number of values.
        InputError: a value that is not a flag.
    """
    flags: NDArray[Any] = np.asarray(detached(values))
    if flags.shape != (documents,):
        raise ShapeError(
            f"{name} must hold one value for each of {documents} documents. Got shape {flags.shape} instead."
        )
    if not np.isin(flags, (0, 1)).all():
        place = int(np.flatnonzero(~np.isin(flags, (0, 1)))[0])
        raise InputError(f"{name}[{place}] must be True or False. Got {flags[place]!r} instead.")
    return flags.astype(np.bool_)


def _below_the_highest(logits: ArrayLike, targets: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return each logit minus the highest of its row, which leaves the softmax unchanged, and the checked targets."""
    matrix, columns = np.asarray(detached(logits), dtype=np.float64), np.asarray(targets)
    if matrix.ndim != 2:
        raise ShapeError(f"logits must be a matrix [text label]. Got shape {matrix.shape} instead.")
    if columns.shape != (len(matrix),) or (len(columns) and columns.dtype.kind not in "iu"):
        raise ShapeError(
            f"targets must hold one column number for each of {len(matrix)} documents. "
            f"Got {columns.dtype} of shape {columns.shape} instead."
        )
    if not matrix.size:
        raise InputError(f"logits hold nothing to calibrate on, they have shape {matrix.shape}; give labelled rows.")
    if columns.min() < 0 or columns.max() >= matrix.shape[1]:
        bad = columns[(columns < 0) | (columns >= matrix.shape[1])][0]
        raise ShapeError(f"targets must be column numbers from 0 to {matrix.shape[1] - 1}. Got {bad} instead.")
    if not np.isfinite(matrix).all():
        bad = matrix[~np.isfinite(matrix)][0]
        raise InputError(f"logits must be finite. Got {bad} instead; look where it comes from.")
    matrix = matrix.clip(-LARGEST_LOGIT, LARGEST_LOGIT)
    return matrix - matrix.max(axis=1, keepdims=True), columns.astype(np.int64)


def _nll(below: NDArray[np.float64], columns: NDArray[np.int64], temperature: float, error: float = 0.0) -> float:
    """Return the mean negative log-likelihood; a share `error` of each target is spread over the other labels."""
    total, labels = below.sum(axis=1), below.shape[1]
    own = below[np.arange(len(columns)), columns]
    others = (total - own) / max(labels - 1, 1)
    expected = own + error * (others - own) if labels > 1 else own
    return float(np.mean(np.log(np.exp(below / temperature).sum(axis=1)) - expected / temperature))


def _best_temperature(below: NDArray[np.float64], columns: NDArray[np.int64]) -> float:
    from scipy.optimize import minimize_scalar

    edge = math.log(MOST_TEMPERATURE)
    error = HALF_AN_ERROR / (len(columns) + 1)

    def loss(power: float) -> float:
        return _nll(below, columns, math.exp(power), error)

    found: Any = minimize_scalar(loss, bounds=(-edge, edge), method="bounded", options={"xatol": 1e-9})
    # The bounded search never evaluates its ends.
    best = min((found.x, -edge, edge), key=loss)
    if loss(0.0) - loss(best) < LEAST_GAIN:
        return 1.0
    return min(max(math.exp(best), 1 / MOST_TEMPERATURE), MOST_TEMPERATURE)
