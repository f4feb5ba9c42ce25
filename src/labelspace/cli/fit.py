"""`labelspace fit`: train a classifier from a label file and save it."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_number
from labelspace.cli.methods import (
    METHODS,
    check_options,
    check_settings,
    choose_method,
    make,
    setting_option,
    settings_of_method,
)
from labelspace.cli.options import (
    AsJson,
    Delimiter,
    Device,
    Dtype,
    EncoderName,
    LongTexts,
    MaxTokens,
    MinProbability,
    Offline,
    Overwrite,
    PairColumn,
    Pooling,
    Quiet,
    Revision,
    Template,
    TextColumn,
    TextEncoding,
    Threshold,
    TrustRemoteCode,
    choices,
    label_names,
    listed_names,
    open_encoder,
    still_free,
)
from labelspace.cli.printing import hush, note, print_json, print_pairs, resuming, tell
from labelspace.cli.settings import Set, SettingsCommand, ShowSettings, is_given, print_settings, read_settings
from labelspace.config import ConsensusConfig, EncodingConfig, SearchConfig
from labelspace.config.fields import Setting
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, InputError, LabelFileError, OutputError, unsaid, warn
from labelspace.folders import check_writable
from labelspace.header import CLASSIFIER, UNFINISHED, check_place, kind_of, peek
from labelspace.labels import LabelSpace, lint
from labelspace.labels.document import SEPARATOR
from labelspace.shell import command_line

if TYPE_CHECKING:
    from labelspace.corpus import Documents

NOTHING_KEPT = "interrupted before anything was learnt that is worth keeping; nothing was written."
SELDOM = (
    *("none", "slow_documents", "prior", "long_texts", "delimiter", "encoding", "tensorboard"),
    *("pooling", "dtype", "max_tokens", "revision", "trust_remote_code", "offline"),
)
"""Options that `--help` leaves out and `--settings` lists."""


class FitCommand(SettingsCommand):
    """The command; hides rarely used options from `--help`."""

    known = dict.fromkeys(setting for method in METHODS for setting in settings_of_method(method))

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            parameter.hidden = parameter.name in SELDOM  # pyright: ignore[reportAttributeAccessIssue]


def fit_command(
    context: typer.Context,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="A label file: YAML, JSON or CSV.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    method: Annotated[
        str,
        typer.Option(
            metavar=choices(tuple(METHODS)),
            help="Train on the descriptions, or use the encoder untrained (zero-shot). With --pool, unless another is "
            "named: let several views of the documents correct one another (consensus). With --labelled: train the "
            "encoder (lacon), or only a head that measures uncertainty (uncertainty). With several: true in LABELS, "
            "--pool or --labelled sets the cut of each label (description, zero-shot).",
        ),
    ] = "description",
    pool: Annotated[
        str | None,
        typer.Option(help="Unlabelled documents: .csv, .tsv, .xlsx, .jsonl, .parquet or a glob. Not the test set."),
    ] = None,
    labelled: Annotated[
        str | None,
        typer.Option(help="Labelled rows to learn from, few or many: a file or a glob, as for --pool."),
    ] = None,
    views: Annotated[
        str,
        typer.Option(
            help="Views of a consensus beside --encoder, separated by commas: words, encoders, zero-shot:NAME, saved "
            "models; with --student also nli:NAME, reranker:NAME, llm:NAME, openai:MODEL[@URL]. --device, --dtype and "
            "--offline hold for all of them and for --student, --max-tokens for encoders; --pooling, --revision and "
            "--trust-remote-code for --encoder alone."
        ),
    ] = "words",
    student: Annotated[
        str | None,
        typer.Option(help="What learns from a consensus: words, or an encoder; left out: the views answer together."),
    ] = None,
    slow_documents: Annotated[int | None, setting_option("slow_documents", "--limit", metavar="N", panel=None)] = None,
    prior: Annotated[
        str | None,
        typer.Option(
            metavar="LABEL=SHARE,...",
            help="How often each label occurs, if that is known: spam=0.1,ham=0.9. A consensus meets these shares on "
            "the pool. A name with a comma needs quotes.",
        ),
    ] = None,
    none: Annotated[
        str | None,
        typer.Option(
            metavar="auto|SHARE",
            help="Give no label to documents that fit none, by a limit that --pool tells; or label this SHARE of the "
            "pool, as 0.95.",
        ),
    ] = None,
    text_column: TextColumn = "text",
    label_column: Annotated[
        str, typer.Option(help="Column of --labelled with the label names; an empty cell means no label.")
    ] = "label",
    pair_column: PairColumn = None,
    template: Template = None,
    encoder: EncoderName = DEFAULT_ENCODER,
    device: Device = EncodingConfig.device,
    learning_rate: Annotated[str | None, setting_option("learning_rate")] = None,
    epochs: Annotated[int | None, setting_option("epochs")] = None,
    max_steps: Annotated[int | None, setting_option("max_steps")] = None,
    words: Set = None,
    show_settings: ShowSettings = False,
    threshold: Threshold = None,
    min_probability: MinProbability = None,
    long_texts: LongTexts = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder for checkpoints, saved about 20 times per run.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from --checkpoint, with the same options.")
    ] = False,
    overwrite: Overwrite = False,
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    pooling: Pooling = None,
    dtype: Dtype = EncodingConfig.dtype,
    max_tokens: MaxTokens = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    tensorboard: Annotated[Path | None, typer.Option(help="Folder for TensorBoard's event files.")] = None,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Train a classifier from a label file and save it. Labelled documents (--labelled) are optional.

    Ctrl-C saves the best state so far and prints how to continue. After a kill, --resume continues from the folder
    given as --checkpoint, with the result of an uninterrupted run.
    """
    if show_settings:
        _print_settings(context, method, as_json=as_json)
        return 0
    hush(quiet)
    # Check everything cheap first, then open the encoder, then train.
    space, warned = _linted(labels, template)
    method = choose_method(context, labelled=labelled is not None, several=space.several)
    own: dict[str, Any] = {"learning_rate": _rate(learning_rate), "epochs": epochs, "max_steps": max_steps}
    own["slow_documents"] = slow_documents
    own |= {"threshold": threshold, "min_probability": min_probability, "long_texts": long_texts}
    check_options(context, method, own, several=space.several)
    settings = check_settings(method, read_settings(settings_of_method(method), words, own))
    compute = EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens)
    limit, expected = _limit(none, pool), _prior(prior, space)
    _check_out(out, overwrite or resume)
    _check_checkpoint(checkpoint, out, resume=resume)
    dialect = {"delimiter": delimiter, "encoding": encoding}
    rows: tuple[Any, ...] = ()
    unlabelled = None
    if pool is not None:
        from labelspace.corpus import sample_pool

        size = settings.get("search", SearchConfig()).documents
        if method == "consensus":
            size = settings.get("documents", ConsensusConfig.documents)
        if space.several:
            from labelspace.classify.several import DOCUMENTS

            size = DOCUMENTS
        unlabelled = sample_pool(pool, size=size, seed=seed, text_column=text_column, **dialect)
        rows = (unlabelled,)
    if labelled is not None:
        rows = _labelled_rows(labelled, text_column, pair_column, label_column, space, **dialect)
    opened = open_encoder(
        encoder,
        quiet=quiet,
        pooling=pooling,
        dtype=compute.dtype,
        device=compute.device,
        max_tokens=compute.max_tokens,
        revision=revision,
        trust_remote_code=trust_remote_code,
        offline=offline,
    )
    if warned:
        note(f"lint has {warned} warning{'s' if warned > 1 else ''}: {command_line('labelspace', 'lint', labels)}")
    if limit is None and "none" in peek(Path(encoder).expanduser()):
        note(f"{encoder} lends its encoder alone: its limit for 'none of these' is not taken over.")
    if METHODS[method].config is not None:
        settings |= {"seed": seed, "checkpoint": checkpoint, "verbose": not quiet}
    if method == "consensus":
        options = {**compute.to_dict(), "offline": offline or None}
        settings |= {
            "views": listed_names(views),
            "student": opened if student == encoder else student,
            "encoder_options": options,
        }
        settings["prior"] = expected
    model = make(method, space, opened, settings)
    _train(model, rows, checkpoint, tensorboard)
    if limit is not None and unlabelled is not None:
        _set_limit(model, list(unlabelled.texts), limit)
    out = still_free(out, CLASSIFIER, overwrite=overwrite or resume)
    given = [] if text_column == "text" else ["--text-column", text_column]
    given += [] if pair_column is None else ["--pair-column", pair_column]
    return _save(model, method, labels, out, checkpoint, given, as_json=as_json)


