"""`labelspace bench`: run models on the 22 data sets, look at the results, draw them, hand them on."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_choice, import_optional
from labelspace.cli.options import (
    AsJson,
    Device,
    Dtype,
    LabelColumn,
    Offline,
    Quiet,
    TextColumn,
    TrustRemoteCode,
)
from labelspace.cli.printing import busy, hush, note, print_json
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, InputError

if TYPE_CHECKING:
    from labelspace.bench import RunReport

UNVERBALIZED = ("leave-out", "class-0")
DEFAULT_STORE = Path("results.jsonl")

app = typer.Typer(
    no_args_is_help=True,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Run the BTZSC benchmark: 22 data sets, models of every family, results that last.",
    epilog="First: labelspace bench tasks, then bench run, bench table and bench compare.",
)

Store = Annotated[Path, typer.Option(help="File with the results, one line each.")]
Data = Annotated[
    Path | None, typer.Option(help="Folder of the data sets; without it they are read from the hub.", metavar="DIR")
]
Metric = Annotated[
    str,
    typer.Option(
        metavar="macro_f1_predicted|accuracy|macro_precision_predicted|macro_recall_predicted", help="Which number."
    ),
]
Measured = Annotated[str, typer.Argument(metavar="MODEL", help="A model of the store, in the word that it was run by.")]
# Which of the ways that a model was run in; without them the one that says most.
ByProtocol = Annotated[str | None, typer.Option("--protocol", metavar="full|paper", help="Only of these rows.")]
ByLimit = Annotated[
    str | None, typer.Option("--limit", metavar="N|all", help="Only with this limit; all: without one.")
]
ByDtype = Annotated[str | None, typer.Option("--dtype", metavar="float32|bfloat16", help="Only in this number format.")]


@app.command("run")
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
    limit: Annotated[int | None, typer.Option(help="At most so many texts of each data set.")] = None,
    seeds: Annotated[str, typer.Option(help="With --limit: one draw of the texts for each, with commas.")] = "0",
    store: Store = DEFAULT_STORE,
    protocol: Annotated[
        str, typer.Option(metavar="full|paper", help="All rows, or those of the paper's tables.")
    ] = "full",
    unverbalized: Annotated[
        str | None,
        typer.Option(
            metavar="|".join(UNVERBALIZED),
            help="Rows whose class has no hypothesis.  \\[default: leave-out; class-0 with --protocol paper]",
        ),
    ] = None,
    bootstrap: Annotated[int, typer.Option(help="Samples for the 95 % intervals; 0: none.")] = 1000,
    file: Annotated[Path | None, typer.Option(help="A labelled file of your own as a data set; with --labels.")] = None,
    labels: Annotated[Path | None, typer.Option(help="The label file for --file.")] = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    nli: Annotated[
        Path | None, typer.Option(help="Folder of NLI pairs: also measure each model's AUROC on them.", metavar="DIR")
    ] = None,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Score models on data sets. Every finished run is kept at once; the same command goes on where it stopped."""
    hush(quiet)
    if unverbalized is not None:
        check_choice("--unverbalized", unverbalized, UNVERBALIZED)
    drawn = _seeds(seeds)
    if (file is None) != (labels is None):
        raise ConfigError("--file and --labels go together: the documents, and what the labels mean.")
    with busy("loading", quiet=quiet):
        from labelspace.bench import OwnFile, run
    asked: list[Any] = _words(tasks) if tasks is not None else [] if file is not None else ["btzsc"]
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


@app.command("tasks")
def tasks_command(data: Data = None, offline: Offline = False, as_json: AsJson = False) -> None:
    """List the data sets, and which of them are there; with --offline, which the hub's cache has."""
    from labelspace.bench import BTZSC, MTEB, find_tasks
    from labelspace.evaluate.text_table import text_table

    found = find_tasks(data, offline=offline or None)
    cards = [*BTZSC.values(), *MTEB.values()]
    if as_json:
        print_json([{**vars(card), "present": card.name in found.present} for card in cards])
        return
    rows = [["data set", "family", "labels", "rows", "licence", ""]]
    for card in cards:
        there = "present" if card.name in found.present else f"absent: {found.why[card.name]}"
        size = f"{card.rows:,}" if card.rows is not None else "-"
        rows.append([card.name, card.family, str(card.classes), size, card.license, there])
    print(text_table(rows, left=(0, 1, 4, 5)))
    place = data if data is not None else "read from the hub's cache" if offline else "read from the hub"
    print(f"\n{len(found.present)} of {len(cards)} present ({place})")


