"""`labelspace fit --labelled`: the same command, with rows that have a label."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labelspace.cli.printing import print_json, print_pairs, resuming, tell
from labelspace.config import LaConConfig, SearchConfig, TrainingConfig, UncertaintyConfig
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.header import UNFINISHED, kind_of
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.corpus import Documents
    from labelspace.encoders import Encoder
    from labelspace.training.lacon import LaConFit
    from labelspace.training.uncertainty import UncertaintyFit


METHODS = ("lacon", "uncertainty")
# Options that also apply with --labelled; the rest belong to training on descriptions alone.
_WITH_LABELLED = ("learning_rate", "weight_decay", "max_tokens_in_memory")
_OF_DESCRIPTIONS = (
    *(name for name in TrainingConfig.__dataclass_fields__ if name not in _WITH_LABELLED),
    *("pool", "anchor", "tensorboard"),
    *(f"search_{name}" for name in SearchConfig.__dataclass_fields__),
)
_OF_ROWS = (
    *("label_column", "pair_column", "epochs", "batch_size", "validation"),
    *("description_steps", "extractor", "no_cache"),
)
_NOT_OF = {
    "lacon": ("extractor", "no_cache"),
    "uncertainty": ("description_steps", "max_tokens_in_memory", "pair_column"),
    "zero-shot": (
        *(name for name in (*_OF_DESCRIPTIONS, *_WITH_LABELLED) if name not in ("anchor", "temperature")),
        *("checkpoint", "resume"),
    ),
}
_INSTEAD_OF_STEPS = {
    "lacon": "--epochs for the rows, --description-steps for the descriptions",
    "uncertainty": "--epochs",
}


def check_options(context: typer.Context, *, labelled: bool) -> str:
    """Refuse options that would do nothing with the method; return the method."""
    method = str(context.params["method"])
    if labelled and not _given(context, "method"):
        method = METHODS[0]
    if labelled and method not in METHODS:
        raise ConfigError(f"--method must be lacon or uncertainty with --labelled. Got {method!r} instead.")
    if not labelled and method in METHODS:
        raise ConfigError(f"--method {method} needs --labelled FILE.")
    for name in _OF_DESCRIPTIONS if labelled else _OF_ROWS:
        if _given(context, name):
            cure = f"use {_INSTEAD_OF_STEPS[method]}" if name == "max_steps" else "leave one of them out"
            goes = f"does not go with --labelled; {cure}" if labelled else "needs --labelled FILE"
            raise ConfigError(f"{_flag(name)} {goes}.")
    for name in _NOT_OF.get(method, ()):
        if _given(context, name):
            goes = f"does not go with --method {method}; leave one of them out"
            raise ConfigError(f"{_flag(name)} {'needs --method uncertainty' if method == 'lacon' else goes}.")
    return method


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def config_of_rows(method: str, learning_rate: str, options: dict[str, Any]) -> LaConConfig | UncertaintyConfig:
    """Return the configuration of a method of labelled rows; what is None, or none of its fields, is left out."""
    made = UncertaintyConfig if method == "uncertainty" else LaConConfig
    fields = made.__dataclass_fields__
    given = {name: value for name, value in options.items() if value is not None and name in fields}
    return made(learning_rate=_rate(learning_rate), **given)


def _rate(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"--learning-rate must be a number or auto with --labelled. Got {text!r}.") from error


def labelled_rows(
    source: str, text: str, pair: str | None, label: str, names: Sequence[str], *, method: str, **dialect: Any
) -> "tuple[Documents, list[Any]]":
    """Read labelled rows: documents, and the label of each."""
    from labelspace.corpus import Documents, open_table

    table = open_table(source, text=text, pair=pair, label=label, **dialect)
    if not table.check_labels(names)[1]:
        options = "--labelled and --method" if method == "uncertainty" else "--labelled"
        raise InputError(
            f"{source}: no row has a label in column {label!r}; leave {options} out, and the descriptions are enough."
        )
    documents: list[Any] = []
    labels: list[Any] = []
    for batch in table.batches():
        documents += table.documents(batch).rows
        labels += batch.column(label).to_pylist()
    return Documents(documents, table.kind), labels


def learn(
    method: str,
    space: LabelSpace,
    encoder: "Encoder",
    rows: "tuple[Documents, list[Any]]",
    parameters: dict[str, Any],
    out: Path,
    *,
    as_json: bool,
) -> int:
    """Train on labelled rows, save, and say what was done."""
    from labelspace.classify import LaConClassifier, UncertaintyClassifier

    made: Any = UncertaintyClassifier if method == "uncertainty" else LaConClassifier
    model = made(space, encoder, **parameters)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "training was interrupted", LabelSpaceWarning)
            model.fit(*rows)
    except KeyboardInterrupt:
        tell("interrupted before there was an epoch worth keeping; nothing was written.")
        tell_of(parameters["checkpoint"])
        raise typer.Exit(130) from None
    result = model.fit_result_
    interrupted = result.curve is not None and result.curve.stop_reason == "interrupted"
    saved = model.set_params(verbose=False).save(out)
    if as_json:
        print_json({"model": str(saved), "method": method, "fit": result.to_dict()})
    else:
        told = _told_of_uncertainty(result) if method == "uncertainty" else _told_of_lacon(result)
        print_pairs([("labelled", _rows(result)), *told, ("saved", str(out))])
    if interrupted:
        # LaCon's rows held out choose an epoch, those of a head none.
        kept = "best" if method != "uncertainty" and result.held_out else "last"
        tell(f"interrupted: {out} holds the {kept} whole epoch, and can be used as it is.")
        tell_of(parameters["checkpoint"])
        return 130
    return 0


def tell_of(checkpoint: Path | None) -> bool:
    """Say how to go on from a checkpoint, and return whether there is one."""
    if checkpoint is None or kind_of(checkpoint) != UNFINISHED:
        return False
    tell(f"to go on from {checkpoint}: {resuming()}")
    return True


def _rows(result: "LaConFit | UncertaintyFit") -> str:
    left = f", {result.held_out} of them held out" if result.held_out else ""
    rows = "row" if result.unlabelled == 1 else "rows"
    without = f"; {result.unlabelled} {rows} without a label" if result.unlabelled else ""
    return f"{result.labelled}{left}{without}"


def _told_of_lacon(result: "LaConFit") -> list[tuple[str, str]]:
    curve, prior = result.curve, result.prior
    assert curve is not None
    assert prior is not None
    pairs = [
        ("descriptions", f"weigh {prior.weight:.2f} ({prior.reason})"),
        ("learning rates", f"encoder {curve.learning_rate:.2g}, head {curve.head_learning_rate:.2g}"),
        ("steps", f"{curve.steps}; {curve.stop_reason}; weights of step {curve.best_step}"),
    ]
    if curve.losses:
        pairs.append(("loss", f"{curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}, in {curve.seconds:.1f} s"))
    return pairs


def _told_of_uncertainty(result: "UncertaintyFit") -> list[tuple[str, str]]:
    curve, calibration = result.curve, result.calibration
    pairs = [
        ("learning rate", f"{curve.learning_rate:.2g}"),
        ("steps", f"{curve.steps} in {len(curve.looks)} epochs"),
        ("loss", f"{curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}, in {curve.seconds:.1f} s"),
    ]
    if calibration is not None:
        errors = f"calibration error {calibration.ece_before:.3f} -> {calibration.ece_after:.3f}"
        rows = f"on {calibration.documents} rows, those that the temperature was fitted on"
        pairs.append(("held out", f"accuracy {result.held_out_accuracy:.3f}, {errors}; {rows}"))
        pairs.append(("temperature", f"{calibration.temperature:.3f}"))
    return pairs
