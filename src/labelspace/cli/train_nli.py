"""`labelspace train-nli`: from pairs of premise and hypothesis to a cross-encoder."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.options import AsJson, Device, Dtype, EncoderName, Offline, Quiet, TrustRemoteCode
from labelspace.cli.printing import busy, hush, note, print_json, print_pairs, resuming, tell
from labelspace.config import EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import InputError, OutputError
from labelspace.progress import progress_bar

if TYPE_CHECKING:
    from labelspace.training import Training
    from labelspace.training.nli import NLIConfig, NLIModel, Pairs

_TRAINING = "Training"
_STOPS = {
    "epochs": "all updates made",
    "patience": "the dev loss fell no more",
    "max_seconds": "--max-seconds reached",
    "interrupted": "interrupted",
}


def _training(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel=_TRAINING)


# The defaults are those of NLIConfig, written out because its folder brings torch; a test compares them.
def train_nli_command(
    out: Annotated[Path, typer.Argument(metavar="OUT", help="Folder for the model; holds checkpoints on the way.")],
    data: Annotated[Path, typer.Option(help="Folder with train.parquet and dev.parquet.")],
    encoder: EncoderName = DEFAULT_ENCODER,
    variant: Annotated[
        str, typer.Option(metavar="binary|triplet", help="One logit, or entailment, neutral and contradiction.")
    ] = "binary",
    resume: Annotated[bool, typer.Option("--resume", help="Go on from the checkpoint in OUT, same options.")] = False,
    leave_out: Annotated[
        str | None, typer.Option(help="Sources of train and dev to leave out, with commas between.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    dtype: Dtype = EncodingConfig.dtype,
    device: Device = EncodingConfig.device,
    max_tokens: Annotated[
        int | None, typer.Option(help="Tokens of a pair that are read; 256 or the encoder's limit.")
    ] = None,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    max_pairs: Annotated[int | None, _training("At most so many pairs, drawn by the seed; all.")] = None,
    epochs: Annotated[int, _training("Times each pair is seen.")] = 3,
    batch_size: Annotated[int, _training("Pairs of one update.")] = 32,
    max_steps: Annotated[int | None, _training("At most so many updates; the schedule covers these.")] = None,
    max_seconds: Annotated[
        float | None, _training("Stop at the first evaluation after so long; --resume goes on.")
    ] = None,
    learning_rate: Annotated[float | None, _training("Highest of the backbone; 2e-5, or 8e-6 for a large one.")] = None,
    head_learning_rate: Annotated[
        float | None, _training("Highest of the head; 1e-4, or 4e-5 for a large backbone.")
    ] = None,
    warmup: Annotated[float, _training("Share of the updates with rising rates.")] = 0.1,
    weight_decay: Annotated[float, _training("Of AdamW.")] = 0.01,
    dropout: Annotated[float, _training("Of the head.")] = 0.1,
    evaluate_every: Annotated[float, _training("Share of all updates between two evaluations.")] = 0.01,
    patience: Annotated[int, _training("Evaluations without improvement before it stops.")] = 10,
    dev_per_class: Annotated[int, _training("Dev pairs of each class and source.")] = 60,
    window: Annotated[int, _training("Batches within which pairs are sorted by length.")] = 50,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Train a cross-encoder on natural language inference, to score texts against labels by entailment.

    DATA has the columns premise, hypothesis, label (0 entailment, 1 neutral, 2 contradiction) and source. Ctrl-C keeps
    the best state so far; --resume goes on as if nothing had happened.
    """
    hush(quiet)
    _check_out(out, resume)
    files = [data / "train.parquet", data / "dev.parquet"]
    for file in files:
        if not file.is_file():
            raise InputError(f"there is no file {file}; --data must name a folder with train.parquet and dev.parquet.")
    from labelspace.training.nli.config import NLIConfig

    config = NLIConfig(
        variant=variant,
        max_tokens=max_tokens,
        leave_out=_names(leave_out),
        max_pairs=max_pairs,
        epochs=epochs,
        batch_size=batch_size,
        max_steps=max_steps,
        max_seconds=max_seconds,
        learning_rate=learning_rate,
        head_learning_rate=head_learning_rate,
        warmup=warmup,
        weight_decay=weight_decay,
        dropout=dropout,
        evaluate_every=evaluate_every,
        patience=patience,
        dev_per_class=dev_per_class,
        window=window,
        seed=seed,
        dtype=dtype,
        device=device,
    )
    with busy(f"reading {data}", quiet=quiet):
        train, dev = _read(files, config)
    _check_resume(out, resume)
    opened = _open(encoder, config, trust_remote_code=trust_remote_code, offline=offline, quiet=quiet)
    run = _train(opened, train, dev, config, out, resume=resume, quiet=quiet)
    if not run.best_step:
        tell("interrupted before the first evaluation; nothing was written.")
        return 130
    saved, scores = _save(opened, train, dev, config, run, out)
    if as_json:
        print_json({"model": str(saved), "run": run.to_dict(), "dev": scores})
    else:
        print_pairs([*_summary(run, scores), ("saved", str(saved))])
    if not run.finished:
        tell(f"{_STOPS[run.stop_reason]}: {out} holds the best state so far, and can be used as it is.")
        tell(f"to go on from it: {resuming()}")
    return 130 if run.stop_reason == "interrupted" else 0


