"""Results of single runs, and the test over paired repeats; shared by report, aims and pictures."""

import warnings
from collections.abc import Sequence
from typing import Any

import store
from scipy.stats import wilcoxon
from store import Row as Result

from lacon.paper import Figure
from lacon.sets import SETS

BySeed = dict[int, float]


def results(part: str) -> list[Result]:
    """Return the results of a part with the page's encoder."""
    return store.results("lacon", part, encoder=store.ENCODER)


def sets_of(part: str) -> list[str]:
    """Return the data sets with results in a part, in the order of the tables."""
    there = {found["set"] for found in results(part)}
    return [name for name in SETS if name in there]


def runs_of(part: str, **facts: Any) -> list[Result]:
    """Return the results of a part with these facts."""
    return store.results("lacon", part, encoder=store.ENCODER, **facts)


def by_seed(part: str, metric: str | None = None, /, **facts: Any) -> BySeed:
    """Return the score of each repeat of the runs with these facts; metric None: the data set's own."""
    return {found["seed"]: found[metric or found["metric"]] for found in runs_of(part, **facts)}


def figure(value: Figure | float | None) -> str:
    """Format a number of the paper."""
    if value is None:
        return ""
    return f"{value[0]:.1f} ± {value[1]:.1f}" if isinstance(value, tuple) else f"{value:.1f}"


def signed_rank(ours: BySeed, theirs: BySeed) -> float | None:
    """Two-sided p of Wilcoxon's signed-rank test over paired repeats; None with fewer than two pairs.

    With n pairs it is 2 / 2^n at least, so three repeats cannot fall below 0.25.
    """
    seeds = sorted(ours.keys() & theirs.keys())
    return paired_p([ours[seed] - theirs[seed] for seed in seeds])


def paired_p(differences: Sequence[float]) -> float | None:
    """Compute the p-value from differences; 1 if all are zero, where the test is undefined."""
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few pairs or ties make p approximate; the table shows the number of pairs
        found: Any = wilcoxon(differences)
        return float(found.pvalue)
