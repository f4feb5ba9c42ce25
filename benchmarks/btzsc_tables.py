"""The tables of docs/btzsc.md that come from benchmarks/results/btzsc.jsonl and btzsc_speed.jsonl; see tables.py."""

from collections.abc import Callable, Sequence
from typing import Any

import pandas as pd
from btzsc_rows import MARK, ROWS, comparable, noted, with_mark
from btzsc_rows import table as table_of_rows
from layout import NOT_YET, markdown, table, titled
from store import RESULTS, frame

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


def table_of(benchmark: str, beside: Sequence[str], metric: str = "macro_f1_predicted") -> BenchTable | None:
    """Return the table of one benchmark; None if it has no record."""
    found = records()
    tables = bench_tables(found, metric=metric, beside=beside) if found else []
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
    records = ResultStore(SPEED).records()
    found = pd.DataFrame(records)
    runs = pd.DataFrame([run for model in found.model.unique() for run in choose_way(records, model)[1]])
    rates = runs.pivot(index="model", columns="task", values="texts_per_second")
    slowest = (rates / rates.min()).map(" ({:,.0f} x)".format, na_action="ignore")
    cells = rates.map("{:,.1f}".format, na_action="ignore") + slowest
    columns = {task: f"{task}, {own.classes.iloc[-1]} labels" for task, own in found.groupby("task", sort=False)}
    # Peak memory can be attributed to a model only if the memory before it is known.
    if "memory_before_mib" in found and found.memory_before_mib.notna().all():
        cells["peak"] = runs.groupby("model").peak_memory_mib.max().map("{:,.0f}".format)
        columns["peak"] = "peak MiB"
    models = rates.max(axis=1).sort_values(ascending=False).index
    return table(titled(cells, dict(zip(models, models, strict=True)), columns), "texts per second")


def by_set(benchmark: str) -> str:
    """Each data set with its interval, measured models only."""
    table = table_of(benchmark, ())
    if table is None:
        return NOT_YET
    head, *rows = table.by_set()
    return noted(markdown(head, [[with_mark(name), *cells] for name, *cells in rows]))


def recall_and_precision() -> str:
    """The paper's tables 7 and 8 for the measured models: macro recall and macro precision of each data set."""
    recall, precision = (table_of("btzsc", (), f"macro_{which}_predicted") for which in ("recall", "precision"))
    if recall is None or precision is None:
        return NOT_YET
    head, *rows = recall.by_set()
    cells = [
        [with_mark(name), *(f"{_first(one)}, {_first(other)}" for one, other in zip(own, others, strict=True))]
        for (name, *own), (_, *others) in zip(rows, precision.by_set()[1:], strict=True)
    ]
    return noted(markdown(head, cells))


def _first(cell: str) -> str:
    return cell.partition(" ")[0]


def rows() -> str:
    """Number of rows scored in full runs of each set, and their differences from the benchmark."""
    here = {record["task"]: record["texts"] for record in records() if record["limit"] is None}
    tokens = frame("single", "measured", "tokens", name="btzsc_tokens").tokens
    return table_of_rows(here, ROWS, *tokens) if here and len(tokens) else NOT_YET


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
    "btzsc-recall": recall_and_precision,
    "mteb-means": lambda: means("mteb"),
    "mteb-sets": lambda: by_set("mteb"),
    "btzsc-rows": rows,
    "btzsc-speed": speeds,
    "btzsc-places": places,
    "btzsc-nli": nli,
    "btzsc-agreement": agreement,
}
