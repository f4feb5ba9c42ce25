"""`labelspace train-nli`: train a cross-encoder on pairs of premise and hypothesis."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.options import AsJson, Device, Dtype, EncoderName, Offline, Quiet, TrustRemoteCode, choices
from labelspace.cli.printing import busy, hush, note, print_json, print_pairs, resuming, tell
from labelspace.cli.settings import Set, SettingsCommand, ShowSettings, from_field, print_settings, read_settings
from labelspace.config import NLI_VARIANTS, NLIConfig
from labelspace.config.fields import settings_of
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import InputError, OutputError
from labelspace.folders import check_writable
from labelspace.progress import progress_bar

if TYPE_CHECKING:
    from labelspace.training import Training
    from labelspace.training.nli import NLIModel, Pairs

_STOPS = {
    "epochs": "all updates made",
    "max_steps": "all updates made",
    "patience": "the dev loss fell no more",
    "max_seconds": "--max-seconds reached",
    "interrupted": "interrupted",
}


class TrainNliCommand(SettingsCommand):
    """The command; it knows its settings."""

    known = settings_of(NLIConfig)


def train_nli_command(
    context: typer.Context,
    data: Annotated[Path, typer.Option(help="Folder with train.parquet and dev.parquet.")],
    out: Annotated[Path, typer.Option(help="Folder for the model, and for checkpoints during training.")],
    encoder: EncoderName = DEFAULT_ENCODER,
    variant: Annotated[str, from_field(NLIConfig, "variant", metavar=choices(NLI_VARIANTS))] = NLIConfig.variant,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue from the checkpoint in OUT, with the same options.")
    ] = False,
    seed: Annotated[int, typer.Option(help="Random seed.")] = NLIConfig.seed,
    dtype: Dtype = NLIConfig.dtype,
    device: Device = NLIConfig.device,
    trust_remote_code: TrustRemoteCode = False,
    offline: Offline = False,
    learning_rate: Annotated[float | None, from_field(NLIConfig, "learning_rate")] = None,
    epochs: Annotated[int, from_field(NLIConfig, "epochs")] = NLIConfig.epochs,
    batch_size: Annotated[int, from_field(NLIConfig, "batch_size")] = NLIConfig.batch_size,
    max_pairs: Annotated[int | None, from_field(NLIConfig, "max_pairs")] = None,
    max_steps: Annotated[int | None, from_field(NLIConfig, "max_steps")] = None,
    max_seconds: Annotated[float | None, from_field(NLIConfig, "max_seconds")] = None,
    words: Set = None,
    show_settings: ShowSettings = False,
    as_json: AsJson = False,
    quiet: Quiet = False,
) -> int:
    """Train a cross-encoder on natural language inference, to score texts against labels by entailment.

    The files in DATA have the columns premise, hypothesis, label (0 entailment, 1 neutral, 2 contradiction) and source.
    Ctrl-C saves the best state so far; --resume then gives the result of an uninterrupted run.
    """
    known = settings_of(NLIConfig)
    if show_settings:
        print_settings({"train-nli": known}, as_json=as_json)
        return 0
    hush(quiet)
    own = {
        **{"variant": variant, "seed": seed, "dtype": dtype, "device": device},
        **{"learning_rate": learning_rate, "epochs": epochs, "batch_size": batch_size, "max_pairs": max_pairs},
        **{"max_steps": max_steps, "max_seconds": max_seconds},
    }
    config = NLIConfig(**read_settings(known, words, own, context))
    _check_out(out, resume)
    files = [data / "train.parquet", data / "dev.parquet"]
    for file in files:
        if not file.is_file():
            raise InputError(f"there is no file {file}; --data must name a folder with train.parquet and dev.parquet.")
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
    """Check, before any work, that the model can be saved there."""
    unfinished = (out / "checkpoint" / "state.json").is_file()
    if out.exists() and not out.is_dir():
        raise OutputError(f"{out} is a file; a model is saved as a folder, give another name.")
    if resume and not unfinished:
        raise OutputError(f"{out} holds no unfinished training to go on with; leave --resume out, or name its folder.")
    if unfinished and not resume:
        raise OutputError(f"{out} holds an unfinished training; go on with --resume, or give another name.")
    if not unfinished and out.is_dir() and any(path for path in out.iterdir() if not _left_by_killed(path)):
        raise OutputError(f"{out} is not empty; give another name, so that nothing is lost.")
    check_writable(out / "checkpoint" if out.is_dir() else out)


def _left_by_killed(path: Path) -> bool:
    return path.name.startswith(".checkpoint.") and path.suffix == ".tmp"


def _check_resume(out: Path, resume: bool) -> None:
    if resume:
        from labelspace.training.checkpoint import read_state

        read_state(out / "checkpoint")


def _read(files: list[Path], config: NLIConfig) -> tuple["Pairs", "Pairs"]:
    from labelspace.training.nli.data import balanced_dev, check_sources, read_pairs, smallest_class, sources_of

    if config.leave_out:
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


def _open(encoder: str, config: NLIConfig, *, trust_remote_code: bool, offline: bool, quiet: bool) -> "NLIModel":
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
    model: "NLIModel", train: "Pairs", dev: "Pairs", config: NLIConfig, out: Path, *, resume: bool, quiet: bool
) -> "Training":
    from labelspace.training.nli.objective import train_nli

    with progress_bar("training", verbose=not quiet) as report:
        return train_nli(model, train, dev, config, folder=out / "checkpoint", resume=resume, report=report)


def _save(
    model: "NLIModel", train: "Pairs", dev: "Pairs", config: NLIConfig, run: "Training", out: Path
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
