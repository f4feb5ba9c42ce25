"""Results of single runs, and the test over paired repeats; shared by report, aims and pictures."""

import warnings
from collections.abc import Sequence
from typing import Any

import pandas as pd
import store
from scipy.stats import wilcoxon

from labelspace.errors import own_filters
from lacon.methods import METHODS
from lacon.paper import Figure
from lacon.sets import SETS

METRICS = {"accuracy": "accuracy", "macro_f1_predicted": "macro-F1", "matthews": "Matthews"}


def runs_of(part: str, *columns: str, **facts: Any) -> pd.DataFrame:
    """Return the runs of a part with these facts, of the page's encoder unless they name one."""
    return store.frame("lacon", part, *columns, **{"encoder": store.ENCODER, **facts})


def scored(part: str, *columns: str, **facts: Any) -> pd.DataFrame:
    """Return the runs of a part on the paper's data sets; `score` is by the set's own metric."""
    runs = runs_of(part, "set", "seed", *columns, *METRICS, "provenance.commit", **facts)
    runs["score"] = [run[SETS[run["set"]].metric] for run in runs.to_dict("records")]
    return runs


def by_method(runs: pd.DataFrame, *along: str, score: str = "score") -> pd.DataFrame:
    """Return a row for each sample, with the score of every method on it."""
    wide = runs.pivot(index=["set", *along, "seed"], columns="method", values=score)
    return wide.reindex(columns=list(METHODS)).reset_index()


def titles_of(runs: pd.DataFrame) -> dict[str, str]:
    """Return the titles of the data sets that were run, in the order of the tables."""
    return {name: source.title for name, source in SETS.items() if name in set(runs["set"])}


def figure(value: Figure | float | None) -> str:
    """Format a number of the paper."""
    if value is None:
        return ""
    return f"{value[0]:.1f} ± {value[1]:.1f}" if isinstance(value, tuple) else f"{value:.1f}"


def paired_p(differences: Sequence[float]) -> float | None:
    """Two-sided p of Wilcoxon's signed-rank test over paired repeats; None with fewer than two pairs.

    It is 1 if all are zero, where the test is undefined. With n pairs
    it is 2 / 2^n at least, so three repeats cannot fall below 0.25.
    """
    if len(differences) < 2:
        return None
    if not any(differences):
        return 1.0
    with own_filters():
        warnings.simplefilter("ignore")  # few pairs or ties make p approximate; the table shows the number of pairs
        found: Any = wilcoxon(differences)
        return float(found.pvalue)


def holm(values: Sequence[float]) -> list[float]:
    """Return p values corrected for their number (Holm, 1979): at what level each is still significant among all."""
    order = sorted(range(len(values)), key=values.__getitem__)
    found, least = [0.0] * len(values), 0.0
    for rank, place in enumerate(order):
        least = max(least, min(1.0, (len(values) - rank) * values[place]))
        found[place] = least
    return found
