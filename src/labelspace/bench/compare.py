"""Rank measured scores among the paper's 38 models.

A mean over some data sets cannot be compared with a mean over all of them, so each group compares measured and
published scores *on the same data sets* and states their number.
"""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, MTEB
from labelspace.bench.published import MODEL_FAMILIES, published_models, published_scores
from labelspace.bench.records import is_number
from labelspace.bench.statistics import RankCorrelation, kendall_tau
from labelspace.checks import check_choice
from labelspace.errors import InputError
from labelspace.notebook import Report
from labelspace.text_table import text_table

OVERALL, MTEB_MEAN = "BTZSC", "MTEB"


@final
@dataclass(frozen=True, kw_only=True)
class Standing:
    """One measured number among the published ones of the same data sets."""

    what: str
    """A data set, one of `cards.FAMILIES`, `"BTZSC"` or `"MTEB"`."""

    score: float
    """The measured score, or its unweighted mean over the data sets, from 0 to 1."""

    rank: int
    """1 is best: one more than the published models that score higher."""

    among: int
    """Number of models ranked: the published ones and this one."""

    best: float
    """The best published score."""

    best_model: str
    """The model with the best published score."""

    median: float
    """The median of the published scores."""

    sets: int
    """Number of data sets measured."""

    of: int
    """Number of data sets in the group."""


@final
@dataclass(frozen=True, kw_only=True)
class Placement(Report):
    """A model's place among the published ones. `print` it, or read its fields."""

    metric: str
    """The metric compared."""

    data_sets: tuple[Standing, ...]
    """One for each measured data set, in the order of the cards."""

    families: tuple[Standing, ...]
    """One for each BTZSC family with a measured set."""

    overall: Standing | None
    """The mean over the measured BTZSC sets; None if there are none."""

    mteb: Standing | None
    """The mean over the measured MTEB sets; None if there are none."""

    not_compared: tuple[str, ...]
    """Measured data sets without published scores, such as the user's own files."""

    agreement: RankCorrelation | None
    """Rank correlation of the published models' means on the measured BTZSC sets and on all 22; None if the measured
    sets are all 22, or none."""

    def to_text(self) -> str:
        """Return a plain-text table."""
        means = [*self.families, *(each for each in (self.overall, self.mteb) if each)]
        rows = [("data set", self.metric, "rank", "median", "best published")]
        rows += [_cells(each, each.what) for each in self.data_sets]
        rows += [_cells(each, f"{each.what} (mean of {each.sets} of {each.of})") for each in means]
        table = text_table(rows, left=(0, 4), rules=(1, 1 + len(self.data_sets)))
        notes = ["Published means are taken over the same data sets as the measured one."]
        if self.agreement is not None and self.overall is not None:
            notes.append(
                f"The published models' order on these {self.overall.sets} BTZSC sets against their order on all "
                f"{self.overall.of}: Kendall's tau {self.agreement.tau:.2f}."
            )
        if self.not_compared:
            notes.append(f"Not in the paper: {', '.join(self.not_compared)}.")
        return "\n".join([table, *notes])


