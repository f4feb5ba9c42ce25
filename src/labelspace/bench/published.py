"""Scores published by the paper's authors: 38 models on 22 BTZSC and 8 MTEB sets, and on 8 NLI sets.

They are Tables 2 and 5 to 12 and Figure 3b of the paper, with four decimals instead of two, from the result files of
the authors' package. Three MTEB sets (imdb, banking77, MASSIVE intent) share a column with their BTZSC twin, as in the
paper.

Before comparing: most sets were scored on 1,000 rows, so a score has a sampling error of 0.01 to 0.02. The row of
all-MiniLM-L6-v2 is reproduced with [CLS] pooling, not with the mean pooling that the model was trained for.
"""

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import final

from labelspace.bench.cards import SAME_LABELS
from labelspace.checks import check_choice

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
    """Name in the paper's tables."""

    family: str
    """One of `MODEL_FAMILIES`."""

    parameters: int
    """Number of parameters."""


def published_scores(metric: str = "macro_f1_predicted") -> dict[str, dict[str, float]]:
    """Return the published scores of each model on each data set.

    Args:
        metric: one of `cards.METRICS`, or `"auroc"` for the scores on `NLI_SETS`.

    Returns:
        Model -> data set (names of `cards.BTZSC` and `cards.MTEB`) -> score from 0 to 1.

    Raises:
        ConfigError: an unknown metric.

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