def _print_settings(context: typer.Context, method: str, *, as_json: bool) -> None:
    """Print the settings of all methods, or of the one given, and the options that --help leaves out."""
    chosen = (method,) if is_given(context, "method") else tuple(METHODS)
    tables: dict[str, Any] = {f"--method {name}": settings_of_method(name) for name in chosen}
    options = {
        each.opts[0]: Setting(each.name or "", str, each.default, getattr(each, "help", "") or "")
        for each in context.command.params
        if each.name in SELDOM
    }
    print_settings({**tables, "Options that --help leaves out": options}, as_json=as_json)


def _limit(none: str | None, pool: str | None) -> str | float | None:
    """Return how the limit for "none of these" is chosen: `"auto"`, or the share of documents to label."""
    if none is None:
        return None
    if pool is None:
        raise ConfigError("--none needs --pool FILE, unlabelled documents that tell where the limit lies.")
    if none == "auto":
        return none
    try:
        share = float(none)
    except ValueError:
        raise ConfigError(f"--none must be auto or a share such as 0.95. Got {none!r} instead.") from None
    check_number("--none", share, above=0, below=1)
    return share


def _prior(words: str | None, space: LabelSpace) -> dict[str, float] | None:
    """Return how often each label is expected, from `LABEL=SHARE,...`."""
    if words is None:
        return None
    from labelspace.consensus.prior import as_prior

    found: dict[str, float] = {}
    for pair in label_names(words):
        name, _, share = (part.strip() for part in pair.rpartition("="))
        if not name and share.isdigit():
            raise ConfigError(
                f"--prior must be LABEL=SHARE,... Got {pair!r} without a label; write shares with a point, as in 0.4."
            )
        if name in found:
            raise ConfigError(f"--prior names {name!r} twice; keep one.")
        try:
            found[name] = float(share)
        except ValueError:
            raise ConfigError(f"--prior must be LABEL=SHARE,... with numbers. Got {pair!r} instead.") from None
    as_prior(found, space)
    return found


