"""Options that several commands share, in the words of the Python parameters, and what they open."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.checks import check_number
from labelspace.cli.printing import busy
from labelspace.cli.settings import flag
from labelspace.config import ANCHORS, DTYPES
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError
from labelspace.header import refuse_no_encoder

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

_ENCODER = "Encoder"


def choices(values: tuple[str, ...]) -> str:
    """Return what help shows for a word out of a few."""
    return "|".join(values)


EncoderName = Annotated[
    str,
    typer.Option(
        help="A name that `labelspace encoders` lists, any sentence-transformers name, or a folder.",
        rich_help_panel=_ENCODER,
    ),
]
Pooling = Annotated[
    str | None,
    typer.Option(metavar="mean|cls|last", help="In place of the encoder's own pooling.", rich_help_panel=_ENCODER),
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar=choices(DTYPES), help="auto: bfloat16 where this machine computes in it.", rich_help_panel=_ENCODER
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="auto|cpu|cuda|...", help="auto: a GPU where there is one.", rich_help_panel=_ENCODER),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(help="Tokens of a text that are read; as many as the encoder takes.", rich_help_panel=_ENCODER),
]
Revision = Annotated[
    str | None, typer.Option(help="Commit, tag or branch of the hub repository.", rich_help_panel=_ENCODER)
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Let the encoder's own code run.", rich_help_panel=_ENCODER)
]
Offline = Annotated[bool, typer.Option("--offline", help="Never ask the hub.", rich_help_panel=_ENCODER)]

Anchor = Annotated[
    str, typer.Option(metavar=choices(ANCHORS), help="What stands for a label when documents are compared with it.")
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="Lowest cosine, -1 to 1, at which a label is named, of a model that compares by cosine; none: always one."
    ),
]
MinProbability = Annotated[
    float | None,
    typer.Option(help="Lowest probability, 0 to 1, at which a label is named, of a model with logits; none: always."),
]
Template = Annotated[
    str | None, typer.Option(help="Sentence around each label, with {label}; replaces the one in the file.")
]
TextColumn = Annotated[str, typer.Option(help="Column that holds the documents.")]
PairColumn = Annotated[
    str | None, typer.Option(help="Column with the second text of each, where documents are pairs of texts.")
]
LabelColumn = Annotated[str, typer.Option(help="Column that holds the names of the labels.")]
Delimiter = Annotated[
    str, typer.Option(metavar="auto|CHAR", help="Of the cells of .csv and .tsv files; tab for a tab.")
]
TextEncoding = Annotated[
    str, typer.Option(metavar="auto|NAME", help="Of .csv and .tsv files, for example cp1252 or utf-16.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print for machines.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress and no notes; warnings and errors stay.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace what is there.")]


def open_encoder(
    name: str = DEFAULT_ENCODER, *, offline: bool = False, quiet: bool = False, **options: Any
) -> "Encoder":
    """Open an encoder with the options of the command line."""
    from labelspace.encoders.resolve import check_remote_code, resolve

    # Whatever can be refused is refused before torch is loaded, which takes seconds.
    refuse_no_encoder(name)
    check_remote_code(name, options.get("trust_remote_code", False))
    resolve(name, revision=options.get("revision"), offline=offline or None)
    with busy(f"opening {name}", quiet=quiet):
        from labelspace.encoders import Encoder

        return Encoder(name, offline=offline or None, **options)


def open_model(
    folder: Path,
    *,
    threshold: float | None = None,
    min_probability: float | None = None,
    device: str = "auto",
    trust_remote_code: bool = False,
    quiet: bool = False,
) -> Any:
    """Open a saved model, with another threshold or lowest probability if one is given."""
    lowest = {"threshold": threshold, "min_probability": min_probability}
    for name, least in (("threshold", -1), ("min_probability", 0)):
        if lowest[name] is not None:
            check_number(flag(name), lowest[name], least=least, most=1)
    with busy(f"opening {folder}", quiet=quiet):
        from labelspace.classify import load

        model = load(folder, device=device, trust_remote_code=trust_remote_code)
    given = {name: value for name, value in lowest.items() if value is not None}
    for name in given:
        if name not in model.get_params(deep=False):
            other = "min_probability" if name == "threshold" else "threshold"
            raise ConfigError(f"{flag(name)} is not for a {type(model).__name__}; use {flag(other)}.")
    model.set_params(**given).decision()  # which refuses the one that a model with both cannot have
    return model
