"""Tables of the benchmark from the store: means per family as in Table 2, scores per data set, published rows below.

mean      unweighted mean over data sets; with several seeds, of the mean over seeds
(std)     standard deviation over data sets, with n - 1 in the denominator, as in Table 2
sets      means of all rows, published ones too, are over the data sets that every measured row has
NLI AUROC mean over the sources shared by all rows with an AUROC
texts/s   all texts of these data sets over all seconds of scoring
peak MiB  highest peak memory of the process on one of these data sets; see `memory.PeakMemory`
"""

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from labelspace.bench.cards import BTZSC, FAMILIES, METRICS, MTEB
from labelspace.bench.published import published_models
from labelspace.bench.records import NLI_TASK
from labelspace.bench.rows import Cell, Row, measured_rows, nli_of, published_rows, shared_nli_sources
from labelspace.bench.ways import Record, ways_of
from labelspace.checks import check_choice, did_you_mean
from labelspace.errors import ConfigError, InputError
from labelspace.notebook import Report
from labelspace.text_table import text_table

BENCHMARKS = ("btzsc", "mteb", "own")
SIZES = {"btzsc": len(BTZSC), "mteb": len(MTEB)}
PEAK = "peak MiB"
WORDS = {
    "macro_f1_predicted": "macro-F1 over predicted labels too",
    "accuracy": "accuracy",
    "macro_precision_predicted": "macro precision over predicted labels too",
    "macro_recall_predicted": "macro recall over predicted labels too",
}


