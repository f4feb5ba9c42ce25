"""`labelspace prefinetune`: adapt an encoder to a domain with pairs of texts."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import as_seed
from labelspace.cli.options import (
    AsJson,
    Device,
    Dtype,
    EncoderName,
    LabelColumn,
    Offline,
    Overwrite,
    Quiet,
    Revision,
    TextColumn,
    TrustRemoteCode,
    open_encoder,
    still_free,
)
from labelspace.cli.pair_files import open_files, parse_files
from labelspace.cli.printing import busy, hush, note, print_json, print_pairs, resuming, tell
from labelspace.cli.settings import Set, SettingsCommand, ShowSettings, from_field, print_settings, read_settings
from labelspace.config import EncodingConfig, PrefinetuneConfig
from labelspace.config.fields import settings_of
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, InputError, OutputError, unsaid
from labelspace.folders import check_writable
from labelspace.header import ENCODER, check_place, peek
from labelspace.shell import command_line
from labelspace.text_table import some_of

if TYPE_CHECKING:
    from labelspace.corpus import Pairs, PairSource
    from labelspace.training.prefinetune import Prefinetuned


class PrefinetuneCommand(SettingsCommand):
    """The command; it knows its settings."""

    known = settings_of(PrefinetuneConfig)


def prefinetune_command(
    context: typer.Context,
    out: Annotated[Path, typer.Option(help="Folder for the encoder; checkpoints go to OUT.unfinished beside it.")],
    pairs: Annotated[
        list[str] | None,
        typer.Option(
            help="File of anchors and their positives; repeatable, each with its own columns: "
            "FILE:anchor=COLUMN,positive=COLUMN,source=COLUMN."
        ),
    ] = None,
    labelled: Annotated[
        list[str] | None,
        typer.Option(
            help="File of labelled texts, used as pairs; repeatable, each with its own columns and labels: "
            "FILE:text=COLUMN,label=COLUMN,labels=LABELFILE."
        ),
    ] = None,
    scored: Annotated[
        list[str] | None,
        typer.Option(
            help="File of pairs with a score or 0/1, used from --min-score on; repeatable, each with its own columns "
            "and limit: FILE:anchor=COLUMN,positive=COLUMN,score=COLUMN,min_score=X."
        ),
    ] = None,
    min_score: Annotated[float | None, typer.Option(help="Lowest score of a positive pair.")] = None,
    anchor_column: Annotated[
        str, typer.Option(help="Column with the anchors, or the first texts of scored pairs.")
    ] = "anchor",
    positive_column: Annotated[
        str, typer.Option(help="Column with the positives, or the second texts of scored pairs.")
    ] = "positive",
    source_column: Annotated[
        str,
        typer.Option(
            help="Column of --pairs files with the source of each row, if present; empty: one source per file."
        ),
    ] = "source",
    score_column: Annotated[str, typer.Option(help="Column with the scores.")] = "label",
    labels: Annotated[
        Path | None, typer.Option(help="Label file; pairs each labelled text with a description of its label.")
    ] = None,
    encoder: EncoderName = DEFAULT_ENCODER,
    per_source: Annotated[int | None, from_field(PrefinetuneConfig, "per_source")] = None,
    seed: Annotated[int, typer.Option(help="Random seed.")] = 0,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from OUT.unfinished, with the same options.")
    ] = False,
    overwrite: Overwrite = False,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    max_tokens: Annotated[int | None, from_field(PrefinetuneConfig, "max_tokens")] = None,
    revision: Revision = None,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    learning_rate: Annotated[float, from_field(PrefinetuneConfig, "learning_rate")] = PrefinetuneConfig.learning_rate,
    epochs: Annotated[int, from_field(PrefinetuneConfig, "epochs")] = PrefinetuneConfig.epochs,
    words: Set = None,
    show_settings: ShowSettings = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Adapt an encoder to a domain with pairs of texts from several sources, keeping its geometry intact (REZE).

    Every estimator can start from the result: labelspace fit labels.yaml --encoder OUT --out model. Ctrl-C saves the
    last sound state and never replaces a finished encoder; --resume then gives the result of an uninterrupted run.
    """
    known = settings_of(PrefinetuneConfig)
    if show_settings:
        print_settings({"prefinetune": known}, as_json=as_json)
        return 0
    hush(quiet)
    # Check everything cheap first, then open the encoder, then train.
    own = {"learning_rate": learning_rate, "epochs": epochs, "per_source": per_source, "max_tokens": max_tokens}
    config = PrefinetuneConfig(**read_settings(known, words, own, context))
    encoding, seed = EncodingConfig(dtype=dtype, device=device), as_seed(seed)
    work = Path(f"{out if out.name else out.absolute()}.unfinished")
    _check_out(out, work, encoder, resume=resume, overwrite=overwrite)
    files = [
        *parse_files("pairs", pairs),
        *parse_files("labelled", labelled),
        *parse_files("scored", scored),
    ]
    columns = {
        **{"anchor": anchor_column, "positive": positive_column, "source": source_column, "score": score_column},
        **{"text": text_column, "label": label_column, "labels": labels, "min_score": min_score},
    }
    sources = open_files(files, columns, seed=seed)
    drawn = _draw(sources, config, seed, quiet=quiet)
    if resume:
        _check_resume(work)
    opened = open_encoder(
        encoder,
        quiet=quiet,
        dtype=encoding.dtype,
        device=encoding.device,
        revision=revision,
        trust_remote_code=trust_remote_code,
        offline=offline,
    )
    if overwrite:
        shutil.rmtree(work, ignore_errors=True)
    new = not work.exists()
    try:
        done = _train(opened, drawn, config, work, seed=seed, resume=resume, quiet=quiet)
    except (ConfigError, InputError):  # the folder is useless, and would block the next run
        if new:
            shutil.rmtree(work, ignore_errors=True)
        raise
    training = done.result.training
    if not training.best_step:
        work.mkdir(parents=True, exist_ok=True)  # what --resume looks for
        tell(f"interrupted before the first checkpoint; to go on from what is in {work}: {resuming()}")
        return 130
    saved = None
    if training.finished or not _keeps(out, overwrite=overwrite):
        out = still_free(out, ENCODER, overwrite=overwrite or resume)
        saved = done.save(out)
    if training.finished:
        shutil.rmtree(work, ignore_errors=True)
    if as_json:
        print_json({"encoder": None if saved is None else str(saved), "result": done.result.to_dict()})
    else:
        print(done.result)
        if saved is not None:
            print_pairs([("saved", str(saved))])
    if not training.finished:
        if saved is None:
            tell(f"interrupted: {out} holds what it held before; update {training.best_step} lies in {work}.")
        else:
            tell(f"interrupted: {out} holds the encoder of update {training.best_step}, and can be used as it is.")
        tell(f"to go on from it: {resuming()}")
        return 130
    note(f"next: {command_line('labelspace', 'fit', 'labels.yaml', '--encoder', out, '--out', 'model')}")
    return 0


