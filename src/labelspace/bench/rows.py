"""Rows for tables and figures, from records of the store and from the paper's published numbers."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from labelspace.bench.nli import PUBLISHED_COLUMNS
from labelspace.bench.published import NLI_SETS, published_models, published_scores
from labelspace.bench.revision import same_revision
from labelspace.bench.ways import Record, Way, names_of, ways_of


@final
@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row's score on one data set."""

    value: float
    """Mean over the seeds."""

    spread: float | None
    """Standard deviation over the seeds; None with one seed."""

    interval: tuple[float, float] | None
    """95 % interval over texts; None if not computed, with several seeds, or for a published score."""


@final
@dataclass(frozen=True, kw_only=True)
class Cost:
    """Time and memory of a row's runs on one data set."""

    texts: int
    """Number of texts scored, summed over seeds."""

    seconds: float
    """Seconds of scoring, summed over seeds."""

    peak_mib: float | None
    """Peak memory of the process in MiB, the maximum over runs; None: not measured."""

    before_mib: float | None
    """Memory in MiB before that run's model was opened; None: not measured, or the model was passed in open."""


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """A model in a table."""

    model: str
    """Name of the model."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    published: bool
    """True for scores published by the paper's authors."""

    parameters: int | None
    """Number of parameters; None: unknown."""

    cells: Mapping[str, Cell]
    """Score on each data set."""

    accuracy: Mapping[str, float]
    """Accuracy on each data set."""

    cost: Mapping[str, Cost]
    """Time and memory on each data set; empty for a published row, as the authors give none."""

    nli: Mapping[str, float]
    """AUROC on NLI pairs by source, with the paper's names; empty: not measured in this way."""

    def texts_per_second(self, sets: Iterable[str]) -> float | None:
        """Return all texts over all seconds on those of `sets` that were run; None if none was."""
        found = self._costs(sets)
        seconds = sum(cost.seconds for cost in found)
        return sum(cost.texts for cost in found) / seconds if seconds else None

    def peak_memory(self, sets: Iterable[str]) -> tuple[float, float | None] | None:
        """Return the highest peak in MiB over `sets`, and the memory before that model was opened; None: unknown."""
        found = [(cost.peak_mib, cost.before_mib) for cost in self._costs(sets) if cost.peak_mib is not None]
        return max(found, key=lambda pair: pair[0]) if found else None

    def _costs(self, sets: Iterable[str]) -> list[Cost]:
        return [self.cost[name] for name in sets if name in self.cost]

    def nli_auroc(self, sources: Iterable[str]) -> float | None:
        """Return the mean AUROC over sources; None: not measured."""
        values = [self.nli[name] for name in sources if name in self.nli]
        return statistics.fmean(values) if values else None

    def mean(self, sets: Iterable[str]) -> float | None:
        """Return the mean over those of `sets` that were run; None if none was."""
        values = [self.cells[name].value for name in sets if name in self.cells]
        return statistics.fmean(values) if values else None

    def deviation(self, sets: Iterable[str]) -> float | None:
        """Return the standard deviation over data sets (n - 1); None for fewer than two."""
        values = [self.cells[name].value for name in sets if name in self.cells]
        return statistics.stdev(values) if len(values) > 1 else None

    def seed_spread(self, sets: Iterable[str]) -> float | None:
        """Return the mean over data sets of the standard deviation over seeds; None with one seed."""
        spreads = [spread for name in sets if name in self.cells and (spread := self.cells[name].spread) is not None]
        return statistics.fmean(spreads) if spreads else None


