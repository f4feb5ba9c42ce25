"""`labelspace predict` and `labelspace explain`: label documents, and explain a label."""

import codecs
import os
import sys
from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_number
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
from labelspace.cli.printing import harmless, hush, note, print_json, tell
from labelspace.config import EncodingConfig
from labelspace.errors import ConfigError, InputError, warn
from labelspace.labels.document import SEPARATOR

if TYPE_CHECKING:
    from labelspace.corpus import Documents
    from labelspace.corpus.policy import DocumentPolicy

STDIN = "-"
PREFIX, TEXT = "predicted_", "text"
LINES_AT_ONCE = 256
_READ_BYTES = 64 * 1024
_LINE_BYTES = 64 * 1024 * 1024  # the limit for one row of a file

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
    _check_doubt(coverage, risk, most_uncertain, resume=resume)
    if coverage == 1 and (threshold is not None or min_probability is not None):
        given = "--threshold" if threshold is not None else "--min-probability"
        raise ConfigError(f"--coverage 1 takes the limits away, and {given} sets one; leave one out.")
    check_number("--workers", workers, least=1, whole=True)
    if workers > 1 and (target == STDIN or most_uncertain is not None):
        raise ConfigError("--workers needs an OUT file with all documents; leave it out here.")
    if argilla and (target != STDIN or as_json or all_scores or top is not None):
        raise ConfigError("--argilla prints records to stdout; leave OUT, --json, --all-scores and --top out.")
    if top is not None:
        check_number("--top", top, least=1, whole=True)
        if all_scores or most_uncertain is not None:
            raise ConfigError("--top cannot stand beside --all-scores or --most-uncertain; choose one.")
    if target == STDIN:
        if resume or overwrite:
            raise ConfigError("--resume and --overwrite need an OUT file.")
        if prefix != PREFIX:
            raise ConfigError("--prefix names columns of an OUT file; leave it out here.")
        if (all_scores or top is not None) and not as_json:
            raise ConfigError("--all-scores and --top on stdout need --json.")
    elif source == STDIN:
        raise ConfigError("lines of stdin go to stdout; leave OUT out, and send the output where you want it.")
    elif resume and overwrite:
        raise ConfigError("--resume and --overwrite cannot both be asked for; choose one.")
    dialect: Any = {"delimiter": delimiter, "encoding": encoding}
    if source == STDIN:
        if any(option != "auto" for option in dialect.values()):
            raise ConfigError("lines of stdin are UTF-8 texts; --delimiter and --encoding need a file.")
        if pair_column is not None or text_column != TEXT:
            option = "--text-column" if pair_column is None else "--pair-column"
            raise ConfigError(f"a line of stdin is one text; {option} needs a file.")
        blocks: Iterator[Documents] = _lines()
    else:
        from labelspace.corpus import open_table

        # Check what can be checked before torch is loaded.
        table = open_table(
            source, text_column=text_column, pair_column=pair_column, batch_rows=LINES_AT_ONCE, **dialect
        )
        if target == STDIN:  # for a file, predict_file checks this after the output path
            table.check_documents()
        blocks = (table.documents(batch) for batch in table.batches())
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
    if target == STDIN and most_uncertain is not None:
        show = not quiet and source != STDIN
        form: Any = {"all_scores": all_scores, "as_json": as_json, "argilla": argilla}
        _print_most_uncertain(opened, blocks, most_uncertain, verbose=show, **form)
        return
    if target == STDIN:
        _print_predictions(opened, blocks, all_scores=all_scores, top=top, as_json=as_json, argilla=argilla)
        return
    from labelspace.classify import predict_file

    options: Any = {"text_column": text_column, "overwrite": overwrite, "all_scores": all_scores, "verbose": not quiet}
    options |= {"prefix": prefix, "pair_column": pair_column, **dialect}
    try:
        if most_uncertain is not None:
            from labelspace.classify.tables.most_uncertain import most_uncertain_file

            done = most_uncertain_file(opened, source, target, most_uncertain, **options)
        else:
            options |= {"resume": resume, "workers": workers, "top": top}
            done = predict_file(opened, source, target, **options)
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


