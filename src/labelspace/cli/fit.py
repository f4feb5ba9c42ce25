"""`labelspace fit`: from a label file to a saved model."""

import tempfile
import warnings
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_choice, check_number
from labelspace.cli.labelled import METHODS as OF_ROWS
from labelspace.cli.labelled import check_options, config_of_rows, labelled_rows, learn, tell_of
from labelspace.cli.options import (
    Anchor,
    AsJson,
    Delimiter,
    Device,
    Dtype,
    EncoderName,
    MaxTokens,
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
    open_encoder,
)
from labelspace.cli.printing import hush, note, print_json, print_pairs, tell
from labelspace.config import (
    ANCHORS,
    DEFAULT_ANCHOR,
    OBJECTIVES,
    SEARCHES,
    EncodingConfig,
    LaConConfig,
    SearchConfig,
    TrainingConfig,
    UncertaintyConfig,
)
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, LabelFileError, LabelSpaceWarning, OutputError
from labelspace.header import CLASSIFIER, UNFINISHED, check_place, kind_of
from labelspace.labels import LabelSpace, lint

if TYPE_CHECKING:
    from labelspace.corpus import Pool
    from labelspace.encoders import Encoder
    from labelspace.training import FitResult

METHODS = ("description", "zero-shot", *OF_ROWS)
NOTHING_KEPT = "interrupted before anything was learnt that is worth keeping; nothing was written."
_TRAINING = "Training"
_LABELLED = "Labelled rows"
_SEARCH = "Choice of the learning rate"
_REASONS = {
    "given": "as given",
    "base": "the encoder's published one",
    "fallback": "none is published for this encoder",
    "no pool": "the encoder's published one, or 2e-5; --pool FILE chooses one on your documents",
    "uniformity": "the pool is spread most uniformly after it",
}
_STOPS = {
    "patience": "the loss fell no more",
    "max_steps": "--max-steps reached",
    "interrupted": "interrupted",
}


def _training(help: str, *names: str, **more: Any) -> Any:
    return typer.Option(*names, help=help, rich_help_panel=_TRAINING, **more)


def _labelled(help: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=_LABELLED, **more)


def _search(help: str, **more: Any) -> Any:
    return typer.Option(help=help, rich_help_panel=_SEARCH, **more)


