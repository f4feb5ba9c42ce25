"""The figures that the paper's authors publish: 38 models on 22 BTZSC and 8 MTEB sets, and on 8 NLI sets.

They are Tables 2 and 5 to 12 and Figure 3b of the paper, with four decimals in place of two, from the result files of
the authors' package. Three MTEB sets (imdb, banking77, MASSIVE intent) share a column with their BTZSC twin, as in the
paper.

Know before comparing: most sets were scored on 1,000 rows, so a score has a sampling error of 0.01 to 0.02; the row of
all-MiniLM-L6-v2 comes out with [CLS] pooling, not with the mean pooling that the model is made for.
"""

import csv
import statistics
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any, final

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, MTEB, SAME_LABELS
from labelspace.checks import check_choice, did_you_mean
from labelspace.errors import ConfigError

MODEL_FAMILIES = ("base", "nli", "reranker", "embedding", "llm")
"""Base encoders, NLI cross-encoders, rerankers, embedding models, instruction-tuned LLMs, in the order of Table 2."""

NLI_SETS = ("anli_r1", "anli_r2", "anli_r3", "fevernli", "lingnli", "mnli_m", "mnli_mm", "wanli")
"""The development sets behind the published AUROC (section 5.1)."""

_FILES = {
    "macro_f1_predicted": "f1",
    "accuracy": "accuracy",
    "macro_precision_predicted": "precision",
    "macro_recall_predicted": "recall",
    "auroc": "auroc",
}


@final
@dataclass(frozen=True, kw_only=True)
class PublishedModel:
    """One of the 38 models of the paper."""

    name: str
    """As in the paper's tables."""

    family: str
    """One of `MODEL_FAMILIES`."""

    parameters: int
    """How many weights it has."""


@final
@dataclass(frozen=True, kw_only=True)
class Average:
    """A mean over data sets."""

    mean: float
    """Unweighted, from 0 to 1."""

    std: float | None
    """Standard deviation between the data sets (n - 1), None for a single one."""

    sets: int
    """How many there are."""


@final
@dataclass(frozen=True, kw_only=True)
class PublishedSummary:
    """One model's row of Table 2."""

    model: str
    """Its name."""

    metric: str
    """Which number this is about."""

    families: Mapping[str, Average]
    """Of each of `FAMILIES`."""

    overall: Average
    """Over the 22 BTZSC sets, each weighing the same."""

    mteb: Average
    """Over the 8 MTEB sets (Tables 9 to 12)."""

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return asdict(self)


def published_scores(metric: str = "macro_f1_predicted") -> dict[str, dict[str, float]]:
    """Return the published scores of each model on each data set.

    Args:
        metric: one of `cards.METRICS`; or `"auroc"`, whose data sets are `NLI_SETS`.

    Returns:
        Model, then data set (names of `cards.BTZSC` and `cards.MTEB`), then a number from 0 to 1.

    Raises:
        ConfigError: another metric.

    Example:
        >>> published_scores()["Qwen3-Reranker-8B"]["agnews"]
        0.7875
        >>> published_scores("auroc")["bart-large-mnli"]["mnli_m"]
        0.9803

    Reference:
        BTZSC, Tables 5 to 12.
    """
    check_choice("metric", metric, _FILES)
    return {model: dict(scores) for model, scores in _scores(metric).items()}


def published_models() -> dict[str, PublishedModel]:
    """Return the 38 models by name, in the order of Table 2.

    Example:
        >>> published_models()["gte-large-en-v1.5"]
        PublishedModel(name='gte-large-en-v1.5', family='embedding', parameters=434000000)
    """
    return {
        row["model"]: PublishedModel(name=row["model"], family=row["family"], parameters=int(row["parameters"]))
        for row in _rows("models")
    }


def published_summary(model: str, *, metric: str = "macro_f1_predicted") -> PublishedSummary:
    """Return one model's row of Table 2, and its mean over the MTEB sets.

    Args:
        model: one of `published_models`.
        metric: one of `cards.METRICS`.

    Raises:
        ConfigError: another model or metric.

    Example:
        >>> row = published_summary("Qwen3-Reranker-8B")
        >>> round(row.overall.mean, 2), round(row.families["topic"].mean, 2), round(row.mteb.mean, 2)
        (0.72, 0.66, 0.71)

    Reference:
        BTZSC, Table 2.
    """
    check_choice("metric", metric, METRICS)
    scores = _scores(metric)
    if model not in scores:
        raise ConfigError(
            f"the paper has no model {model!r}.{did_you_mean(str(model), scores)} It has: {', '.join(scores)}."
        )
    row = scores[model]
    return PublishedSummary(
        model=model,
        metric=metric,
        families={family: average(row[task] for task in BTZSC if BTZSC[task].family == family) for family in FAMILIES},
        overall=average(row[task] for task in BTZSC),
        mteb=average(row[task] for task in MTEB),
    )


def average(values: Iterable[float]) -> Average:
    """Return mean and spread of one score or more.

    Example:
        >>> average([0.25, 0.75])
        Average(mean=0.5, std=0.3535533905932738, sets=2)
    """
    values = list(values)
    std = statistics.stdev(values) if len(values) > 1 else None
    return Average(mean=statistics.fmean(values), std=std, sets=len(values))


@cache
def _scores(metric: str) -> Mapping[str, Mapping[str, float]]:
    found = {}
    for row in _rows(_FILES[metric]):
        model = row.pop("model")
        found[model] = {task: float(value) for task, value in row.items()}
        if metric != "auroc":
            found[model] |= {task: found[model][twin] for task, twin in SAME_LABELS.items()}
    return found


def _rows(name: str) -> Iterator[dict[str, str]]:
    folder = resources.files("labelspace.bench").joinpath("data/published")
    yield from csv.DictReader(folder.joinpath(f"{name}.csv").read_text(encoding="utf-8").splitlines())
