"""The methods of `labelspace fit`: the settings and the classifier of each."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from labelspace.checks import check_choice
from labelspace.cli.options import READING
from labelspace.cli.settings import Known, check_of_use, default_of, flag, is_given
from labelspace.config import (
    ConsensusConfig,
    DecisionConfig,
    LaConConfig,
    SearchConfig,
    StudentConfig,
    TrainingConfig,
    UncertaintyConfig,
)
from labelspace.config.fields import Setting, settings_of
from labelspace.errors import ConfigError

if TYPE_CHECKING:
    from labelspace.encoders import Encoder
    from labelspace.labels import LabelSpace


class Method(NamedTuple):
    """A method of `labelspace fit`."""

    estimator: str
    """Name of the classifier's class."""

    config: type | None
    """Class of its configuration; None if nothing is trained."""

    decision: tuple[str, ...]
    """Other arguments of the classifier that can be set."""


_OF_COSINES = ("threshold", "labels_per_text", "long_texts")
METHODS = {
    "description": Method("DescriptionClassifier", TrainingConfig, ("anchor", *_OF_COSINES)),
    "zero-shot": Method("ZeroShotClassifier", None, ("anchor", "temperature", *_OF_COSINES)),
    "consensus": Method("ConsensusClassifier", ConsensusConfig, ()),
    "lacon": Method("LaConClassifier", LaConConfig, ("threshold", "min_probability")),
    "uncertainty": Method("UncertaintyClassifier", UncertaintyConfig, ("min_probability", "cache")),
}
OF_ROWS = ("lacon", "uncertainty")
OF_SEVERAL = ("description", "zero-shot")
TRAINED = tuple(name for name, method in METHODS.items() if method.config is not None)
# Settings of another configuration, under a prefix: the argument of the classifier that takes it, and its class.
_PARTS = {
    "description": ("search", SearchConfig),
    "consensus": ("teaching", StudentConfig),
}
# Options that are not settings, with the methods that they apply to.
_GOES_WITH = {
    "pool": ("description", "zero-shot", "consensus", "lacon"),
    "none": ("description", "zero-shot", "consensus", "lacon"),
    "views": ("consensus",),
    "student": ("consensus",),
    "prior": ("consensus",),
    "label_column": OF_ROWS,
    "pair_column": ("lacon",),
    **dict.fromkeys(("checkpoint", "resume", "tensorboard"), TRAINED),
}
_DECISION = {
    **settings_of(DecisionConfig),
    "cache": Setting(
        "cache", str | None, "auto", "Folder for token states; none: write nothing derived from the texts."
    ),
}


def settings_of_method(name: str) -> Known:
    """Return the settings that `--set` takes with a method."""
    method = METHODS[name]
    known = dict(settings_of(method.config)) if method.config is not None else {}
    known |= {one: _DECISION[one] for one in method.decision}
    if name in _PARTS:
        prefix, config = _PARTS[name]
        known |= {f"{prefix}.{field}": one for field, one in settings_of(config).items()}
    return known


def setting_option(name: str, *flags: str, metavar: str | None = None, panel: str | None = "Training") -> Any:
    """Return the option for a setting; its help lists the default of each method that has it.

    Args:
        name: the setting.
        flags: its option, if that is not the setting's name.
        metavar: what the option takes, in the help.
        panel: the part of the help.
    """
    having = {method: known[name] for method in METHODS if name in (known := settings_of_method(method))}
    defaults = {method: default_of(setting) for method, setting in having.items()}
    told = "; ".join(f"{method}: {default}" for method, default in defaults.items())
    if len(defaults) == len(TRAINED) and len(set(defaults.values())) == 1:
        told = f"default: {next(iter(defaults.values()))}"
    summary = next(iter(having.values())).summary
    return typer.Option(*flags, metavar=metavar, help=f"{summary}.  \\[{told}]", rich_help_panel=panel)


