"""Options that several commands share, named like the Python parameters; opens encoders and models."""

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
    """Return the metavar of an option with a fixed list of values."""
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
    typer.Option(metavar="mean|cls|last", help="Pooling, instead of the encoder's own.", rich_help_panel=_ENCODER),
]
Dtype = Annotated[
    str,
    typer.Option(
        metavar=choices(DTYPES),
        help="auto: bfloat16 if the processor computes in it natively.",
        rich_help_panel=_ENCODER,
    ),
]
Device = Annotated[
    str,
    typer.Option(metavar="auto|cpu|cuda|...", help="auto: a GPU if there is one.", rich_help_panel=_ENCODER),
]
MaxTokens = Annotated[
    int | None,
    typer.Option(help="Maximum tokens read from a text; by default the encoder's limit.", rich_help_panel=_ENCODER),
]
Revision = Annotated[
    str | None, typer.Option(help="Commit, tag or branch of the hub repository.", rich_help_panel=_ENCODER)
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the encoder.", rich_help_panel=_ENCODER)
]
Offline = Annotated[bool, typer.Option("--offline", help="Never connect to the hub.", rich_help_panel=_ENCODER)]

Anchor = Annotated[
    str, typer.Option(metavar=choices(ANCHORS), help="What represents a label when documents are compared with it.")
]
Threshold = Annotated[
    float | None,
    typer.Option(
        help="For models that compare by cosine: lowest cosine, -1 to 1, at which a label is predicted; none: always."
    ),
]
MinProbability = Annotated[
    float | None,
    typer.Option(
        help="For models with logits: lowest probability, 0 to 1, at which a label is predicted; none: always."
    ),
]
Template = Annotated[
    str | None, typer.Option(help="Sentence for each label, containing {label}; replaces the one in the file.")
]
TextColumn = Annotated[str, typer.Option(help="Column with the documents.")]
PairColumn = Annotated[str | None, typer.Option(help="Column with the second text, if documents are pairs.")]
LabelColumn = Annotated[str, typer.Option(help="Column with the label names.")]
Delimiter = Annotated[str, typer.Option(metavar="auto|CHAR", help="Delimiter in .csv and .tsv files; tab for a tab.")]
TextEncoding = Annotated[
    str, typer.Option(metavar="auto|NAME", help="Encoding of .csv and .tsv files, for example cp1252 or utf-16.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Hide progress and notes; still print warnings and errors.")]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Replace an existing output.")]


def open_encoder(
    name: str = DEFAULT_ENCODER, *, offline: bool = False, quiet: bool = False, **options: Any
) -> "Encoder":
    """Open an encoder with the options of the command line."""
    from labelspace.encoders.resolve import check_remote_code, resolve

    # Check before torch is loaded, which takes seconds.
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
    """Open a saved model; a threshold or lowest probability given here replaces its own."""
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
    model.set_params(**given).decision()  # decision() raises if the fitted model cannot use it
    return model
