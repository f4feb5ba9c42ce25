"""`labelspace bench`: run models on the 22 data sets; compare, draw and export the results."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_choice, check_number, import_optional
from labelspace.cli.options import (
    AsJson,
    Device,
    Dtype,
    LabelColumn,
    Offline,
    Quiet,
    TextColumn,
    TrustRemoteCode,
    listed_names,
)
from labelspace.cli.printing import busy, hush, note, print_json
from labelspace.cli.settings import Command
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, InputError

if TYPE_CHECKING:
    from labelspace.bench import RunReport

UNVERBALIZED = ("leave-out", "class-0")
DEFAULT_STORE = Path("results.jsonl")

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Run the BTZSC benchmark: 22 data sets, models of every family, stored results.",
    epilog="First: labelspace bench tasks, then bench run, bench table and bench compare.",
)

Store = Annotated[Path, typer.Option(help="Results file, JSON lines.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder with the data sets; without it they come from the hub.", metavar="DIR")
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="macro_f1_predicted|accuracy|macro_precision_predicted|macro_recall_predicted", help="Metric to show."
    ),
]
Measured = Annotated[str, typer.Argument(metavar="MODEL", help="A model in the store, named as in bench run.")]
# Choose among several runs of a model; without these options, `choose_way` decides.
ByProtocol = Annotated[str | None, typer.Option("--protocol", metavar="full|paper", help="Only results on these rows.")]
ByLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N|all", help="Only results with this limit; all: without a limit.")
]
ByDtype = Annotated[
    str | None, typer.Option("--dtype", metavar="float32|bfloat16", help="Only results in this number format.")
]


@app.command("run", cls=Command)
def run_command(
    models: Annotated[
        list[str],
        typer.Argument(
            metavar="MODEL...",
            help="embedding:NAME[@cls], base:NAME, nli:NAME, reranker:NAME, llm:NAME or saved:FOLDER.",
        ),
    ],
    data: Data = None,
    tasks: Annotated[
        str | None,
        typer.Option(
            help="Data sets or families, with commas; btzsc, mteb or all.  \\[default: btzsc, none with --file]"
        ),
    ] = None,
    limit: Annotated[int | None, typer.Option(help="Maximum number of texts per data set.")] = None,
    seeds: Annotated[
        str, typer.Option(help="Seeds that draw the texts for --limit, comma-separated; one run each.")
    ] = "0",
    store: Store = DEFAULT_STORE,
    protocol: Annotated[
        str, typer.Option(metavar="full|paper", help="All rows, or only those of the paper's tables.")
    ] = "full",
    unverbalized: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(UNVERBALIZED),
            help="Handling of rows without a hypothesis.  \\[default: leave-out; class-0 with --protocol paper]",
        ),
    ] = None,
    bootstrap: Annotated[
        int, typer.Option(help="Bootstrap samples for the 95 % interval of macro-F1; 0: no intervals.")
    ] = 1000,
    file: Annotated[Path | None, typer.Option(help="Your own labelled file as a data set; needs --labels.")] = None,
    labels: Annotated[Path | None, typer.Option(help="The label file for --file.")] = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    nli: Annotated[
        Path | None, typer.Option(help="Folder with NLI pairs, to also measure each model's AUROC.", metavar="DIR")
    ] = None,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score models on data sets. Each finished run is saved at once; the same command resumes an interrupted one."""
    hush(quiet)
    if unverbalized is not None:
        check_choice("--unverbalized", unverbalized, UNVERBALIZED)
    drawn = _seeds(seeds)
    if limit is not None:
        check_number("--limit", limit, least=1, whole=True)
    if (file is None) != (labels is None):
        raise ConfigError("--file and --labels go together: the documents, and what the labels mean.")
    with busy("loading", quiet=quiet):
        from labelspace.bench import OwnFile, run
    asked: list[Any] = listed_names(tasks) if tasks is not None else [] if file is not None else ["btzsc"]
    if file is not None and labels is not None:
        asked.append(OwnFile(file=file, labels=labels, text_column=text_column, label_column=label_column))
    report = run(
        models,
        asked,
        store,
        seeds=drawn,
        limit=limit,
        protocol=protocol,
        unverbalized=unverbalized and unverbalized.replace("-", "_"),
        data=data,
        bootstrap=bootstrap,
        nli=nli,
        dtype=dtype,
        device=device,
        trust_remote_code=trust_remote_code,
        offline=offline or None,
        verbose=not quiet,
    )
    for message in report.notes:
        note(message)
    if as_json:
        print_json(report.to_dict())
    else:
        _print_report(report, store)