def fit_command(
    context: typer.Context,
    labels: Annotated[Path, typer.Argument(metavar="LABELS", help="A label file: YAML, JSON or CSV.")],
    out: Annotated[Path, typer.Option(help="Folder for the model.")],
    pool: Annotated[
        str | None,
        typer.Option(help="Unlabelled documents: .csv, .tsv, .xlsx, .jsonl, .parquet or a glob. Not the test set."),
    ] = None,
    text_column: TextColumn = "text",
    delimiter: Delimiter = "auto",
    encoding: TextEncoding = "auto",
    method: Annotated[
        str,
        typer.Option(
            metavar=choices(METHODS),
            help="Train on the descriptions, or use the encoder as it is; with --labelled: train on rows (lacon), or "
            "a head alone that knows its doubts (uncertainty).",
        ),
    ] = "description",
    labelled: Annotated[
        str | None,
        _labelled("Rows that have a label, few or many: learn from them too. A file or a glob, as for --pool."),
    ] = None,
    label_column: Annotated[str, _labelled("Column with the names of the labels; empty: this row has none.")] = "label",
    pair_column: PairColumn = None,
    epochs: Annotated[
        int | None, _labelled(f"Epochs (lacon: {LaConConfig.epochs}; uncertainty: chosen from the number of rows).")
    ] = None,
    batch_size: Annotated[
        int | None,
        _labelled(f"Rows of an update (lacon: {LaConConfig.batch_size}; uncertainty: {UncertaintyConfig.batch_size})."),
    ] = None,
    description_steps: Annotated[
        int | None,
        _labelled(f"lacon: updates on the descriptions, before the rows come ({LaConConfig.description_steps})."),
    ] = None,
    validation: Annotated[
        float | None,
        _labelled("Share of the rows held out (lacon: to stop early; uncertainty: to calibrate); by their number."),
    ] = None,
    extractor: Annotated[
        str, _labelled("Uncertainty: how words become features; attention is smaller, and better for sentiment.")
    ] = UncertaintyConfig.extractor,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Uncertainty: write no token states.", rich_help_panel=_LABELLED)
    ] = False,
    overwrite: Overwrite = False,
    checkpoint: Annotated[
        Path | None, typer.Option(help="Folder to keep unfinished training in, about 20 times a run.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on from what is in --checkpoint, same options.")] = False,
    template: Template = None,
    anchor: Anchor = DEFAULT_ANCHOR,
    threshold: Threshold = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    encoder: EncoderName = DEFAULT_ENCODER,
    pooling: Pooling = None,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    max_tokens: MaxTokens = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    learning_rate: Annotated[
        str,
        _training(
            "base: the encoder's published rate, or 2e-5; uniformity: chosen on the pool; auto: either. "
            "With --labelled the rate on the rows: a number, or auto, that of the method.",
            metavar="RATE|auto|base|uniformity",
        ),
    ] = str(TrainingConfig.learning_rate),
    max_steps: Annotated[int, _training("Most updates; one is a sweep over all descriptions.")] = (
        TrainingConfig.max_steps
    ),
    objective: Annotated[
        str, _training("Which way descriptions and labels are told apart.", metavar=choices(OBJECTIVES))
    ] = TrainingConfig.objective,
    temperature: Annotated[float, _training("Divides the cosines.")] = TrainingConfig.temperature,
    warmup: Annotated[float, _training("Share of --max-steps over which the rate rises.")] = TrainingConfig.warmup,
    check_every: Annotated[int, _training("Steps between two looks at the loss.")] = TrainingConfig.check_every,
    patience: Annotated[int, _training("Looks without improvement before it stops.")] = TrainingConfig.patience,
    tolerance: Annotated[float, _training("Least fall of the loss that counts.")] = TrainingConfig.tolerance,
    dropout: Annotated[bool, _training("Train with the encoder's own dropout.", "--dropout")] = TrainingConfig.dropout,
    weight_decay: Annotated[float, _training("Of AdamW.")] = TrainingConfig.weight_decay,
    descriptions_per_label: Annotated[int | None, _training("At most so many of each label; all.")] = None,
    freeze_layers: Annotated[int, _training("So many lower layers stay as they are.")] = TrainingConfig.freeze_layers,
    lora_rank: Annotated[int | None, _training("Low-rank adapters instead of the weights; needs peft.")] = None,
    max_tokens_in_memory: Annotated[int, _training("A larger sweep is cut; the gradient stays the same.")] = (
        TrainingConfig.max_tokens_in_memory
    ),
    tensorboard: Annotated[Path | None, _training("Folder for TensorBoard's event files.")] = None,
    search_strategy: Annotated[
        str, _search("Run the best and the two below it to the end, or all.", metavar=choices(SEARCHES))
    ] = SearchConfig.strategy,
    search_rates: Annotated[str | None, _search("Candidates, with commas between; the paper's nine.")] = None,
    search_steps: Annotated[int, _search("Steps of a full trial.")] = SearchConfig.steps,
    search_documents: Annotated[int, _search("Documents of the pool that are used.")] = SearchConfig.documents,
    search_pairs: Annotated[int, _search("Pairs of them that are compared.")] = SearchConfig.pairs,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Turn a label file into a classifier and save it. No labelled document is needed; --labelled learns from some.

    Ctrl-C keeps the best state so far, saves it and says how to go on. After a kill, --resume goes on from the folder
    that was given as --checkpoint, as if nothing had happened.
    """
    hush(quiet)
    # Everything that can be refused comes first and takes no time; then the encoder, then the work.
    check_choice("--method", method, METHODS)
    check_choice("--anchor", anchor, ANCHORS)
    if threshold is not None:
        check_number("--threshold", threshold, least=-1, most=1)
    of_rows = check_options(context, labelled=labelled is not None)
    from_rows: LaConConfig | UncertaintyConfig | None = None
    if labelled is not None:
        options = {
            **{"epochs": epochs, "batch_size": batch_size, "validation": validation, "weight_decay": weight_decay},
            **{"description_steps": description_steps, "max_tokens_in_memory": max_tokens_in_memory},
            "extractor": extractor,
        }
        from_rows = config_of_rows(of_rows, learning_rate, options)
    config = TrainingConfig(
        learning_rate=_rate(learning_rate),
        max_steps=max_steps,
        objective=objective,
        temperature=temperature,
        warmup=warmup,
        check_every=check_every,
        patience=patience,
        tolerance=tolerance,
        dropout=dropout,
        weight_decay=weight_decay,
        descriptions_per_label=descriptions_per_label,
        freeze_layers=freeze_layers,
        lora_rank=lora_rank,
        max_tokens_in_memory=max_tokens_in_memory,
    )
    search = SearchConfig(
        rates=_rates(search_rates),
        strategy=search_strategy,
        steps=search_steps,
        documents=search_documents,
        pairs=search_pairs,
    )
    compute = EncodingConfig(dtype=dtype, device=device, max_tokens=max_tokens)
    space, warned = _linted(labels, template)
    _check_out(out, overwrite or resume)
    _check_checkpoint(checkpoint, out, resume=resume)
    dialect = {"delimiter": delimiter, "encoding": encoding}
    documents = _sample(pool, text_column, size=search.documents, seed=seed, **dialect)
    rows = (
        labelled_rows(labelled, text_column, pair_column, label_column, space.names, method=of_rows, **dialect)
        if labelled is not None
        else None
    )
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
        note(f"lint has {warned} warning{'s' if warned > 1 else ''}: labelspace lint {labels}")
    shown = {"anchor": anchor, "threshold": threshold}
    if from_rows is not None and rows is not None:
        given = {"threshold": threshold, "seed": seed, "verbose": not quiet, **vars(from_rows)}
        given["checkpoint"] = checkpoint
        given |= {"cache": None} if no_cache else {}
        return learn(of_rows, space, opened, rows, given, out, as_json=as_json)
    if method == "zero-shot":
        from labelspace.classify import ZeroShotClassifier

        model: Any = ZeroShotClassifier(space, opened, temperature=temperature, **shown).fit()
    else:
        given = {"search": search, "seed": seed, "verbose": not quiet, **shown, **vars(config)}
        given["checkpoint"] = checkpoint
        model = _trained(space, opened, documents, given, tensorboard)
    result: FitResult | None = getattr(model, "fit_result_", None)
    interrupted = result is not None and result.curve.stop_reason == "interrupted"
    if result is not None and interrupted and not result.curve.best_step:
        tell(NOTHING_KEPT)
        tell_of(checkpoint)
        return 130
    saved = model.save(out)
    if as_json:
        print_json({"model": str(saved), "method": method, "fit": result.to_dict() if result else None})
    else:
        print_pairs([*_summary(result), ("saved", str(out))])
        if not interrupted:
            note(f"next: labelspace predict {out} documents.csv predicted.csv")
    if interrupted:
        tell(f"interrupted: {out} holds the best state so far, and can be used as it is.")
        if not tell_of(checkpoint):
            tell(f"to go on from it: labelspace fit {labels} --encoder {out} --out ANOTHER")
        return 130
    return 0


def _trained(
    space: LabelSpace,
    encoder: "Encoder",
    documents: "Pool | None",
    parameters: dict[str, Any],
    tensorboard: Path | None,
) -> Any:
    from labelspace.classify import DescriptionClassifier
    from labelspace.training import TensorBoardLogger

    with TensorBoardLogger(tensorboard) if tensorboard else nullcontext() as log:
        model = DescriptionClassifier(space, encoder, callbacks=[log] if log else [], **parameters)
        try:
            with warnings.catch_warnings():
                # What an interrupt means for the command line is said at its end.
                warnings.filterwarnings("ignore", "training was interrupted", LabelSpaceWarning)
                model.fit(documents)
        except KeyboardInterrupt:
            tell(NOTHING_KEPT)
            tell_of(parameters["checkpoint"])
            raise typer.Exit(130) from None
    # Whether somebody was watching is no property of the model.
    return model.set_params(verbose=False, callbacks=())


def _rate(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def _rates(text: str | None) -> tuple[float, ...]:
    if text is None:
        return SearchConfig.rates
    try:
        return tuple(float(part) for part in text.split(","))
    except ValueError as error:
        raise ConfigError(f"--search-rates must be numbers with commas between. Got {text!r} instead.") from error


def _linted(file: Path, template: str | None) -> tuple[LabelSpace, int]:
    space = LabelSpace.from_file(file, template=template)
    findings = lint(space)
    errors = [found for found in findings if found.severity == "error"]
    if errors:
        more = f" And {len(errors) - 1} more." if errors[1:] else ""
        raise LabelFileError(f"{file}: {errors[0].message} {errors[0].cure}{more} See: labelspace lint {file}")
    return space, sum(found.severity == "warning" for found in findings)


def _check_out(out: Path, overwrite: bool) -> None:
    """Refuse, before any work, a place where the model could not be saved."""
    if check_place(out, CLASSIFIER) and not overwrite:
        raise OutputError(f"{out} holds a model already; give another name, or replace it with --overwrite.")
    nearest = next(parent for parent in out.absolute().parents if parent.exists())
    try:
        tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=nearest).cleanup()
    except OSError as error:
        raise OutputError(f"{out} cannot be written ({error.strerror}); give another place.") from error


def _check_checkpoint(folder: Path | None, out: Path, *, resume: bool) -> None:
    """Refuse, before any work, a place that holds a training to be gone on with, or none where it should."""
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


def _sample(source: str | None, text: str, *, size: int, seed: int, **dialect: str) -> "Pool | None":
    if source is None:
        return None
    from labelspace.corpus import sample_pool

    return sample_pool(source, size=size, seed=seed, text=text, **dialect)


def _summary(result: "FitResult | None") -> list[tuple[str, str]]:
    if result is None:
        return [("training", "none: the encoder as it is")]
    curve = result.curve
    steps = f"{curve.steps}; {_STOPS.get(curve.stop_reason, curve.stop_reason)}; weights of step {curve.best_step}"
    pairs = [
        ("learning rate", f"{result.rate.learning_rate:.0e}: {_REASONS.get(result.rate.reason, result.rate.reason)}"),
        ("steps", steps),
    ]
    if curve.losses:
        pairs.append(("loss", f"{curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}, in {curve.seconds:.1f} s"))
    if result.uniformity_before is not None and result.uniformity_after is not None:
        change = f"{result.uniformity_before:.3f} -> {result.uniformity_after:.3f}"
        pairs.append(("uniformity", f"{change} (lower is better spread) on {result.pool_documents} documents"))
    if result.pool:
        pairs.append(("pool", result.pool))
    return pairs
