"""Correct the spread over samples of a few written descriptions to the spread over newly written ones.

Samples of n from the same N descriptions overlap, so they vary less than new descriptions would: a mean over n of N has
the variance (1 - n/N) S²/n, over n new ones S²/n, with S² the variance between descriptions (Cochran, Sampling
techniques, theorem 2.2). For a score this holds as far as the score is a sum over descriptions.
"""

import math
import statistics
from collections.abc import Sequence


def deviation(scores: Sequence[float], share: float) -> float:
    """Return the standard deviation that scores with new descriptions would have.

    Args:
        scores: scores of samples from the same descriptions.
        share: share n/N of the descriptions in a sample, below 1; 0 if samples do not overlap.
    """
    return statistics.stdev(scores) / math.sqrt(1 - share)


def standard_error(scores: Sequence[float], share: float) -> float:
    """Return the standard error of the mean score as an estimate for new descriptions.

    More samples do not remove the error of the N descriptions themselves, whose mean has the variance S²/N.

    Args:
        scores: scores of samples from the same descriptions.
        share: as in `deviation`.
    """
    return statistics.stdev(scores) * math.sqrt(1 / len(scores) + share / (1 - share))