def _set_limit(model: Any, texts: list[str], limit: str | float) -> None:
    """Set the limit; where the documents do not tell one, the model is kept without it."""
    try:
        model.set_coverage(limit, texts) if isinstance(limit, float) else model.set_none(texts)
    except InputError as error:
        warn(f"no limit for 'none of these' is set: {error}")


def _rate(word: str | None) -> float | str | None:
    try:
        return None if word is None else float(word)
    except ValueError:
        return word


def _train(model: Any, rows: tuple[Any, ...], checkpoint: Path | None, tensorboard: Path | None) -> None:
    """Fit; Ctrl-C before the first usable state ends the command."""
    from labelspace.training import TensorBoardLogger
    from labelspace.training.engine import INTERRUPTED

    with TensorBoardLogger(tensorboard) if tensorboard else nullcontext() as log:
        if log:
            model.set_params(callbacks=[log])
        try:
            with unsaid(INTERRUPTED):  # `_save` says it in the words of the command line
                model.fit(*rows)
        except KeyboardInterrupt:
            tell(NOTHING_KEPT)
            _tell_of(checkpoint)
            raise typer.Exit(130) from None


def _save(
    model: Any, method: str, labels: Path, out: Path, checkpoint: Path | None, columns: list[str], *, as_json: bool
) -> int:
    """Save the model, and print a summary and the next step."""
    result: Any = getattr(model, "fit_result_", None)
    curve: Any = getattr(result, "curve", None)
    if curve is None:  # of descriptions alone, where labelled rows told no two labels apart
        curve = getattr(getattr(result, "descriptions", None), "curve", None)
    interrupted = curve is not None and curve.stop_reason == "interrupted"
    saved, none = model.save(out), None if model.none_ is None else model.none_.to_dict()
    if as_json:
        cuts = getattr(model, "cuts_", None)
        told = {"cuts": cuts.to_dict()} if cuts is not None else {}
        fitted = result.to_dict() if result else None
        print_json({"model": str(saved), "method": method, "fit": fitted, "none": none, **told})
    else:
        did = [("training", "none: the encoder as it is")] if result is None else result.summary()
        cuts = [("cuts", str(model.cuts_))] if getattr(model, "cuts_", None) is not None else []
        limit = [("none of these", str(model.none_))] if model.none_ is not None else []
        print_pairs([*did, *cuts, *limit, ("saved", str(out))])
        if not interrupted:
            note(f"next: {command_line('labelspace', 'predict', out, 'documents.csv', 'predicted.csv', *columns)}")
    if not interrupted:
        return 0
    # Held-out rows choose the epoch in LaCon only.
    kept = "best state so far"
    if method != "description":
        kept = f"{'best' if method == 'lacon' and result is not None and result.held_out else 'last'} whole epoch"
    tell(f"interrupted: {out} holds the {kept}, and can be used as it is.")
    if not _tell_of(checkpoint) and method == "description":
        known = command_line("fit", labels, "--encoder", out)
        tell(f"to go on from it: labelspace {known} --out ANOTHER")
    return 130


