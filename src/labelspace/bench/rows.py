"""Records of the store, and the paper's published numbers, as rows that tables and figures share."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import final

from labelspace.bench.nli import PUBLISHED_COLUMNS
from labelspace.bench.published import NLI_SETS, published_models, published_scores
from labelspace.bench.ways import Record, Way, names_of, ways_of


@final
@dataclass(frozen=True, kw_only=True)
class Cell:
    """A row's number on one data set."""

    value: float
    """Mean over the seeds."""

    spread: float | None
    """Standard deviation over the seeds; None with one seed."""

    interval: tuple[float, float] | None
    """95 % interval over texts; None where not computed, with several seeds, or published."""


@final
@dataclass(frozen=True, kw_only=True)
class Cost:
    """What a row's runs on one data set took."""

    texts: int
    """Of all seeds."""

    seconds: float
    """Of scoring all of them."""

    peak_mib: float | None
    """The most memory that the process held in a run; None where nobody looked."""

    before_mib: float | None
    """What it held before it opened that run's model; None where nobody looked, or the model came open."""


@final
@dataclass(frozen=True, kw_only=True)
class Row:
    """A model in a table."""

    model: str
    """What it is called."""

    family: str
    """A key of `FAMILIES_OF_MODELS`."""

    published: bool
    """True for numbers of the paper's authors."""

    parameters: int | None
    """Number of weights, where known."""

    cells: Mapping[str, Cell]
    """Its number on each data set."""

    accuracy: Mapping[str, float]
    """Its accuracy on each data set."""

    cost: Mapping[str, Cost]
    """What each data set took; empty for a published row: the authors give no such number."""

    nli: Mapping[str, float]
    """AUROC on NLI pairs of each source, as the paper calls them; empty where it was not asked for in this way."""

    def texts_per_second(self, sets: Iterable[str]) -> float | None:
        """All texts of those of the data sets that it has over all seconds; None where it has none."""
        found = self._costs(sets)
        seconds = sum(cost.seconds for cost in found)
        return sum(cost.texts for cost in found) / seconds if seconds else None

    def peak_memory(self, sets: Iterable[str]) -> tuple[float, float | None] | None:
        """Most MiB that the process held on one of the data sets, and before it opened the model; None: not known."""
        found = [(cost.peak_mib, cost.before_mib) for cost in self._costs(sets) if cost.peak_mib is not None]
        return max(found, key=lambda pair: pair[0]) if found else None

    def _costs(self, sets: Iterable[str]) -> list[Cost]:
        return [self.cost[name] for name in sets if name in self.cost]

    def nli_auroc(self, sources: Iterable[str]) -> float | None:
        """Mean AUROC over sources; None where it was not asked for."""
        values = [self.nli[name] for name in sources if name in self.nli]
        return statistics.fmean(values) if values else None

    def mean(self, sets: Iterable[str]) -> float | None:
        """Mean over those of the data sets that it has; None where it has none."""
        values = [self.cells[name].value for name in sets if name in self.cells]
        return statistics.fmean(values) if values else None

    def deviation(self, sets: Iterable[str]) -> float | None:
        """Standard deviation over data sets (n - 1); None for fewer than two."""
        values = [self.cells[name].value for name in sets if name in self.cells]
        return statistics.stdev(values) if len(values) > 1 else None

    def seed_spread(self, sets: Iterable[str]) -> float | None:
        """Mean over data sets of the standard deviation over seeds; None with one seed."""
        spreads = [spread for name in sets if name in self.cells and (spread := self.cells[name].spread) is not None]
        return statistics.fmean(spreads) if spreads else None


def measured_rows(
    records: Sequence[Record], metric: str = "macro_f1_predicted", nli: Sequence[Record] = ()
) -> list[Row]:
    """Return one row for each model and way of running it: protocol, limit, number format and weights are told apart.

    Args:
        records: of one benchmark.
        metric: what the numbers are.
        nli: the records with the models' NLI AUROC; see `nli_of`.
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
    """Return those of the NLI records that were measured as a row was: same limit, number format, weights, seeds.

    Args:
        way: of the row.
        own: its records.
        nli: records with NLI AUROC, of any model. Protocol and unverbalized rows are nothing to pairs of sentences.
    """
    seeds = {record["seed"] for record in own}
    return [
        record
        for record in nli
        if (record["model"], record["limit"], record["dtype"]) == (way.model, way.limit, way.dtype)
        and record["seed"] in seeds
        and (way.revision is None or record.get("revision") in (None, way.revision))
    ]


def shared_nli_sources(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the NLI sources that every row has whose AUROC is known, those of the paper where there are any.

    Example:
        >>> shared_nli_sources(published_rows(["all-MiniLM-L6-v2"]))[:2]
        ('anli_r1', 'anli_r2')
    """
    able = [set(row.nli) for row in rows if row.nli]
    shared = set.intersection(*able) if able else set()
    return tuple(name for name in NLI_SETS if name in shared) or tuple(sorted(shared))


def published_rows(names: Iterable[str], metric: str = "macro_f1_predicted") -> list[Row]:
    """Return rows of the paper's models with the numbers that its authors publish.

    Args:
        names: as in Table 2.
        metric: what the numbers are.
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
    """Mean over the seeds of each source's AUROC, by the paper's names."""
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
    bounds = (runs[0].get("intervals") or {}).get(metric) if len(runs) == 1 else None
    return Cell(
        value=statistics.fmean(values),
        spread=statistics.stdev(values) if len(values) > 1 else None,
        interval=(bounds[0], bounds[1]) if bounds else None,
    )
