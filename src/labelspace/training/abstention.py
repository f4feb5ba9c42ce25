"""Up to which uncertainty to answer: for a share of the documents, or for a risk that may be promised.

A limit is chosen on labelled documents that training has not seen; from then on a document is answered where its
uncertainty is at most the limit. Any number that grows with doubt will do: the mean of sigma, one minus the highest
probability, an entropy.
"""

import math

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binom

from labelspace.checks import check_number
from labelspace.training.calibration import as_flags, one_number_each

RISK_STEPS = 100
"""Numbers of answers that `risk_limit` tries go up by one part in so many of the documents."""

RISK_STARTS = 5
"""Shares of the documents from which it goes up: a fifth, two fifths, ..., all."""


def least_answers(coverage: float, documents: int) -> int:
    """Return how many documents at least are such a share of all, one or more.

    Example:
        >>> least_answers(0.9, 10), least_answers(0.91, 10), least_answers(0.001, 10), least_answers(0.55, 100)
        (9, 10, 1, 55)
    """
    # The product may lie a last bit above a whole number: 0.55 * 100 is more than 55.
    return max(1, math.ceil(coverage * documents - 1e-9))


def coverage_limit(uncertainty: ArrayLike, coverage: float, *, to_come: bool = False) -> float:
    r"""Return the largest uncertainty to answer so that at least this share is answered, of these or of others.

    Of these n documents k are needed, the coverage times n rounded up. For others drawn alike it is

    .. math::
        k = \min\bigl(n, \lceil \mathrm{coverage} \, (n + 1) \rceil\bigr)

    since another document is as likely to fall into any of the n + 1 gaps between these, and so is answered with a
    chance of k / (n + 1). More than n / (n + 1) no limit promises.

    Of equal uncertainties all are answered, since nothing tells them apart: with many ties more are answered than were
    asked for, and where all are equal, all.

    Args:
        uncertainty: [text] the larger, the more in doubt.
        coverage: share to answer, above 0, at most 1.
        to_come: True: of documents drawn alike, on average; False: of these.

    Returns:
        One of the uncertainties: answer what is at most that.

    Raises:
        ConfigError: `coverage` is no such share.
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


def risk_limit(
    uncertainty: ArrayLike, wrong: ArrayLike, risk: float, *, confidence: float = 0.95, measures: int = 1
) -> float | None:
    r"""Return the largest uncertainty to answer for which the error among the answered is at most `risk`, surely.

    Sure means: of the times that this is done, on other documents drawn alike, the limit may break its promise in one
    minus `confidence`. Numbers of answers k are tried, the surest documents first, and k passes if

    .. math::
        P\bigl( \mathrm{Binomial}(k, \mathrm{risk}) \le \mathrm{errors}(k) \bigr)
          \le \frac{1 - \mathrm{confidence}}{5 \cdot \mathrm{measures}}

    which is to say that the upper Clopper-Pearson bound of the error is at most `risk`. There are five sequences: they
    start at a fifth of the documents, at two fifths, ..., at all, go up by hundredths, and end at the first k that
    fails; the largest k that passed anywhere gives the limit. A sequence that stops at its first failure needs no
    correction for its length, and five share the chance among them (fixed-sequence testing with several starts). With
    one start the first few documents decide all: an error among them ends it.

    Exact where uncertainties differ and no document is less often wrong than a surer one. Elsewhere nearly so: the
    uncertainties tried are those of the documents themselves, not fixed before. Of equal ones all are answered.

    Where the uncertainty is the one of several measures that does best on these very documents, all of them share the
    chance (Bonferroni): each would have kept its promise, so the chosen one does.

    With fewer documents than log((1 - confidence) / 5 / measures) / log(1 - risk), nothing can be promised: for a risk
    of 5 % with less than 90, or 104 for the better of two measures.

    Args:
        uncertainty: [text] the larger, the more in doubt; documents like those to come, that training has not seen.
        wrong: [text] True where the answer is wrong.
        risk: largest share of wrong answers among those given, between 0 and 1.
        confidence: between 0 and 1.
        measures: how many the uncertainty was chosen from by these documents; 1: it was not.

    Returns:
        One of the uncertainties: answer what is at most that. None where no number of answers passes.

    Raises:
        ConfigError: `risk`, `confidence` or `measures` is out of range.
        ShapeError: not one number and one answer per document.
        InputError: no document, or a number that is not finite.

    Example:
        The last forty of two hundred are wrong. For a risk of 10 % those up to 0.825 may be answered: 166, of which
        six are wrong.

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
    check_number("risk", risk, above=0, below=1)
    check_number("confidence", confidence, above=0, below=1)
    check_number("measures", measures, least=1, whole=True)
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