def _check_out(out: Path, resume: bool) -> None:
    """Refuse, before any work, a place where the model could not be saved."""
    unfinished = (out / "checkpoint" / "state.json").is_file()
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file; a model is saved as a folder, give another name.")
    if resume and not unfinished:
        raise OutputError(f"{out} holds no unfinished training to go on with; leave --resume out, or name its folder.")
    if unfinished and not resume:
        raise OutputError(f"{out} holds an unfinished training; go on with --resume, or give another name.")
    if not unfinished and out.is_dir() and any(path for path in out.iterdir() if not _left_by_killed(path)):
        raise OutputError(f"{out} is not empty; give another name, so that nothing is lost.")
    nearest = next(parent for parent in (out.absolute(), *out.absolute().parents) if parent.exists())
    try:
        tempfile.TemporaryDirectory(prefix=f".{out.name}.", dir=nearest).cleanup()
    except OSError as error:
        raise OutputError(f"{out} cannot be written ({error.strerror}); give another place.") from error


def _left_by_killed(path: Path) -> bool:
    return path.name.startswith(".checkpoint.") and path.suffix == ".tmp"


def _check_resume(out: Path, resume: bool) -> None:
    if resume:
        from labelspace.training.checkpoint import read_state

        read_state(out / "checkpoint")


def _names(text: str | None) -> tuple[str, ...]:
    return () if text is None else tuple(name.strip() for name in text.split(",") if name.strip())


def _read(files: list[Path], config: "NLIConfig") -> tuple["Pairs", "Pairs"]:
    from labelspace.training.nli.data import balanced_dev, check_sources, read_pairs, smallest_class, sources_of

    check_sources(config.leave_out, {source for file in files for source in sources_of(file)})
    train = read_pairs(files[0], leave_out=config.leave_out, limit=config.max_pairs, seed=config.seed)
    every = read_pairs(files[1], leave_out=config.leave_out)
    dev = balanced_dev(every, per_class=config.dev_per_class, seed=config.seed)
    sources = dev.counts()
    size = len(dev) // (3 * len(sources))
    note(f"train: {len(train):,} pairs of {len(train.counts())} sources")
    note(f"dev: {len(dev):,} pairs, {size} of each class from {', '.join(sources)}")
    if size < config.dev_per_class:
        chosen = every.take([row for row, source in enumerate(every.sources) if source in sources])
        source, name, count = smallest_class(chosen)
        note(f"dev: {source} has {count} pairs of class {name} and no more, so every class has {size}")
    return train, dev


def _open(encoder: str, config: "NLIConfig", *, trust_remote_code: bool, offline: bool, quiet: bool) -> "NLIModel":
    from labelspace.encoders.resolve import check_remote_code, resolve

    check_remote_code(encoder, trust_remote_code)
    resolve(encoder, offline=offline or None)
    with busy(f"opening {encoder}", quiet=quiet):
        from labelspace.training.nli.model import NLIModel

        return NLIModel.from_encoder(
            encoder,
            config.variant,
            config.seed,
            max_tokens=config.max_tokens,
            dropout=config.dropout,
            dtype=config.dtype,
            device=config.device,
            trust_remote_code=trust_remote_code,
            offline=offline or None,
        )


def _train(
    model: "NLIModel", train: "Pairs", dev: "Pairs", config: "NLIConfig", out: Path, *, resume: bool, quiet: bool
) -> "Training":
    from labelspace.training.nli.objective import train_nli

    with progress_bar("training", show=not quiet) as report:
        return train_nli(model, train, dev, config, folder=out / "checkpoint", resume=resume, report=report)


def _save(
    model: "NLIModel", train: "Pairs", dev: "Pairs", config: "NLIConfig", run: "Training", out: Path
) -> tuple[Path, dict[str, Any]]:
    from labelspace.evaluate.provenance import provenance
    from labelspace.training.nli.objective import dev_scores

    scores = dev_scores(model, dev)
    data = {
        "train": train.counts(),
        "train_fingerprint": train.fingerprint(),
        "dev": dev.counts(),
        "dev_fingerprint": dev.fingerprint(),
    }
    facts = {
        "training": {"config": config.to_dict(), "run": run.to_dict()},
        "data": data,
        "dev": scores,
        "provenance": provenance(seeds=config.seed, data=data, dtype=str(model.dtype).removeprefix("torch.")),
    }
    return model.save(out, facts=facts, keep_checkpoint=not run.finished), scores


def _summary(run: "Training", scores: dict[str, Any]) -> list[tuple[str, str]]:
    steps = run.looks[-1].step
    pairs = [
        ("steps", f"{steps} of {run.total_steps}; {_STOPS[run.stop_reason]}; weights of step {run.best_step}"),
        ("rates", f"{run.learning_rate:.0e} backbone, {run.head_learning_rate:.0e} head"),
        ("time", f"{run.seconds:,.0f} s"),
    ]
    for name, each in {**scores["sources"], "dev": scores["all"]}.items():
        auroc = "-" if each["auroc"] is None else f"{each['auroc']:.3f}"
        said = f"loss {each['loss']:.4f}, accuracy {each['accuracy']:.3f}, AUROC {auroc} ({each['pairs']} pairs)"
        pairs.append((name, said))
    return pairs