def _tell_of(checkpoint: Path | None) -> bool:
    """Print how to continue from a checkpoint; return whether there is one."""
    if checkpoint is None or kind_of(checkpoint) != UNFINISHED:
        return False
    tell(f"to go on from {checkpoint}: {resuming()}")
    return True


def _labelled_rows(
    source: str, text: str, pair: str | None, label: str, space: LabelSpace, **dialect: Any
) -> "tuple[Documents, list[Any]]":
    """Read labelled rows: the documents and their labels."""
    from labelspace.corpus import Documents, open_table
    from labelspace.corpus.label_sets import check_label_sets, sets_of_column

    table = open_table(source, text_column=text, pair_column=pair, label_column=label, **dialect)
    if space.several:
        check_label_sets(table, space.names, SEPARATOR)
    elif not table.check_labels(space.names)[1]:
        raise InputError(
            f"{source}: no row has a label in column {label!r}; leave --labelled and --method out, and the "
            "descriptions are enough."
        )
    documents: list[Any] = []
    labels: list[Any] = []
    for batch in table.batches():
        documents += table.documents(batch).rows
        own = batch.column(label).to_pylist()
        labels += sets_of_column(own) if space.several else own
    return Documents(documents, table.kind), labels


def _linted(file: Path, template: str | None) -> tuple[LabelSpace, int]:
    space = LabelSpace.from_file(file, template=template)
    findings = lint(space)
    errors = [found for found in findings if found.severity == "error"]
    if errors:
        more = f" And {len(errors) - 1} more." if errors[1:] else ""
        raise LabelFileError(
            f"{file}: {errors[0].message} {errors[0].cure}{more} See: {command_line('labelspace', 'lint', file)}"
        )
    return space, sum(found.severity == "warning" for found in findings)


def _check_out(out: Path, overwrite: bool) -> None:
    """Check, before any work, that the model can be saved there."""
    if check_place(out, CLASSIFIER) and not overwrite:
        raise OutputError(f"{out} holds a model already; give another name, or replace it with --overwrite.")
    check_writable(out)


def _check_checkpoint(folder: Path | None, out: Path, *, resume: bool) -> None:
    """Check, before any work, that --checkpoint holds an unfinished training exactly if --resume is given."""
    if folder is None:
        if resume:
            raise ConfigError("--resume needs --checkpoint, the folder of the training to go on with.")
        return
    if out.resolve() in (folder.resolve(), *folder.resolve().parents):
        raise ConfigError(f"--checkpoint {folder} lies in --out, where the model will be; give it another name.")
    unfinished = kind_of(folder) == UNFINISHED
    if resume and not unfinished:
        raise OutputError(
            f"{folder} holds no unfinished training to go on with; leave --resume out, or name its folder."
        )
    if unfinished and not resume:
        raise OutputError(f"{folder} holds an unfinished training; go on with --resume, or give another name.")