def place(measured: Mapping[str, Mapping[str, float]], *, metric: str = "macro_f1_predicted") -> Placement:
    """Rank measured scores among the paper's 38 models.

    Args:
        measured: data set -> metric -> score from 0 to 1. Data sets without published scores are listed separately.
        metric: one of `cards.METRICS`.

    Returns:
        The rank on each data set, in each family, on BTZSC and on MTEB, over the measured data sets only.

    Raises:
        ConfigError: an unknown metric.
        InputError: no data set is in the paper, or a score is missing or not from 0 to 1.

    Example:
        >>> found = place({"agnews": {"macro_f1_predicted": 0.70}, "imdb": {"macro_f1_predicted": 0.90}})
        >>> found.overall.rank, found.overall.among, found.overall.sets, found.overall.of
        (20, 39, 2, 22)
        >>> [(each.what, each.rank) for each in found.data_sets]
        [('imdb', 17), ('agnews', 24)]

    Reference:
        BTZSC, Tables 2, 5 to 8 and 9 to 12.
    """
    check_choice("metric", metric, METRICS)
    known = [name for name in (*BTZSC, *MTEB) if name in measured]
    if not known:
        raise InputError(
            f"none of the measured data sets is in the paper. Got {', '.join(measured) or 'nothing'}; "
            f"measure one of: {', '.join(BTZSC)}."
        )
    scores = {name: _score(measured[name], name, metric) for name in known}
    published = published_scores(metric)

    def standing(what: str, among: Sequence[str]) -> Standing | None:
        names = [name for name in among if name in scores]
        return _standing(what, names, len(among), scores, published) if names else None

    families = (standing(family, [n for n, card in BTZSC.items() if card.family == family]) for family in FAMILIES)
    return Placement(
        metric=metric,
        data_sets=tuple(_standing(name, [name], 1, scores, published) for name in known),
        families=tuple(each for each in families if each is not None),
        overall=standing(OVERALL, list(BTZSC)),
        mteb=standing(MTEB_MEAN, list(MTEB)),
        not_compared=tuple(name for name in measured if name not in scores),
        agreement=_subset_agreement([name for name in BTZSC if name in scores], published),
    )


def benchmark_agreement(metric: str = "macro_f1_predicted") -> dict[str, tuple[RankCorrelation, int]]:
    """Compute the rank correlation of the published models between BTZSC and MTEB (Kendall's tau of the means).

    Args:
        metric: one of `cards.METRICS`.

    Returns:
        `"all"` and each family with three models or more -> the correlation, and the number of models.

    Raises:
        ConfigError: an unknown metric.

    Example:
        >>> found, models = benchmark_agreement()["all"]
        >>> round(found.tau, 2), models
        (0.69, 38)

    Reference:
        BTZSC, appendix E.
    """
    check_choice("metric", metric, METRICS)
    scores, models = published_scores(metric), published_models()
    groups = {"all": list(scores)}
    groups |= {family: [name for name in scores if models[name].family == family] for family in MODEL_FAMILIES}
    return {
        group: (kendall_tau(_means_over(BTZSC, names, scores), _means_over(MTEB, names, scores)), len(names))
        for group, names in groups.items()
        if len(names) > 2
    }


def _subset_agreement(sets: Sequence[str], published: Mapping[str, Mapping[str, float]]) -> RankCorrelation | None:
    if not sets or len(sets) == len(BTZSC):
        return None
    return kendall_tau(_means_over(sets, published, published), _means_over(BTZSC, published, published))


def _means_over(sets: Iterable[str], models: Iterable[str], scores: Mapping[str, Mapping[str, float]]) -> list[float]:
    sets = list(sets)
    return [statistics.fmean(scores[model][name] for name in sets) for model in models]


def _standing(
    what: str, names: Sequence[str], of: int, scores: Mapping[str, float], published: Mapping[str, Mapping[str, float]]
) -> Standing:
    own = statistics.fmean(scores[name] for name in names)
    theirs = {model: statistics.fmean(row[name] for name in names) for model, row in published.items()}
    best_model = max(theirs, key=lambda model: theirs[model])
    return Standing(
        what=what,
        score=own,
        rank=1 + sum(value > own for value in theirs.values()),
        among=len(theirs) + 1,
        best=theirs[best_model],
        best_model=best_model,
        median=statistics.median(theirs.values()),
        sets=len(names),
        of=of,
    )


def _score(numbers: Mapping[str, float], name: str, metric: str) -> float:
    value = numbers.get(metric)
    if value is None or not is_number(value, most=1):
        raise InputError(f"{name}: {metric} must be a number from 0 to 1. Got {value!r} instead.")
    return float(value)


def _cells(each: Standing, what: str) -> tuple[str, ...]:
    best = f"{each.best:.3f}  {each.best_model}"
    return what, f"{each.score:.3f}", f"{each.rank} of {each.among}", f"{each.median:.3f}", best
