"""A published model's row of Table 2 and its MTEB mean, computed from the published scores."""

import statistics
from collections.abc import Iterable
from typing import NamedTuple

from labelspace.bench.cards import BTZSC, FAMILIES, MTEB
from labelspace.bench.published import published_scores


class Mean(NamedTuple):
    mean: float
    std: float
    sets: int


class Row(NamedTuple):
    families: dict[str, Mean]
    overall: Mean
    mteb: Mean


def paper_row(model: str, *, metric: str = "macro_f1_predicted") -> Row:
    scores = published_scores(metric)[model]

    def over(names: Iterable[str]) -> Mean:
        values = [scores[name] for name in names]
        return Mean(statistics.fmean(values), statistics.stdev(values), len(values))

    families = {family: over(name for name in BTZSC if BTZSC[name].family == family) for family in FAMILIES}
    return Row(families, over(BTZSC), over(MTEB))