def _check_out(out: Path, work: Path, encoder: str, *, resume: bool, overwrite: bool) -> None:
    """Check, before any work, that the encoder can be saved there."""
    if resume and overwrite:
        raise ConfigError("--resume and --overwrite cannot both be asked for; choose one.")
    if Path(encoder).resolve() == out.resolve():  # --resume would start from a different encoder
        raise ConfigError(f"--encoder and --out are both {out}; give --out another name.")
    holds_encoder = check_place(out, ENCODER)
    if resume and not work.is_dir():
        raise OutputError(f"there is no {work} to go on from; leave --resume out, or name the folder of that run.")
    if work.is_dir() and any(work.iterdir()) and not (resume or overwrite):
        raise OutputError(f"{work} holds an unfinished run; go on with --resume, or start anew with --overwrite.")
    if holds_encoder and not (overwrite or resume):
        raise OutputError(f"{out} holds an encoder already; give another name, or replace it with --overwrite.")
    check_writable(out)


def _keeps(out: Path, *, overwrite: bool) -> bool:
    """Return whether a folder holds an encoder that an interrupted run must not replace."""
    if not check_place(out, ENCODER):
        return False
    training = peek(out).get("training")
    return overwrite or not isinstance(training, dict) or training.get("stop_reason") != "interrupted"


def _check_resume(work: Path) -> None:
    if (work / "checkpoint" / "state.json").is_file():
        from labelspace.training.checkpoint import read_state

        read_state(work / "checkpoint")


def _draw(sources: "list[PairSource]", config: PrefinetuneConfig, seed: int, *, quiet: bool) -> "Pairs":
    from labelspace.training.prefinetune.sources import check_pairs, gather_pairs

    with busy("reading pairs", quiet=quiet):
        drawn = gather_pairs(sources, per_source=config.per_source, seed=seed)
    check_pairs(drawn, config)
    counts = some_of([f"{name:.60} {count:,}" for name, count in drawn.counts().items()])
    note(f"{len(drawn):,} pairs of {_sources(len(drawn.sources))}: {counts}")
    return drawn


def _train(
    encoder: Any, pairs: "Pairs", config: PrefinetuneConfig, work: Path, *, seed: int, resume: bool, quiet: bool
) -> "Prefinetuned":
    from labelspace.training.prefinetune import prefinetune

    try:
        with unsaid("REZE needs three sources"):  # it was said before the encoder was opened
            return prefinetune(pairs, encoder, config, seed=seed, folder=work, resume=resume, verbose=not quiet)
    except KeyboardInterrupt:
        work.mkdir(parents=True, exist_ok=True)  # what --resume looks for
        tell(f"interrupted before training began; to go on from what is in {work}: {resuming()}")
        raise typer.Exit(130) from None


def _sources(count: int) -> str:
    return f"{count} source" if count == 1 else f"{count} sources"
