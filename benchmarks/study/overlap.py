"""What draws from a few written descriptions tell of descriptions that are written anew.

Draws of n from the same N share descriptions, so they lie closer together than fresh ones would: a mean over n of N has
the variance (1 - n/N) S²/n, over n fresh ones S²/n, S² being the variance between descriptions (Cochran, Sampling
techniques, theorem 2.2). Of a score this holds as far as it is a sum over descriptions.
"""

import math
import statistics
from collections.abc import Sequence


def deviation(scores: Sequence[float], share: float) -> float:
    """Return the standard deviation that scores of fresh draws would have.

    Args:
        scores: of draws from the same descriptions.
        share: of these descriptions that a draw takes, n/N, below 1; 0 where draws share nothing.
    """
    return statistics.stdev(scores) / math.sqrt(1 - share)


def standard_error(scores: Sequence[float], share: float) -> float:
    """Return how far the mean of these scores may be from that of fresh draws, as a standard error.

    More draws do not take away the error of the N descriptions themselves, whose mean has the variance S²/N.

    Args:
        scores: of draws from the same descriptions.
        share: as for `deviation`.
    """
    return statistics.stdev(scores) * math.sqrt(1 / len(scores) + share / (1 - share))