@app.command("table")
def table_command(
    store: Store = DEFAULT_STORE,
    metric: Metric = "macro_f1_predicted",
    by: Annotated[str, typer.Option(metavar="family|set", help="Means per family, or each data set.")] = "family",
    beside: Annotated[str, typer.Option(help="Published models to put below, with commas; all for all of them.")] = "",
    markdown: Annotated[bool, typer.Option("--markdown", help="Print Markdown.")] = False,
    as_json: AsJson = False,
) -> None:
    """Print what the store holds, beside the published numbers of the paper's models."""
    check_choice("--by", by, ("family", "set"))
    if markdown and as_json:
        raise ConfigError("--markdown and --json are two formats; give one of them.")
    records = _records(store)
    from labelspace.bench import bench_tables

    tables = bench_tables(records, metric=metric, beside="all" if beside == "all" else _words(beside))
    if as_json:
        print_json([table.to_dict() for table in tables])
    else:
        print("\n\n".join(table.to_markdown(by) if markdown else table.to_text(by) for table in tables))


@app.command("compare")
def compare_command(
    model: Measured,
    store: Store = DEFAULT_STORE,
    metric: Metric = "macro_f1_predicted",
    protocol: ByProtocol = None,
    limit: ByLimit = None,
    dtype: ByDtype = None,
    as_json: AsJson = False,
) -> None:
    """Say where a model of the store stands among the paper's 38, on the data sets that it was run on."""
    records = _of_model(_records(store), model, protocol, limit, dtype)
    from labelspace.bench.compare import place
    from labelspace.bench.ways import means_of

    found = place(means_of(records), metric=metric)
    if as_json:
        print_json(found.to_dict())
    else:
        print(found.to_text())


@app.command("export")
def export_command(
    model: Measured,
    out: Annotated[Path, typer.Option(help="The file to write, JSON.")],
    store: Store = DEFAULT_STORE,
    name: Annotated[str | None, typer.Option(help="Name of the model on the leaderboard; its own if left out.")] = None,
    url: Annotated[str | None, typer.Option(help="Where the model is to be had.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Write what there is, though the leaderboard takes complete results only.")
    ] = False,
    protocol: ByProtocol = None,
    limit: ByLimit = None,
    dtype: ByDtype = None,
) -> None:
    """Write a model's results in the layout of the btzsc leaderboard."""
    records = _of_model(_records(store), model, protocol, limit, dtype)
    from labelspace.bench.leaderboard import leaderboard_payload, validate
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
    problems = validate(payload)
    if problems:
        note(f"the leaderboard will not take it: {problems[0]} ({len(problems)} in all).")


@app.command("figures")
def figures_command(
    out: Annotated[Path, typer.Option(help="Folder for the figures; made if it is not there.")],
    store: Store = DEFAULT_STORE,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data sets, for the heat map of their words.", metavar="DIR")
    ] = None,
    metric: Metric = "macro_f1_predicted",
    quiet: Quiet = False,
) -> None:
    """Draw the paper's figures with the published models and those of the store, each as .png and .svg."""
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
    # Loaded when they are asked for, so that one data set is held at a time.
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
    """Return the records of one way of running a model, and say which where there are several."""
    from labelspace.bench.ways import ALL, choose_way

    if limit is not None and limit != ALL and not (limit.isascii() and limit.isdigit()):
        raise ConfigError(f"--limit must be a whole number, or {ALL} for no limit. Got {limit!r} instead.")
    number = int(limit) if limit is not None and limit != ALL else limit
    way, own, others = choose_way(records, model, protocol=protocol, limit=number, dtype=dtype)
    if others > 1:
        note(f"{way.model} was run in {others} ways; this is {way}. --protocol, --limit and --dtype choose another.")
    return own


def _words(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _seeds(text: str) -> list[int]:
    try:
        return [int(word) for word in _words(text)]
    except ValueError:
        raise ConfigError(f"--seeds must be whole numbers with commas, such as 0,1,2. Got {text!r} instead.") from None
