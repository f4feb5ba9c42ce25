"""`labelspace predict`: label documents."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from labelspace.checks import check_number
from labelspace.cli.lines import LINES_AT_ONCE, print_most_uncertain, print_predictions, read_lines
from labelspace.cli.options import (
    AsJson,
    Delimiter,
    Device,
    LongTexts,
    MinProbability,
    Model,
    Overwrite,
    PairColumn,
    Quiet,
    TextColumn,
    TextEncoding,
    Threshold,
    TrustRemoteCode,
    open_model,
)
from labelspace.cli.printing import hush, print_json, tell
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError

if TYPE_CHECKING:
    from labelspace.corpus import Documents

STDIN = "-"
PREFIX, TEXT = "predicted_", "text"

_DOUBT = "Uncertainty, for models that measure it"


def _doubt(help: str, metavar: str) -> Any:
    return typer.Option(help=help, metavar=metavar, rich_help_panel=_DOUBT)


def predict_command(
    model: Model,
    source: Annotated[
        str,
        typer.Argument(metavar="IN", help="A .csv, .tsv, .xlsx, .jsonl or .parquet file, a glob, an address, or -."),
    ],
    target: Annotated[
        str, typer.Argument(metavar="[OUT]", help="The file to write, format by its extension; - or none: stdout.")
    ] = STDIN,
    text_column: TextColumn = TEXT,
    pair_column: PairColumn = None,
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    prefix: Annotated[str, typer.Option(help="Prefix of the added columns.")] = PREFIX,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Overwrite = False,
    threshold: Threshold = None,
    min_probability: MinProbability = None,
    long_texts: LongTexts = None,
    workers: Annotated[
        int, typer.Option(help="Processes that answer, each with its share of the processor's threads.", metavar="N")
    ] = 1,
    all_scores: Annotated[bool, typer.Option("--all-scores", help="Add the score of every label.")] = False,
    top: Annotated[
        int | None, typer.Option(metavar="K", help="Add the K likeliest labels and their probabilities.")
    ] = None,
    coverage: Annotated[
        float | None,
        _doubt("Label only this share of the documents, the surest; 1: all, even if the model has a limit.", "SHARE"),
    ] = None,
    risk: Annotated[
        float | None,
        _doubt("Label as many documents as possible with at most this share wrong, at 95 % confidence.", "SHARE"),
    ] = None,
    most_uncertain: Annotated[
        int | None, typer.Option(metavar="N", help="Return only the N most uncertain documents, to label next.")
    ] = None,
    argilla: Annotated[
        bool, typer.Option("--argilla", help="Print records for Argilla, with the label as a suggestion.")
    ] = False,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> None:
    """Label every document of a file, or every line of stdin.

    A file gets all columns of IN and predicted_label, predicted_score, predicted_probability, and
    predicted_uncertainty if the model measures it. Stdout gets one line per document: label, score and text,
    tab-separated, or JSON with --json. With --most-uncertain these are probability, uncertainty (if measured), label
    and text. Several labels of a text are joined by |.
    """
    hush(quiet)
    to_stdout = target == STDIN
    _check_doubt(coverage, risk, most_uncertain, resume=resume)
    if coverage == 1 and (threshold is not None or min_probability is not None):
        given = "--threshold" if threshold is not None else "--min-probability"
        raise ConfigError(f"--coverage 1 takes the limits away, and {given} sets one; leave one out.")
    check_number("--workers", workers, least=1, whole=True)
    if workers > 1 and (to_stdout or most_uncertain is not None):
        raise ConfigError("--workers needs an OUT file with all documents; leave it out here.")
    if argilla and (not to_stdout or as_json or all_scores or top is not None):
        raise ConfigError("--argilla prints records to stdout; leave OUT, --json, --all-scores and --top out.")
    if top is not None:
        check_number("--top", top, least=1, whole=True)
        if all_scores or most_uncertain is not None:
            raise ConfigError("--top cannot stand beside --all-scores or --most-uncertain; choose one.")
    if to_stdout:
        _check_stdout(prefix, whole_scores=all_scores or top is not None, writes=resume or overwrite, as_json=as_json)
    elif source == STDIN:
        raise ConfigError("lines of stdin go to stdout; leave OUT out, and send the output where you want it.")
    elif resume and overwrite:
        raise ConfigError("--resume and --overwrite cannot both be asked for; choose one.")
    columns: Any = {"text_column": text_column, "pair_column": pair_column}
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    # Check what can be checked before torch is loaded. For a file, predict_file checks the rows, after the output path.
    blocks = _blocks(source, columns, dialect, check_rows=to_stdout)
    opened = open_model(
        model,
        threshold,
        min_probability,
        device,
        trust_remote_code,
        long_texts=long_texts,
        quiet=quiet,
        to_answer=workers == 1,
    )
    from labelspace.corpus.documents import Kind, check_kind

    check_kind(Kind.TEXTS if pair_column is None else Kind.PAIRS, opened.reads_)
    _set_limit(opened, coverage, risk)
    form: Any = {"all_scores": all_scores, "as_json": as_json, "argilla": argilla}
    if to_stdout and most_uncertain is not None:
        print_most_uncertain(opened, blocks, most_uncertain, verbose=not quiet and source != STDIN, **form)
    elif to_stdout:
        print_predictions(opened, blocks, top=top, **form)
    else:
        options: Any = {"overwrite": overwrite, "all_scores": all_scores, "prefix": prefix, "verbose": not quiet}
        options |= {**columns, **dialect}
        if most_uncertain is None:
            options |= {"resume": resume, "workers": workers, "top": top}
        _write(opened, source, target, most_uncertain, options, as_json=as_json)


def _check_stdout(prefix: str, *, whole_scores: bool, writes: bool, as_json: bool) -> None:
    """Check what is asked of predictions that go to stdout."""
    if writes:
        raise ConfigError("--resume and --overwrite need an OUT file.")
    if prefix != PREFIX:
        raise ConfigError("--prefix names columns of an OUT file; leave it out here.")
    if whole_scores and not as_json:
        raise ConfigError("--all-scores and --top on stdout need --json.")


def _blocks(source: str, columns: Any, dialect: Any, *, check_rows: bool) -> "Iterator[Documents]":
    """Return the documents of a file or of stdin, some at a time."""
    if source == STDIN:
        if any(option != "auto" for option in dialect.values()):
            raise ConfigError("lines of stdin are UTF-8 texts; --delimiter and --encoding need a file.")
        if columns != {"text_column": TEXT, "pair_column": None}:
            option = "--text-column" if columns["pair_column"] is None else "--pair-column"
            raise ConfigError(f"a line of stdin is one text; {option} needs a file.")
        return read_lines()
    from labelspace.corpus import open_table

    table = open_table(source, batch_rows=LINES_AT_ONCE, **columns, **dialect)
    if check_rows:
        table.check_documents()
    return (table.documents(batch) for batch in table.batches())


def _write(
    model: Any, source: str, target: str, most_uncertain: int | None, options: dict[str, Any], *, as_json: bool
) -> None:
    """Write a file of predictions, and say so."""
    from labelspace.classify import predict_file
    from labelspace.classify.tables.most_uncertain import most_uncertain_file

    try:
        if most_uncertain is None:
            done: Any = predict_file(model, source, target, **options)
        else:
            done = most_uncertain_file(model, source, target, most_uncertain, **options)
    except KeyboardInterrupt:
        from labelspace.corpus.stores import located

        place = located(target)
        parts = place.with_name(f"{place.name}.parts")
        if parts.is_dir():
            tell(f"interrupted: what was finished is safe in {parts}; go on with the same command and --resume.")
        else:
            tell("interrupted; nothing was written.")
        raise typer.Exit(130) from None
    if as_json:
        print_json({**asdict(done), "path": str(done.path)})
    else:
        whole = done.rows > 0 and done.resumed_at == done.rows
        print(f"{'kept' if whole else 'wrote'} {done.path} with {done.rows:,} rows{_details(done)}")


def _details(done: Any) -> str:
    details = []
    if done.resumed_at:
        whole = done.resumed_at == done.rows
        which = "all" if whole else f"{done.resumed_at:,}"
        details.append(f"{which} of them from an earlier run{'; --overwrite predicts anew' * whole}")
    if done.abstained:
        details.append(f"{done.abstained:,} without a label")
    return f" ({', '.join(details)})" if details else ""


def _check_doubt(coverage: float | None, risk: float | None, most_uncertain: int | None, *, resume: bool) -> None:
    if coverage is not None and risk is not None:
        raise ConfigError("--coverage and --risk set the same limit; choose one.")
    if coverage is not None:
        check_number("--coverage", coverage, above=0, most=1)
    if risk is not None:
        check_number("--risk", risk, above=0, below=1)
    if most_uncertain is not None:
        check_number("--most-uncertain", most_uncertain, least=1, whole=True)
        if resume:
            raise ConfigError("--most-uncertain reads all documents before it writes one; leave --resume out.")


def _set_limit(model: Any, coverage: float | None, risk: float | None) -> None:
    """Set the limit, from the held-out rows recorded in the model; a coverage of 1 takes all limits away."""
    from labelspace.classify.decision import MeasuresDoubt

    doubts = isinstance(cast("object", model), MeasuresDoubt)
    for option, value in (("--coverage", coverage), ("--risk", risk)):
        if value is None:
            continue
        if model.label_space_.several:
            raise ConfigError(f"{option} is for one label a text; the cuts of several labels decide, so leave it out.")
        if doubts or (option == "--coverage" and value == 1):
            continue
        limit = f"--none {value:g}" if option == "--coverage" else "--none auto"
        raise ConfigError(
            f"{option} needs a model that measures uncertainty, and MODEL is a {model.class_name}; fit one with "
            f"--labelled FILE --method uncertainty, or let unlabelled documents set a limit: fit --pool FILE {limit}"
        )
    if coverage == 1:
        model.none_ = None
        for name in ("threshold", "min_probability"):
            if getattr(model, name, None) is not None:
                setattr(model, name, None)
    if doubts and coverage is not None:
        model.set_coverage(coverage)
    if doubts and risk is not None:
        model.set_risk(risk)
