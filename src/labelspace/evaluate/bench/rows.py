"""Records of the store, and the paper's published numbers, as rows that tables and figures share."""

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from labelspace.evaluate.bench.nli import PUBLISHED_COLUMNS
from labelspace.evaluate.bench.published import NLI_SETS, published_models, published_scores

Record = Mapping[str, Any]


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

    texts_per_second: float | None
    """None for a published row: the authors give no such number."""

    nli: Mapping[str, float]
    """AUROC on NLI pairs of each source, as the paper calls them; empty where it was not asked for."""

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


def measured_rows(records: Sequence[Record], metric: str = "macro_f1", nli: Sequence[Record] = ()) -> list[Row]:
    """Return one row for each model and way of running it: protocol, limit and number format are told apart.

    Args:
        records: of one benchmark.
        metric: what the numbers are.
        nli: the records with the models' NLI AUROC.
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        groups.setdefault(_way(record), []).append(record)
    auroc = {
        record["model"]: {
            str(PUBLISHED_COLUMNS.get(source, source)): value for source, value in record["by_source"].items()
        }
        for record in nli
    }
    names = _names(list(groups))
    rows = []
    for way, own in groups.items():
        by_set: dict[str, list[Record]] = {}
        for record in own:
            by_set.setdefault(record["task"], []).append(record)
        seconds = sum(record["seconds"] for record in own)
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
                texts_per_second=sum(record["texts"] for record in own) / seconds if seconds else None,
                nli=auroc.get(way[0], {}),
            )
        )
    return rows


def shared_nli_sources(rows: Iterable[Row]) -> tuple[str, ...]:
    """Return the NLI sources that every row has whose AUROC is known, those of the paper where there are any.

    Example:
        >>> shared_nli_sources(published_rows(["all-MiniLM-L6-v2"]))[:2]
        ('anli_r1', 'anli_r2')
    """
    able = [set(row.nli) for row in rows if row.nli]
    shared = set.intersection(*able) if able else set()
    return tuple(name for name in NLI_SETS if name in shared) or tuple(sorted(shared))


def published_rows(names: Iterable[str], metric: str = "macro_f1") -> list[Row]:
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
            texts_per_second=None,
            nli=auroc.get(name, {}),
        )
        for name in names
    ]


def _way(record: Record) -> tuple[Any, ...]:
    return tuple(record[field] for field in ("model", "protocol", "unverbalized", "limit", "dtype"))


def _names(ways: Sequence[tuple[Any, ...]]) -> dict[tuple[Any, ...], str]:
    """Name each way of running a model by what differs from the usual, or from another way in the same table."""
    names = {}
    for way in ways:
        model, protocol, unverbalized, limit, dtype = way
        words = [f"{protocol} rows"] * (protocol != "full") + ["class 0"] * (unverbalized != "leave_out")
        words += [f"limit {limit}"] * (limit is not None)
        words += [dtype] * any(other[0] == model and other[4] != dtype for other in ways)
        names[way] = _short(model) + (f" [{', '.join(words)}]" if words else "")
    # Two folders of the same name must not become one row's name.
    return {way: name if list(names.values()).count(name) == 1 else f"{name} ({way[0]})" for way, name in names.items()}


def _short(spec: str) -> str:
    kind, _, name = spec.partition(":")
    return f"{kind}:{Path(name).name}" if Path(name).is_absolute() else spec


def _cell_of(runs: Sequence[Record], metric: str) -> Cell:
    values = [run["metrics"][metric] for run in runs]
    bounds = (runs[0].get("intervals") or {}).get(metric) if len(runs) == 1 else None
    return Cell(
        value=statistics.fmean(values),
        spread=statistics.stdev(values) if len(values) > 1 else None,
        interval=(bounds[0], bounds[1]) if bounds else None,
    )
