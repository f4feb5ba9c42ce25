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
    """Results of a part with the encoder of the page."""
    return store.results("lacon", part, encoder=store.ENCODER)


def sets_of(part: str) -> list[str]:
    """The data sets that a part has results of, in the order of the tables."""
    there = {found["set"] for found in results(part)}
    return [name for name in SETS if name in there]


def runs_of(part: str, **facts: Any) -> list[Result]:
    """The results of a part that are of these facts."""
    return store.results("lacon", part, encoder=store.ENCODER, **facts)


def by_seed(part: str, metric: str | None = None, /, **facts: Any) -> BySeed:
    """Score of each repeat, by a metric or that of its data set, of the runs that are of these facts."""
    return {found["seed"]: found[metric or found["metric"]] for found in runs_of(part, **facts)}


def figure(value: Figure | float | None) -> str:
    """A figure of the paper."""
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
    """The same of differences; 1 where all are zero, about which the test says nothing."""
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few pairs, ties: p is then approximate, and small samples show that anyway
        found: Any = wilcoxon(differences)
        return float(found.pvalue)