def measured_rows(
    records: Sequence[Record], metric: str = "macro_f1_predicted", nli: Sequence[Record] = ()
) -> list[Row]:
    """Return one row for each model and way of running it: protocol, limit, dtype and weights are kept apart.

    Args:
        records: records of one benchmark.
        metric: metric of the scores.
        nli: records with the models' NLI AUROC; see `nli_of`.
    """
    ways = ways_of(records)
    names = names_of(list(ways))
    rows = []
    for way, own in ways.items():
        by_set: dict[str, list[Record]] = {}
        for record in own:
            by_set.setdefault(record["task"], []).append(record)
        rows.append(
            Row(
                model=names[way],
                family=own[0]["family"],
                published=False,
                parameters=own[0].get("parameters"),
                cells={name: _cell_of(runs, metric) for name, runs in by_set.items()},
                accuracy={
                    name: statistics.fmean(run["metrics"]["accuracy"] for run in runs) for name, runs in by_set.items()
                },
                cost={name: _cost_of(runs) for name, runs in by_set.items()},
                nli=_auroc_of(nli_of(way, own, nli)),
            )
        )
    return rows


def nli_of(way: Way, own: Sequence[Record], nli: Sequence[Record]) -> list[Record]:
    """Return the NLI records that match a row: same model, limit, dtype, weights and seeds.

    Protocol and unverbalized rows are not compared, as they do not apply to pairs of sentences.

    Args:
        way: way of the row.
        own: records of the row.
        nli: NLI records of any model.
    """
    seeds = {record["seed"] for record in own}
    return [
        record
        for record in nli
        if (record["model"], record["limit"], record["dtype"]) == (way.model, way.limit, way.dtype)
        and record["seed"] in seeds
        and same_revision(record.get("revision"), way.revision)
    ]


def shared_nli_sources(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the NLI sources shared by all rows with an AUROC; only the paper's sources, if any are shared.

    Example:
        >>> shared_nli_sources(published_rows(["all-MiniLM-L6-v2"]))[:2]
        ('anli_r1', 'anli_r2')
    """
    able = [set(row.nli) for row in rows if row.nli]
    shared = set.intersection(*able) if able else set()
    return tuple(name for name in NLI_SETS if name in shared) or tuple(sorted(shared))


def published_rows(names: Iterable[str], metric: str = "macro_f1_predicted") -> list[Row]:
    """Return rows of the paper's models with their published scores.

    Args:
        names: model names, as in Table 2.
        metric: metric of the scores.
    """
    models = published_models()
    scores, accuracy, auroc = (published_scores(which) for which in (metric, "accuracy", "auroc"))
    return [
        Row(
            model=name,
            family=models[name].family,
            published=True,
            parameters=models[name].parameters,
            cells={task: Cell(value=value, spread=None, interval=None) for task, value in scores[name].items()},
            accuracy=accuracy[name],
            cost={},
            nli=auroc.get(name, {}),
        )
        for name in names
    ]


def _auroc_of(records: Sequence[Record]) -> dict[str, float]:
    """Return each source's AUROC, averaged over seeds, under the paper's names."""
    found: dict[str, list[float]] = {}
    for record in records:
        for source, value in record["by_source"].items():
            found.setdefault(str(PUBLISHED_COLUMNS.get(source, source)), []).append(value)
    return {source: statistics.fmean(values) for source, values in found.items()}


def _cost_of(runs: Sequence[Record]) -> Cost:
    peaks = [(run["peak_memory_mib"], run.get("memory_before_mib")) for run in runs if run.get("peak_memory_mib")]
    peak, before = max(peaks, key=lambda pair: pair[0]) if peaks else (None, None)
    return Cost(
        texts=sum(run["texts"] for run in runs),
        seconds=sum(run["seconds"] for run in runs),
        peak_mib=peak,
        before_mib=before,
    )


def _cell_of(runs: Sequence[Record], metric: str) -> Cell:
    values = [run["metrics"][metric] for run in runs]
    repeats = len({run["fingerprint"] for run in runs}) > 1  # seeds that drew the same texts are none
    bounds = None if repeats else (runs[0].get("intervals") or {}).get(metric)
    return Cell(
        value=statistics.fmean(values),
        spread=statistics.stdev(values) if repeats else None,
        interval=(bounds[0], bounds[1]) if bounds else None,
    )
