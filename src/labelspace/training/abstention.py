"""The uncertainty limit up to which to answer, for a share of the documents or for a guaranteed risk.

The limit is chosen on labelled held-out documents; from then on, a document is answered if its uncertainty is at most
the limit. Any number that grows with doubt will do: the mean of sigma, one minus the highest probability, an entropy.
"""

import math
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from labelspace.checks import check_number
from labelspace.training.calibration import as_flags, detached, one_number_each

RISK_STEPS = 100
"""`risk_limit` increases the number of answers in steps of one hundredth of the documents."""

RISK_STARTS = 5
"""Number of starting points of `risk_limit`: a fifth of the documents, two fifths, ..., all."""


@final
@dataclass(frozen=True)
class Limit:
    """The limit up to which documents are answered."""

    by: str
    """Measure of doubt: `"uncertainty"` or `"entropy"`."""

    value: float
    """Largest value that is answered."""


def entropy(logits: ArrayLike, temperature: float) -> NDArray[np.float64]:
    """Return the entropy of softmax(logits / temperature) for each text.

    Args:
        logits: [text label].
        temperature: above zero.

    Returns:
        [text], in nats, from 0 to the logarithm of the number of labels.

    Raises:
        ConfigError: `temperature` is not above zero.

    Example:
        >>> entropy(np.array([[1.0, 1.0], [9.0, 0.0]]), 1.0).round(3).tolist()
        [0.693, 0.001]
    """
    check_number("temperature", temperature, above=0)
    scaled = np.asarray(detached(logits), dtype=np.float64) / temperature
    scaled -= scaled.max(axis=1, keepdims=True, initial=-np.inf)
    powers = np.exp(scaled)
    total = powers.sum(axis=1)
    return np.log(total) - (powers * scaled).sum(axis=1) / total


def least_answers(coverage: float, documents: int) -> int:
    """Return the least number of documents, at least one, that makes up this share of them.

    Example:
        >>> least_answers(0.9, 10), least_answers(0.91, 10), least_answers(0.001, 10), least_answers(0.55, 100)
        (9, 10, 1, 55)
    """
    # Rounding can push the product just above a whole number: 0.55 * 100 is more than 55.
    return max(1, math.ceil(coverage * documents - 1e-9))


def coverage_limit(uncertainty: ArrayLike, coverage: float, *, to_come: bool = False) -> float:
    r"""Return the uncertainty limit at which at least this share of these or of future documents is answered.

    For these n documents, k is the coverage times n, rounded up, and the limit is the k-th smallest uncertainty. For
    future documents from the same distribution

    .. math::
        k = \min\bigl(n, \lceil \mathrm{coverage} \, (n + 1) \rceil\bigr)

    because a new document falls into each of the n + 1 gaps between these with equal probability, and so is answered
    with probability k / (n + 1). No limit taken from them can guarantee more than n / (n + 1).

    Documents with equal uncertainties cannot be told apart and are answered together: ties can raise the answered
    share, up to all documents if all are equal.

    Args:
        uncertainty: [text], larger means more doubt.
        coverage: share to answer, above 0, at most 1.
        to_come: True: the expected share of future documents; False: the share of these.

    Returns:
        One of the uncertainties; answer documents at or below it.

    Raises:
        ConfigError: `coverage` is out of range.
        ShapeError: not one number per document.
        InputError: no document, or a number that is not finite.

    Example:
        >>> coverage_limit([0.3, 0.1, 0.9, 0.2, 0.7], 0.6)
        0.3
        >>> coverage_limit([0.3, 0.1, 0.9, 0.2, 0.7], 0.6, to_come=True)
        0.7

    Reference:
        Vovk et al., 2005, "Algorithmic learning in a random world": the order statistic of split-conformal prediction.
    """
    check_number("coverage", coverage, above=0, most=1)
    unsure = one_number_each("uncertainty", uncertainty)
    place = min(len(unsure), least_answers(coverage, len(unsure) + to_come)) - 1
    return float(np.partition(unsure, place)[place])