def choose_method(context: typer.Context, *, labelled: bool, several: bool) -> str:
    """Return the method: from `--method`, or lacon if there are labelled rows, or consensus if there is a pool.

    Args:
        context: the context of the command.
        labelled: whether there are labelled rows.
        several: whether a text may have several labels; a pool or labelled rows then set the cuts of the labels.

    Raises:
        ConfigError: an unknown method, one that needs labelled rows without them, or the other way round.
    """
    method = str(context.params["method"])
    check_choice("--method", method, METHODS)
    if several:
        return _of_several(context, method, labelled=labelled)
    if labelled and not is_given(context, "method"):
        return OF_ROWS[0]
    if context.params["pool"] is not None and not is_given(context, "method"):
        return "consensus"
    if labelled and method not in OF_ROWS:
        raise ConfigError(f"--method must be lacon or uncertainty with --labelled. Got {method!r} instead.")
    if not labelled and method in OF_ROWS:
        raise ConfigError(f"--method {method} needs --labelled FILE.")
    if method == "consensus" and context.params["pool"] is None:
        raise ConfigError("--method consensus needs --pool FILE, unlabelled documents like those to predict.")
    return method


def _of_several(context: typer.Context, method: str, *, labelled: bool) -> str:
    """Return the method where a text may have several labels."""
    if method not in OF_SEVERAL:
        raise ConfigError(
            f"--method {method} gives each text one label, and the label file says several: true; use "
            f"{' or '.join(OF_SEVERAL)}, or leave several out."
        )
    pool = context.params["pool"] is not None
    if pool == labelled:
        which = "both are given" if pool else "neither is given"
        raise ConfigError(
            f"the label file says several: true, so --pool (unlabelled documents) or --labelled sets the cut of each "
            f"label, and {which}; give one."
        )
    return method


def check_options(context: typer.Context, method: str, own: Mapping[str, Any], *, several: bool) -> None:
    """Check that every option given applies to the method.

    Args:
        context: the context of the command.
        method: name of the method.
        own: settings that have their own option.
        several: whether a text may have several labels.
    """
    goes_with = {**_GOES_WITH, **{name: tuple(m for m in METHODS if name in settings_of_method(m)) for name in own}}
    if several:
        goes_with |= dict.fromkeys(("pool", "label_column"), OF_SEVERAL)
        if is_given(context, "none"):
            raise ConfigError(
                "--none does nothing where the label file says several: true, because the labels' cuts already leave "
                "texts without a label; leave it out."
            )
    for name, methods in goes_with.items():
        if is_given(context, name) and method not in methods:
            implied = "" if is_given(context, "method") or method != "consensus" else ", which --pool means"
            *most, last = methods
            listed = f"{', '.join(most)} and {last}" if most else last
            raise ConfigError(f"{flag(name)} does nothing with --method {method}{implied}; it is for {listed}.")
    if method in ("lacon", "zero-shot") and is_given(context, "pool") and not several:
        if not is_given(context, "none"):
            raise ConfigError(
                f"--pool with --method {method} tells the limit of --none and does nothing else; add --none auto, or "
                "leave --pool out."
            )
        if is_given(context, "pair_column"):
            raise ConfigError("--none needs documents of one text each, and --pair-column makes pairs; leave one out.")
    if context.params["pool"] is None and context.params["labelled"] is None:
        check_of_use(context, READING, "--pool or --labelled")


def check_settings(method: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Check the settings of a method before anything is opened; return them for `make`.

    Raises:
        ConfigError: a value is invalid.
    """
    decision = settings_of(DecisionConfig)
    DecisionConfig(**{name: value for name, value in settings.items() if name in decision})
    part = {name.partition(".")[2]: value for name, value in settings.items() if "." in name}
    own = {name: value for name, value in settings.items() if "." not in name}
    config = METHODS[method].config
    if config is not None:
        config(**{name: value for name, value in own.items() if name not in METHODS[method].decision})
    if part:
        prefix, made = _PARTS[method]
        own[prefix] = made(**part)
    return own


def make(method: str, space: "LabelSpace", encoder: "Encoder", settings: Mapping[str, Any]) -> Any:
    """Return the unfitted classifier of a method.

    Args:
        method: name of the method.
        space: the labels.
        encoder: the encoder; the first view of a consensus.
        settings: arguments of the classifier and fields of its configuration.
    """
    import labelspace
    from labelspace.classify.settings import as_arguments

    made = getattr(labelspace, METHODS[method].estimator)
    arguments = as_arguments(made, settings)
    if method == "consensus":
        return made(space, [encoder, *arguments.pop("views")], **arguments)
    return made(space, encoder, **arguments)