def explain_command(
    model: Model,
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXT...", help="One or more texts, each in quotes; two per pair for a model of pairs."),
    ],
    top: Annotated[int, typer.Option(help="Number of labels to show.")] = 3,
    nearest: Annotated[int, typer.Option(help="Number of descriptions to quote for each of the first two labels.")] = 2,
    threshold: Threshold = None,
    min_probability: MinProbability = None,
    long_texts: LongTexts = None,
    device: Device = EncodingConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    as_json: AsJson = False,
) -> None:
    """Explain the label of a text: scores, margin and the nearest descriptions."""
    check_number("--top", top, least=1, whole=True)
    check_number("--nearest", nearest, least=0, whole=True)
    opened = open_model(
        model, threshold, min_probability, device, trust_remote_code, long_texts=long_texts, to_answer=True
    )
    from labelspace.corpus import Kind

    asked: list[Any] = list(texts)
    if opened.reads_ is Kind.PAIRS:
        if len(texts) % 2:
            raise ConfigError(f"the model was fitted on pairs, so texts come in twos. Got {len(texts)} instead.")
        asked = list(zip(texts[::2], texts[1::2], strict=True))
    explanations = [opened.explain(text, top=top, nearest=nearest) for text in asked]
    if as_json:
        print_json([explanation.to_dict() for explanation in explanations])
    else:
        print(harmless("\n\n".join(str(explanation) for explanation in explanations)))


def _details(done: Any) -> str:
    details = []
    if done.resumed_at:
        whole = done.resumed_at == done.rows
        which = "all" if whole else f"{done.resumed_at:,}"
        details.append(f"{which} of them from an earlier run{'; --overwrite predicts anew' * whole}")
    if done.abstained:
        details.append(f"{done.abstained:,} without a label")
    return f" ({', '.join(details)})" if details else ""


def _record(text: Any, label: str | None, probability: float, *, several: bool) -> dict[str, Any]:
    """Return a record for Argilla: its field `text`, and a suggestion for its question `label`."""
    parts = text if isinstance(text, tuple) else (text,)
    value = label.split(SEPARATOR) if label and several else label
    suggestion = {"value": value, "score": None if several else probability, "agent": "labelspace"}
    return {
        "fields": dict(zip(("text", "text_pair"), parts, strict=False)),
        "metadata": {"probability": probability},
        "suggestions": {"label": suggestion} if label else {},
    }


def _print_predictions(
    model: Any, blocks: "Iterator[Documents]", *, all_scores: bool, top: int | None, as_json: bool, argilla: bool
) -> None:
    from labelspace.classify.long_texts import tell_cost

    for number, texts in enumerate(blocks):
        if not number:
            tell_cost(model, texts, more=len(texts) == LINES_AT_ONCE)
        answers = model.answers(texts)
        if argilla:
            for text, name, sure in zip(texts, answers.names, answers.confidence.tolist(), strict=True):
                print_json(_record(text, name, sure, several=answers.chosen is not None), indent=None)
            continue
        best = None if top is None else answers.top(min(top, len(answers.labels)))
        for row, (text, name, score) in enumerate(zip(texts, answers.names, answers.score.tolist(), strict=True)):
            parts = text if isinstance(text, tuple) else (text,)
            if as_json:
                every: dict[str, Any] = {}
                if all_scores:
                    scores = dict(zip(answers.labels, answers.scores[row].tolist(), strict=True))
                    every["scores"] = {label: scores[label] for label in model.classes_}
                if best is not None:
                    sure = answers.probabilities[row, best[row]].tolist()
                    every["top"] = [
                        {"label": answers.labels[column], "probability": probability}
                        for column, probability in zip(best[row], sure, strict=True)
                    ]
                told = dict(zip(("text", "pair"), parts, strict=False))
                print_json({"label": name, "score": score, **every, **told}, indent=None)
            else:
                print(name or "", f"{score:.4f}", *(harmless(" ".join(part.splitlines())) for part in parts), sep="\t")
        sys.stdout.flush()


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
    from labelspace.classify.decision import MeasuresDoubt, measuring

    if coverage is not None:
        if model.label_space_.several:
            raise ConfigError("--coverage is for one label a text; the cuts of several labels decide, so leave it out.")
        if coverage == 1:
            model.none_ = None
            for name in ("threshold", "min_probability"):
                if getattr(model, name, None) is not None:
                    setattr(model, name, None)
        if coverage < 1 or isinstance(model, MeasuresDoubt):
            measuring(model, "--coverage").set_coverage(coverage)
    if risk is not None:
        measuring(model, "--risk").set_risk(risk)