@final
@dataclass(frozen=True, kw_only=True)
class BenchTable(Report):
    """The rows of one benchmark. `print` it, or read its fields."""

    benchmark: str
    """`"btzsc"`, `"mteb"` or `"own"`."""

    metric: str
    """Metric of the scores."""

    rows: tuple[Row, ...]
    """Measured rows in the order of the store, then published ones."""

    sets: tuple[str, ...]
    """Data sets in the means."""

    families: Mapping[str, str]
    """Family of each data set."""

    notes: tuple[str, ...]
    """Remarks below the table."""

    @property
    def nli_sources(self) -> tuple[str, ...]:
        """NLI sources in the mean AUROC."""
        return shared_nli_sources(self.rows)

    def by_family(self) -> list[list[str]]:
        """Return the table of means as rows of cell texts, the first row being the head."""
        kinds = [kind for kind in FAMILIES if any(self.families[name] == kind for name in self.sets)]
        spread = any(row.seed_spread(self.sets) is not None for row in self.rows)
        nli = any(row.nli for row in self.rows if not row.published)
        head = ["model", "sets", *kinds, "mean"]
        head += ["over seeds"] * spread + ["accuracy"] * (self.metric != "accuracy") + ["NLI AUROC"] * nli
        peaks = any(row.peak_memory(self.sets) for row in self.rows)
        head += ["parameters", "texts/s"] + [PEAK] * peaks
        table = [head]
        for row in self.rows:
            line = [_named(row), self._count(row)]
            for kind in kinds:
                own = [name for name in self.sets if self.families[name] == kind]
                line.append(_mean_and_deviation(row.mean(own), row.deviation(own)))
            line.append(_mean_and_deviation(row.mean(self.sets), row.deviation(self.sets)))
            if spread:
                line.append(_number(row.seed_spread(self.sets), "± {:.3f}"))
            if self.metric != "accuracy":
                values = [row.accuracy[name] for name in self.sets if name in row.accuracy]
                line.append(_mean_and_deviation(*_moments(values)))
            if nli:
                line.append(_number(row.nli_auroc(self.nli_sources), "{:.3f}"))
            line += [_millions(row.parameters), _number(row.texts_per_second(self.sets), "{:,.0f}")]
            if peaks:
                line.append(_number((row.peak_memory(self.sets) or (None,))[0], "{:,.0f}"))
            table.append(line)
        return table

    def by_set(self) -> list[list[str]]:
        """Return the table of scores as rows of cell texts: rows are measured data sets, columns are models."""
        names = [name for name in self.families if any(name in row.cells for row in self.rows if not row.published)]
        table = [["data set", *(_named(row) for row in self.rows)]]
        for name in names:
            table.append([name, *(_cell(row.cells.get(name)) for row in self.rows)])
        if self.sets:
            means = (_number(row.mean(self.sets), "{:.3f}") for row in self.rows)
            table.append([f"mean of {len(self.sets)}", *means])
        return table

    def to_text(self, by: str = "family") -> str:
        """Return a plain-text table; `by` is `"family"` or `"set"`."""
        notes = (f"note: {note}" for note in self._notes(by))
        return "\n".join([self._title(), text_table(self._rows(by)), *notes])

    def to_markdown(self, by: str = "family") -> str:
        """Return a Markdown table; `by` is `"family"` or `"set"`."""
        head, *rows = self._rows(by)
        lines = [self._title(), "", _markdown_line(head), "|---" + "|---:" * (len(head) - 1) + "|"]
        lines += [_markdown_line(row) for row in rows]
        notes = [f"* {note}" for note in self._notes(by)]
        return "\n".join([*lines, *([""] * bool(notes)), *notes])

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, ready for JSON."""
        return {
            "benchmark": self.benchmark,
            "metric": self.metric,
            "sets": list(self.sets),
            "sets_in_benchmark": SIZES.get(self.benchmark),
            "nli_sources": list(self.nli_sources),
            "rows": [
                {
                    "model": row.model,
                    "family": row.family,
                    "published": row.published,
                    "parameters": row.parameters,
                    "mean": row.mean(self.sets),
                    "deviation": row.deviation(self.sets),
                    "seed_spread": row.seed_spread(self.sets),
                    "texts_per_second": row.texts_per_second(self.sets),
                    **_memory(row.peak_memory(self.sets)),
                    "nli_auroc": row.nli_auroc(self.nli_sources),
                    "by_set": {name: vars(cell) for name, cell in row.cells.items()},
                }
                for row in self.rows
            ],
            "notes": list(self.notes),
        }

    def _rows(self, by: str) -> list[list[str]]:
        check_choice("by", by, ("family", "set"))
        return self.by_family() if by == "family" else self.by_set()

    def _notes(self, by: str) -> list[str]:
        return [note for note in self.notes if by == "family" or not note.startswith(PEAK)]

    def _title(self) -> str:
        size = SIZES.get(self.benchmark)
        of = f" of {size}" if size else ""
        words = "MTEB(eng, v2)" if self.benchmark == "mteb" else self.benchmark.upper()
        if self.benchmark == "own":
            words = "own files"
        return f"{words}: {WORDS[self.metric]}, mean over {len(self.sets)}{of} data sets (standard deviation)"

    def _count(self, row: Row) -> str:
        count = sum(name in row.cells for name in self.sets)
        size = SIZES.get(self.benchmark)
        return f"{count} of {size}" if size else str(count)


def bench_tables(
    records: Sequence[Record], *, metric: str = "macro_f1_predicted", beside: Sequence[str] | str = ()
) -> list[BenchTable]:
    """Make one table for each benchmark among the records.

    Args:
        records: records of a `ResultStore`.
        metric: `"macro_f1_predicted"`, `"accuracy"`, `"macro_precision_predicted"` or `"macro_recall_predicted"`.
        beside: published models to add below the measured ones, or `"all"`.

    Returns:
        A table for each benchmark with a result, BTZSC first.

    Raises:
        ConfigError: an unknown metric or published model.
        InputError: there is no record of a data set.

    Example:
        >>> run = {"model": "embedding:x", "protocol": "full", "unverbalized": "leave_out", "limit": None, "seed": 0}
        >>> run |= {"dtype": "float32", "family": "embedding", "parameters": 22_700_000, "benchmark": "btzsc"}
        >>> run["fingerprint"] = "9f"
        >>> run |= {"task": "agnews", "task_family": "topic", "texts": 7600, "seconds": 19.0, "intervals": None}
        >>> run |= {"metrics": {**dict.fromkeys(METRICS, 0.69), "macro_f1_predicted": 0.682}}
        >>> print(bench_tables([run])[0].to_text())
        BTZSC: macro-F1 over predicted labels too, mean over 1 of 22 data sets (standard deviation)
        model           sets  topic   mean  accuracy  parameters  texts/s
        embedding:x  1 of 22  0.682  0.682     0.690       22.7M      400

    Reference:
        BTZSC, Table 2 and appendix D.
    """
    check_choice("metric", metric, METRICS)
    if not records:
        raise InputError("the store holds no result; run `labelspace bench run` first.")
    names = _published(beside)
    found = []
    for benchmark in BENCHMARKS:
        own = [record for record in records if record.get("benchmark") == benchmark]
        if own:
            nli = [record for record in records if record["task"] == NLI_TASK]
            found.append(_table(benchmark, own, nli, metric, names if benchmark != "own" else []))
    if not found:
        raise InputError("the store holds no result on a data set; run `labelspace bench run` first.")
    return found


def _table(
    benchmark: str, records: Sequence[Record], nli: Sequence[Record], metric: str, beside: Sequence[str]
) -> BenchTable:
    measured = measured_rows(records, metric, nli)
    families = {record["task"]: record["task_family"] for record in records}
    order = {name: place for place, name in enumerate([*BTZSC, *MTEB])}
    families = dict(sorted(families.items(), key=lambda item: order.get(item[0], len(order))))
    mixed = _of_several_texts(records)
    shared = [name for name in families if name not in mixed and all(name in row.cells for row in measured)]
    notes = []
    if mixed:
        notes.append(
            f"not in the means, because the models were scored on other texts or labels: {', '.join(sorted(mixed))}."
        )
    if not shared:
        shared = [name for name in families if name not in mixed] or list(families)
        notes.append("the models share no data set: each mean is over the model's own sets; do not compare the means.")
    elif len(shared) < len(families):
        left_out = ", ".join(name for name in families if name not in shared and name not in mixed)
        if left_out:
            notes.append(f"not in the means, because not every model was run on them: {left_out}.")
    if any(record["limit"] is not None for record in records):
        notes.append("some runs scored a sample of the texts (limit): numbers on all texts will differ.")
    notes += _notes_of_what_is_not_shown(records, nli)
    if beside:
        notes.append("published rows are the paper authors' numbers on the same data sets, scored on their own rows.")
    return BenchTable(
        benchmark=benchmark,
        metric=metric,
        rows=(*measured, *published_rows(beside, metric)),
        sets=tuple(shared),
        families=families,
        notes=tuple(notes),
    )


def _of_several_texts(records: Sequence[Record]) -> set[str]:
    """Return the data sets that one way of scoring saw with different texts or labels."""
    seen: dict[tuple[Any, ...], set[str]] = defaultdict(set)
    for record in records:
        key = (record["task"], *(record.get(name) for name in ("protocol", "unverbalized", "limit", "seed")))
        seen[key].add(record["fingerprint"])
    return {key[0] for key, fingerprints in seen.items() if len(fingerprints) > 1}


def _notes_of_what_is_not_shown(records: Sequence[Record], nli: Sequence[Record]) -> list[str]:
    notes = []
    if any(record.get("peak_memory_mib") and "memory_before_mib" not in record for record in records):
        notes.append(f"{PEAK} of older runs includes memory left by earlier models in the same process.")
    ways = ways_of(records)
    models = {way.model for way in ways}
    shown = {id(record) for way, own in ways.items() for record in nli_of(way, own, nli)}
    lost = dict.fromkeys(each["model"] for each in nli if each["model"] in models and id(each) not in shown)
    if lost:
        notes.append(f"an NLI AUROC with another limit, dtype, seed or weights is not shown for: {', '.join(lost)}.")
    return notes


def _memory(found: tuple[float, float | None] | None) -> dict[str, float | None]:
    peak, before = found or (None, None)
    return {"peak_memory_mib": peak, "memory_before_mib": before}


def _published(beside: Sequence[str] | str) -> list[str]:
    known = list(published_models())
    if beside == "all":
        return known
    names = [beside] if isinstance(beside, str) else list(beside)
    for name in names:
        if name not in known:
            raise ConfigError(
                f"{name!r} is not a model of the paper.{did_you_mean(name, known)} Known: {', '.join(known)}."
            )
    return names


def _moments(values: Sequence[float]) -> tuple[float | None, float | None]:
    return (statistics.fmean(values) if values else None, statistics.stdev(values) if len(values) > 1 else None)


def _named(row: Row) -> str:
    return f"{row.model} (published)" if row.published else row.model


def _mean_and_deviation(mean: float | None, deviation: float | None) -> str:
    if mean is None:
        return "-"
    return f"{mean:.3f}" if deviation is None else f"{mean:.3f} ({deviation:.2f})"


def _cell(cell: Cell | None) -> str:
    if cell is None:
        return "-"
    if cell.spread is not None:
        return f"{cell.value:.3f} ± {cell.spread:.3f}"
    return f"{cell.value:.3f}" + (f" [{cell.interval[0]:.3f}, {cell.interval[1]:.3f}]" if cell.interval else "")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else form.format(value)


def _millions(parameters: int | None) -> str:
    if parameters is None:
        return "-"
    return f"{parameters / 1e9:.2f}B" if parameters >= 1e9 else f"{parameters / 1e6:.1f}M"


def _markdown_line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
