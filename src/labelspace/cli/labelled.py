"""`labelspace fit --labelled`: the same command, with rows that have a label."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from labelspace.cli.printing import print_json, print_pairs, tell
from labelspace.config import LaConConfig, SearchConfig, TrainingConfig, UncertaintyConfig
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.encoders import Encoder
    from labelspace.training.lacon import LaConFit
    from labelspace.training.uncertainty import UncertaintyFit


METHODS = ("lacon", "uncertainty")
# What --labelled leaves as it is in the Python API; the others are of training on descriptions alone.
_WITH_LABELLED = ("learning_rate", "max_steps", "weight_decay", "max_tokens_in_memory")
_OF_DESCRIPTIONS = (
    *(name for name in TrainingConfig.__dataclass_fields__ if name not in _WITH_LABELLED),
    *("pool", "anchor", "tensorboard"),
    *(f"search_{name}" for name in SearchConfig.__dataclass_fields__),
)
_OF_ROWS = ("label_column", "pair_column", "epochs", "batch_size", "validation", "extractor", "no_cache")


def check_options(context: typer.Context, *, labelled: bool) -> str:
    """Refuse options that would do nothing with `--labelled`, or without it; return the method of labelled rows."""
    method = str(context.params["method"])
    for name in _OF_DESCRIPTIONS if labelled else _OF_ROWS:
        if _given(context, name):
            goes = "does not go with --labelled; leave one of them out" if labelled else "needs --labelled FILE"
            raise ConfigError(f"--{name.replace('_', '-')} {goes}.")
    if labelled and _given(context, "method"):
        if method not in METHODS:
            raise ConfigError(f"--method must be lacon or uncertainty with --labelled. Got {method!r} instead.")
        for name in ("max_steps", "max_tokens_in_memory", "pair_column") if method == "uncertainty" else ():
            if _given(context, name):
                raise ConfigError(
                    f"--{name.replace('_', '-')} does not go with --method uncertainty; leave one of them out."
                )
    if labelled and method != "uncertainty":
        if _given(context, "no_cache"):
            raise ConfigError("--no-cache needs --method uncertainty; nothing else keeps token states.")
        if _given(context, "extractor"):
            raise ConfigError("--extractor needs --method uncertainty; nothing else has one.")
    if labelled and _given(context, "method"):
        return method
    if not labelled and method in METHODS:
        raise ConfigError(f"--method {method} needs --labelled FILE.")
    return METHODS[0]


def _given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def lacon_config(
    context: typer.Context,
    learning_rate: str,
    max_steps: int,
    epochs: int,
    batch_size: int,
    weight_decay: float,
    validation: float | None,
    max_tokens_in_memory: int,
) -> LaConConfig:
    """Options of training on labelled rows; steps are those on the descriptions, as without labels."""
    return LaConConfig(
        learning_rate=_rate(learning_rate),
        description_steps=max_steps if _given(context, "max_steps") else LaConConfig.description_steps,
        epochs=epochs,
        batch_size=batch_size,
        weight_decay=weight_decay,
        validation=LaConConfig.validation if validation is None else validation,
        max_tokens_in_memory=max_tokens_in_memory,
    )


def uncertainty_config(
    context: typer.Context,
    learning_rate: str,
    epochs: int,
    batch_size: int,
    weight_decay: float,
    validation: float | None,
    extractor: str,
) -> UncertaintyConfig:
    """Options of `--method uncertainty`; what is not given is as in the Python API."""
    given = {"epochs": epochs, "batch_size": batch_size, "weight_decay": weight_decay, "validation": validation}
    return UncertaintyConfig(
        extractor=extractor,
        learning_rate=_rate(learning_rate),
        **{name: value for name, value in given.items() if value is not None and _given(context, name)},
    )


def _rate(text: str) -> float | str:
    if text == "auto":
        return text
    try:
        return float(text)
    except ValueError as error:
        raise ConfigError(f"--learning-rate must be a number or auto with --labelled. Got {text!r}.") from error


def labelled_rows(
    source: str, text: str, pair: str | None, label: str, names: Sequence[str], *, method: str, **dialect: Any
) -> tuple[list[Any], list[Any]]:
    """Read labelled rows: documents, and the label of each."""
    from labelspace.corpus import open_table

    table = open_table(source, text=text, pair=pair, label=label, **dialect)
    if not table.check_labels(names)[1]:
        options = "--labelled and --method" if method == "uncertainty" else "--labelled"
        raise InputError(
            f"{source}: no row has a label in column {label!r}; leave {options} out, and the descriptions are enough."
        )
    documents: list[Any] = []
    labels: list[Any] = []
    for batch in table.batches():
        documents += table.documents(batch)
        labels += batch.column(label).to_pylist()
    return documents, labels


def learn(
    method: str,
    space: LabelSpace,
    encoder: "Encoder",
    rows: tuple[list[Any], list[Any]],
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
            # Whoever read the rows has warned of odd ones, and by their place in the file.
            warnings.filterwarnings("ignore", r"[\d,]+ documents? (is|are) (empty|longer)", LabelSpaceWarning)
            model.fit(*rows)
    except KeyboardInterrupt:
        tell("interrupted before there was an epoch worth keeping; nothing was written.")
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
        return 130
    return 0


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
        ("steps", f"{curve.steps} in {len(curve.epoch_seconds)} epochs"),
        ("loss", f"{curve.losses[0]:.4f} -> {curve.losses[-1]:.4f}, in {curve.seconds:.1f} s"),
    ]
    if calibration is not None:
        errors = f"calibration error {calibration.ece_before:.3f} -> {calibration.ece_after:.3f}"
        rows = f"on {calibration.documents} rows, those that the temperature was fitted on"
        pairs.append(("held out", f"accuracy {result.held_out_accuracy:.3f}, {errors}; {rows}"))
        pairs.append(("temperature", f"{calibration.temperature:.3f}"))
    return pairs
