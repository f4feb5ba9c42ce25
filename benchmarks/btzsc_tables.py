"""The tables of docs/btzsc.md that come from benchmarks/results/btzsc.jsonl and btzsc_speed.jsonl; see tables.py."""

from collections.abc import Callable, Sequence
from typing import Any

from btzsc_rows import MARK, ROWS, comparable, noted, with_mark
from btzsc_rows import table as table_of_rows
from layout import NOT_YET, markdown
from store import RESULTS

from labelspace.bench import ResultStore, bench_tables
from labelspace.bench.cards import FAMILIES
from labelspace.bench.compare import benchmark_agreement, place
from labelspace.bench.models import FAMILIES_OF_MODELS
from labelspace.bench.published import NLI_SETS
from labelspace.bench.records import NLI_TASK
from labelspace.bench.tables import BenchTable
from labelspace.bench.ways import choose_way, means_of

STORE = RESULTS / "btzsc.jsonl"
SPEED = STORE.with_name("btzsc_speed.jsonl")
# The smallest published model of each family, and the best one.
BESIDE = (
    "bert-large-uncased",
    "bert-base-uncased-nli",
    "nli-roberta-base",
    "deberta-v3-large-nli-triplet",
    "ms-marco-MiniLM-L6-v2",
    "Qwen3-Reranker-8B",
    "all-MiniLM-L6-v2",
    "gte-large-en-v1.5",
    "gemma-3-270m-it",
    "Mistral-Nemo-Instruct-2407",
)
Record = dict[str, Any]


def records() -> list[Record]:
    """Return all measured records."""
    return ResultStore(STORE).records() if STORE.is_file() else []


def table_of(benchmark: str, beside: Sequence[str]) -> BenchTable | None:
    """Return the table of one benchmark; None if it has no record."""
    found = records()
    tables = bench_tables(found, beside=beside) if found else []
    return next((each for each in tables if each.benchmark == benchmark), None)


def means(benchmark: str) -> str:
    """Means of each family of data sets, published models below."""
    table = table_of(benchmark, BESIDE)
    if table is None:
        return NOT_YET
    head, *rows = table.by_family()
    # Speed and memory come from a separate run on an idle machine, in a table of their own.
    dropped = {at for at, name in enumerate(head) if name in ("sets", "texts/s", "peak MiB")}
    left, *cells = ([cell for at, cell in enumerate(row) if at not in dropped] for row in (head, *rows))
    names = ", ".join(map(with_mark, table.sets))
    return noted(markdown(left, cells) + f"\n\nMeans over {len(table.sets)} data sets: {names}.")


def speeds() -> str:
    """Texts per second of each model on the same texts, as a multiple of the slowest, and peak memory."""
    if not SPEED.is_file():
        return NOT_YET
    found = ResultStore(SPEED).records()
    tasks = list(dict.fromkeys(record["task"] for record in found))
    runs = {model: choose_way(found, model)[1] for model in dict.fromkeys(record["model"] for record in found)}
    rates = {model: {run["task"]: run["texts_per_second"] for run in own} for model, own in runs.items()}
    # Peak memory can be attributed to a model only if the memory before it is known.
    peaks = {model: max((run["peak_memory_mib"] for run in own), default=0) for model, own in runs.items()}
    told = all("memory_before_mib" in record for record in found)
    least = {task: min(own[task] for own in rates.values() if task in own) for task in tasks}
    rows = [
        [
            model,
            *(f"{own[task]:,.1f} ({own[task] / least[task]:,.0f} x)" if task in own else "-" for task in tasks),
            *[f"{peaks[model]:,.0f}"] * told,
        ]
        for model, own in sorted(rates.items(), key=lambda item: -max(item[1].values()))
    ]
    labels = {record["task"]: f"{record['task']}, {record['classes']} labels" for record in found}
    return markdown(["texts per second", *(labels[task] for task in tasks), *["peak MiB"] * told], rows)


def by_set(benchmark: str) -> str:
    """Each data set with its interval, measured models only."""
    table = table_of(benchmark, ())
    if table is None:
        return NOT_YET
    head, *rows = table.by_set()
    return noted(markdown(head, [[with_mark(name), *cells] for name, *cells in rows]))


def rows() -> str:
    """Number of rows scored in full runs of each set, and their differences from the benchmark."""
    here = {record["task"]: record["texts"] for record in records() if record["limit"] is None}
    return table_of_rows(here, ROWS) if here else NOT_YET


def places() -> str:
    """Ranks among the published models, over all measured sets and over those with comparable rows."""
    rows = []
    for model, own in by_model().items():
        found = place(own)
        of_family = {each.what: f"{each.rank}" for each in found.families}
        if found.overall is None:
            continue
        alike = {name: scores for name, scores in own.items() if comparable(name)}
        alone = place(alike).overall if alike else None
        line = [model, *(of_family.get(name, "-") for name in FAMILIES), f"{found.overall.rank} ({found.overall.sets})"]
        line += [f"{alone.rank} ({alone.sets})" if alone else "-", f"{found.mteb.rank}" if found.mteb else "-"]
        rows.append([*line, f"{found.overall.score:.3f}", f"{found.overall.median:.3f}"])
    if not rows:
        return NOT_YET
    head = ["rank of 39", *FAMILIES, "BTZSC (sets)", f"BTZSC without {MARK} (sets)", "MTEB"]
    return noted(markdown([*head, "macro-F1", "median published"], rows))


def by_model() -> dict[str, dict[str, dict[str, float]]]:
    """Scores of each model on each data set of the paper, from the way that `bench compare` chooses."""
    known = records()
    models = dict.fromkeys(record["model"] for record in known if record["task"] != NLI_TASK)
    return {model: means_of(choose_way(known, model)[1]) for model in models}


def nli() -> str:
    """AUROC on NLI pairs, source by source, beside published models."""
    own = [record for record in records() if record["task"] == NLI_TASK]
    if not own:
        return NOT_YET
    table = table_of("btzsc", BESIDE)
    rows = [
        [
            row.model + " (published)" * row.published,
            *(f"{row.nli[name]:.3f}" if name in row.nli else "-" for name in NLI_SETS),
        ]
        for row in (table.rows if table else ())
        if row.nli
    ]
    return markdown(["AUROC", *NLI_SETS], rows)


def agreement() -> str:
    """Kendall's tau between the two benchmarks, over the published models."""
    rows = [
        [FAMILIES_OF_MODELS.get(group, "all"), str(models), f"{found.tau:.2f}", f"{found.p:.2g}"]
        for group, (found, models) in benchmark_agreement().items()
    ]
    return markdown(["published models", "how many", "Kendall's tau", "p"], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "btzsc-means": lambda: means("btzsc"),
    "btzsc-sets": lambda: by_set("btzsc"),
    "mteb-means": lambda: means("mteb"),
    "mteb-sets": lambda: by_set("mteb"),
    "btzsc-rows": rows,
    "btzsc-speed": speeds,
    "btzsc-places": places,
    "btzsc-nli": nli,
    "btzsc-agreement": agreement,
}