def _print_most_uncertain(
    model: Any,
    blocks: "Iterator[Documents]",
    top: int,
    *,
    all_scores: bool,
    as_json: bool,
    argilla: bool,
    verbose: bool,
) -> None:
    import pyarrow as pa

    from labelspace.classify.long_texts import tell_cost
    from labelspace.classify.tables.most_uncertain import most_uncertain_rows
    from labelspace.corpus.documents import Kind
    from labelspace.progress import progress_bar

    several = model.label_space_.several
    columns = ("text", "pair") if model.reads_ is Kind.PAIRS else ("text",)
    schema = pa.schema([(column, pa.string()) for column in columns])
    with progress_bar("predicting", verbose=verbose) as report:

        def rows() -> "Iterator[tuple[pa.RecordBatch, Documents]]":
            done = 0
            for texts in blocks:
                if not done:
                    tell_cost(model, texts, more=len(texts) == LINES_AT_ONCE)
                parts = zip(*texts.rows, strict=True) if len(columns) > 1 else (texts.rows,)
                yield pa.record_batch([pa.array(part, pa.string()) for part in parts], schema=schema), texts
                done += len(texts)
                report(done)

        found = most_uncertain_rows(model, rows(), schema, top, all_scores=all_scores)
    for row in found.to_pylist():
        name, parts = row["predicted_label"], [row[column] for column in columns]
        # A model that measures no uncertainty has no column of it.
        measures = [what for what in ("probability", "uncertainty") if f"predicted_{what}" in row]
        told = {what: row[f"predicted_{what}"] for what in measures}
        if argilla:
            text = tuple(parts) if len(parts) > 1 else parts[0]
            print_json(_record(text, name, told["probability"], several=several), indent=None)
        elif as_json:
            told |= {"label": name, "score": row["predicted_score"]}
            if all_scores:
                told["scores"] = {label: row[f"predicted_score:{label}"] for label in model.classes_}
            print_json({**told, **dict(zip(columns, parts, strict=True))}, indent=None)
        else:
            shown = [f"{value:.4f}" for value in told.values()]
            print(*shown, name or "", *(harmless(" ".join(part.splitlines())) for part in parts), sep="\t")


def _lines() -> "Iterator[Documents]":
    """Yield the lines of stdin as they come: single lines from a terminal, blocks from a pipe or file."""
    from labelspace.corpus.documents import Documents, Kind
    from labelspace.corpus.policy import DocumentPolicy

    if sys.stdin.isatty():
        note(f"one document a line; {'Ctrl-Z and Enter' if os.name == 'nt' else 'Ctrl-D'} ends.")
    policy = DocumentPolicy(lambda position: f"stdin: line {position + 1}")
    stdin: Any = sys.stdin.buffer
    done, pending = 0, b""
    while piece := stdin.read1(_READ_BYTES):
        *lines, pending = (pending + piece).split(b"\n")
        if len(pending) > _LINE_BYTES:
            raise InputError(f"stdin: line {done + len(lines) + 1} is longer than {_LINE_BYTES // 1024**2} MB.")
        for start in range(0, len(lines), LINES_AT_ONCE):
            block = [line.removesuffix(b"\r") for line in lines[start : start + LINES_AT_ONCE]]
            if not done:
                block[0] = block[0].removeprefix(codecs.BOM_UTF8)
            yield from _cleaned(policy, block, done)
            done += len(block)
    if not done:
        pending = pending.removeprefix(codecs.BOM_UTF8)
    if pending:
        yield Documents(policy.clean([pending], done), Kind.TEXTS)
    for message in policy.notes().values():
        warn(message)


def _cleaned(policy: "DocumentPolicy", lines: list[bytes], done: int) -> "Iterator[Documents]":
    """Yield some lines as documents, also those before a line that cannot be read."""
    from labelspace.corpus.documents import Documents, Kind

    try:
        whole = policy.clean(lines, done)
    except InputError:
        for row, line in enumerate(lines):
            yield Documents(policy.clean([line], done + row), Kind.TEXTS)
        raise
    yield Documents(whole, Kind.TEXTS)