def fewest_rows(risk: float, *, confidence: float = 0.95, measures: int = 1) -> int:
    """Return how many documents a risk needs at least, if all of them are answered right.

    Args:
        risk: as in `risk_limit`.
        confidence: as there.
        measures: as there.

    Raises:
        ConfigError: an argument is out of its range.

    Example:
        >>> fewest_rows(0.05), fewest_rows(0.05, measures=2)
        (90, 104)
    """
    _check_promise(risk, confidence, measures)
    return math.ceil(math.log((1 - confidence) / (RISK_STARTS * measures)) / math.log(1 - risk))


def risk_limit(
    uncertainty: ArrayLike, wrong: ArrayLike, risk: float, *, confidence: float = 0.95, measures: int = 1
) -> float | None:
    r"""Return the largest uncertainty limit at which the error among the answered is at most `risk`, with confidence.

    Over repetitions with other documents from the same distribution, the limit exceeds the risk in at most a share of
    1 - `confidence`. Numbers of answers k are tried, most certain documents first, and k passes if

    .. math::
        P\bigl( \mathrm{Binomial}(k, \mathrm{risk}) \le \mathrm{errors}(k) \bigr)
          \le \frac{1 - \mathrm{confidence}}{5 \cdot \mathrm{measures}}

    that is, if the upper Clopper-Pearson bound of the error is at most `risk`. Five sequences start at one fifth of the
    documents, two fifths, ..., all, increase in hundredths, and stop at the first k that fails; the largest k that
    passed in any sequence gives the limit. A sequence that stops at its first failure needs no correction for its
    length, so only the five starts share the chance of error (fixed-sequence testing with several starts). A single
    start would let the first few documents decide: one error among them would end it.

    The guarantee is exact if uncertainties are distinct and the error rate never falls as uncertainty grows. Otherwise
    it is approximate, because the limits tried come from the documents themselves. Ties are answered together.

    If the uncertainty is the best of several measures on these same documents, the measures share the chance of error
    (Bonferroni): the guarantee then holds for each measure, and so for the chosen one.

    With fewer documents than `fewest_rows`, nothing can be guaranteed.

    Args:
        uncertainty: [text], larger means more doubt; held-out documents from the same distribution as future ones.
        wrong: [text], True where the answer is wrong.
        risk: largest share of wrong answers among those given, between 0 and 1.
        confidence: between 0 and 1.
        measures: number of measures among which these documents chose the uncertainty; 1: there was no choice.

    Returns:
        One of the uncertainties; answer documents at or below it. None if no number of answers passes.

    Raises:
        ConfigError: `risk`, `confidence` or `measures` is out of range.
        ShapeError: not one number and one answer per document.
        InputError: no document, or a number that is not finite.

    Example:
        The last forty of two hundred are wrong. For a risk of 10 % the limit is 0.825: 166 documents are answered, six
        of them wrongly.

        >>> import numpy as np
        >>> unsure = np.arange(200) / 200
        >>> risk_limit(unsure, unsure >= 0.8, 0.1)
        0.825
        >>> risk_limit(unsure, unsure >= 0.8, 0.01) is None
        True

    Reference:
        Angelopoulos et al., 2021, "Learn then test", https://arxiv.org/abs/2110.01052 (fixed-sequence testing with
        several starts); Clopper and Pearson, 1934.
    """
    _check_promise(risk, confidence, measures)
    from scipy.stats import binom

    unsure = one_number_each("uncertainty", uncertainty)
    errors = as_flags("wrong", wrong, len(unsure))
    order = np.argsort(unsure, kind="stable")
    unsure, errors = unsure[order], errors[order].cumsum()
    documents, chance = len(unsure), (1 - confidence) / (RISK_STARTS * measures)
    step = max(1, documents // RISK_STEPS)
    limits: list[float] = []
    for start in range(1, RISK_STARTS + 1):
        for asked in (*range(least_answers(start / RISK_STARTS, documents), documents, step), documents):
            given = int(np.searchsorted(unsure, unsure[asked - 1], side="right"))
            if binom.cdf(errors[given - 1], given, risk) > chance:
                break
            limits.append(float(unsure[given - 1]))
    return max(limits, default=None)


def _check_promise(risk: float, confidence: float, measures: int) -> None:
    check_number("risk", risk, above=0, below=1)
    check_number("confidence", confidence, above=0, below=1)
    check_number("measures", measures, least=1, whole=True)