@app.command("tasks", cls=Command)
def tasks_command(data: Data = None, offline: Offline = False, as_json: AsJson = False) -> None:
    """List the data sets and whether each is available; with --offline, whether the hub's cache has it."""
    from labelspace.bench import BTZSC, MTEB, find_tasks
    from labelspace.text_table import text_table

    found = find_tasks(data, offline=offline or None)
    cards = [*BTZSC.values(), *MTEB.values()]
    if as_json:
        print_json([{**vars(card), "present": card.name in found.present} for card in cards])
        return
    rows = [["data set", "family", "labels", "rows", "licence", ""]]
    for card in cards:
        there = "present" if card.name in found.present else f"absent: {found.why[card.name]}"
        size = f"{card.rows:,}" if card.rows is not None else "-"
        rows.append([card.name, card.family, str(card.classes), size, card.licence, there])
    print(text_table(rows, left=(0, 1, 4, 5)))
    place = data if data is not None else "read from the hub's cache" if offline else "read from the hub"
    print(f"\n{len(found.present)} of {len(cards)} present ({place})")


@app.command("table", cls=Command)
def table_command(
    store: Store = DEFAULT_STORE,
    metric: Metric = "macro_f1_predicted",
    by: Annotated[str, typer.Option(metavar="family|set", help="Rows: means per family, or each data set.")] = "family",
    beside: Annotated[str, typer.Option(help="Published models to add, comma-separated, or all.")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print the stored results beside the published numbers of the paper's models."""
    check_choice("--by", by, ("family", "set"))
    if markdown and as_json:
        raise ConfigError("--markdown and --json are two formats; give one of them.")
    records = _records(store)
    from labelspace.bench import bench_tables

    tables = bench_tables(records, metric=metric, beside="all" if beside == "all" else listed_names(beside))
    if as_json:
        print_json([table.to_dict() for table in tables])
    else:
        print("\n\n".join(table.to_markdown(by) if markdown else table.to_text(by) for table in tables))


@app.command("compare", cls=Command)
def compare_command(
    model: Measured,
    store: Store = DEFAULT_STORE,
    metric: Metric = "macro_f1_predicted",
    protocol: ByProtocol = None,
    limit: ByLimit = None,
    dtype: ByDtype = None,
    as_json: AsJson = False,
) -> None:
    """Rank a stored model among the paper's 38 models, on the data sets it was run on."""
    records = _of_model(_records(store), model, protocol, limit, dtype)
    from labelspace.bench.compare import place
    from labelspace.bench.ways import means_of

    found = place(means_of(records), metric=metric)
    if (sampled := records[0]["limit"]) is not None:
        note(f"scored on a sample of at most {sampled:,} texts of each set; on all texts the ranks will differ")
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.to_text())


@app.command("export", cls=Command)
def export_command(
    model: Measured,
    out: Annotated[Path, typer.Option(help="JSON file to write.")],
    store: Store = DEFAULT_STORE,
    name: Annotated[str | None, typer.Option(help="Name on the leaderboard; by default the model's own.")] = None,
    url: Annotated[str | None, typer.Option(help="Link to the model.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Write incomplete results too, which the leaderboard does not accept.")
    ] = False,
    protocol: ByProtocol = None,
    limit: ByLimit = None,
    dtype: ByDtype = None,
) -> None:
    """Write a model's results in the format of the btzsc leaderboard."""
    records = _of_model(_records(store), model, protocol, limit, dtype)
    from labelspace.bench.cards import BTZSC
    from labelspace.bench.leaderboard import leaderboard_payload
    from labelspace.bench.ways import means_of
    from labelspace.folders import write_atomically

    last = max(records, key=lambda record: record["provenance"]["date"] or "")
    origin = last["provenance"]
    payload = leaderboard_payload(
        means_of(records),
        name=name or last.get("name") or last["model"].partition(":")[2],
        family=last["family"],
        parameters=last.get("parameters"),
        revision=last.get("revision"),
        url=url,
        precision=last["dtype"],
        device=origin["hardware"].get("accelerator") or origin["hardware"].get("processor") or "unknown",
        limit=last["limit"],
        timestamp=origin["date"],
        commit=origin["commit"],
        partial=partial,
    )
    text = json.dumps(payload, indent=2, ensure_ascii=False, allow_nan=False)
    print(write_atomically(out, (text + "\n").encode()))
    missing = [task for task in BTZSC if task not in payload["results"]["by_dataset"]]
    if missing:
        note(f"the leaderboard will not take it: {len(missing)} data sets are missing, such as {missing[0]}.")


@app.command("figures", cls=Command)
def figures_command(
    out: Annotated[Path, typer.Option(help="Folder for the figures, created if missing.")],
    store: Store = DEFAULT_STORE,
    data: Annotated[
        Path | None, typer.Option(help="Folder with the data sets, for the heat map of their words.", metavar="DIR")
    ] = None,
    metric: Metric = "macro_f1_predicted",
    quiet: Quiet = False,
) -> None:
    """Draw the paper's figures with the published and the stored models, each as .png and .svg."""
    hush(quiet)
    import_optional("matplotlib", package="matplotlib", extra="plot", purpose="bench figures")
    records = _records(store) if store.exists() or store != DEFAULT_STORE else []
    if not records:
        note("the store holds no result: the figures show the published models only.")
    from labelspace.bench import BTZSC, bench_figures, find_tasks

    texts = None
    if data is not None:
        texts = {name: _texts(name, data) for name in find_tasks(data).present if name in BTZSC}
    with busy("drawing", quiet=quiet):
        written = bench_figures(records, out, data_sets=texts, metric=metric)
    for path in written:
        print(path)


def _texts(name: str, data: Path) -> Iterator[str]:
    # Loaded on demand, so that only one data set is in memory.
    from labelspace.bench import load_task

    yield from load_task(name, data=data).texts


def _print_report(report: "RunReport", store: Path) -> None:
    from labelspace.bench import bench_tables

    for table in bench_tables(report.records):
        print(table.to_text("set"), end="\n\n")
    for message in dict.fromkeys(f"{record['task']}: {text}" for record in report.finished for text in record["notes"]):
        note(message)
    for record in report.reused:
        note(f"{record['model']} on {record['task']} was in the store already.")
    if report.absent:
        print(f"left out, not here: {', '.join(f'{name} ({why})' for name, why in report.absent.items())}")
    print(f"{len(report.finished)} runs finished, {len(report.reused)} from before; all results are in {store}")


def _records(store: Path) -> list[dict[str, Any]]:
    if not store.is_file():
        raise InputError(f"there is no file {store}; run `labelspace bench run` first, or give another --store.")
    from labelspace.bench import ResultStore

    return ResultStore(store).records()


def _of_model(
    records: list[dict[str, Any]], model: str, protocol: str | None, limit: str | None, dtype: str | None
) -> Sequence[Mapping[str, Any]]:
    """Return the records of one way of running a model; print a note if there are several."""
    from labelspace.bench.ways import ALL, choose_way

    if limit is not None and limit != ALL and not (limit.isascii() and limit.isdigit()):
        raise ConfigError(f"--limit must be a whole number, or {ALL} for no limit. Got {limit!r} instead.")
    number = int(limit) if limit is not None and limit != ALL else limit
    way, own, others = choose_way(records, model, protocol=protocol, limit=number, dtype=dtype)
    if others > 1:
        note(f"{way.model} was run in {others} ways; this is {way}. --protocol, --limit and --dtype choose another.")
    return own


def _seeds(text: str) -> list[int]:
    try:
        return [int(word) for word in listed_names(text)]
    except ValueError:
        raise ConfigError(f"--seeds must be whole numbers with commas, such as 0,1,2. Got {text!r} instead.") from None
