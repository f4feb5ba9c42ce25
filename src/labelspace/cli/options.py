"""Options that several commands share, named like the Python parameters; opens encoders and models."""

import csv
import gc
import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from labelspace.cli.printing import busy, tell
from labelspace.cli.settings import flag, from_field, to_change
from labelspace.config import ANCHORS, DTYPES, LONG_TEXTS, DecisionConfig, EncodingConfig
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, OutputError
from labelspace.header import check_place, refuse_no_encoder

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

_ENCODER = "Encoder"


READING = ("text_column", "delimiter", "encoding")
"""Options that say how a file of documents is read."""


def choices(values: tuple[str, ...]) -> str:
    """Return the metavar of an option with a fixed list of values."""
    return "|".join(values)


Model = Annotated[Path, typer.Argument(metavar="MODEL", help="Folder of a saved model, or its name on the hub.")]
Labelled = Annotated[
    str, typer.Argument(metavar="FILE", help="A .csv, .tsv, .xlsx, .jsonl or .parquet file, or a glob.")
]
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
Dtype = Annotated[str, from_field(EncodingConfig, "dtype", metavar=choices(DTYPES), panel=_ENCODER)]
Device = Annotated[str, from_field(EncodingConfig, "device", metavar="auto|cpu|cuda|...", panel=_ENCODER)]
MaxTokens = Annotated[int | None, from_field(EncodingConfig, "max_tokens", panel=_ENCODER)]
Revision = Annotated[
    str | None, typer.Option(help="Commit, tag or branch of the hub repository.", rich_help_panel=_ENCODER)
]
TrustRemoteCode = Annotated[
    bool, typer.Option("--trust-remote-code", help="Run code that comes with the encoder.", rich_help_panel=_ENCODER)
]
Offline = Annotated[bool, typer.Option("--offline", help="Never connect to the hub.", rich_help_panel=_ENCODER)]

Anchor = Annotated[str, from_field(DecisionConfig, "anchor", metavar=choices(ANCHORS))]
Threshold = Annotated[float | None, to_change(DecisionConfig, "threshold")]
MinProbability = Annotated[float | None, to_change(DecisionConfig, "min_probability")]
LongTexts = Annotated[str | None, to_change(DecisionConfig, "long_texts", metavar=choices(LONG_TEXTS))]
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


def still_free(out: Path, kind: str, *, overwrite: bool) -> Path:
    """Return the place to save at: another one where something has appeared since it was checked.

    Args:
        out: the place that was free when the command began.
        kind: kind of the folder, see `labelspace.header`.
        overwrite: whether a model may be replaced.
    """
    try:
        if not check_place(out, kind) or overwrite:
            return out
    except OutputError:
        pass
    out = out if out.name else out.absolute()
    numbered = (out.with_name(f"{out.name}-{number}") for number in itertools.count(2))
    other = next(place for place in numbered if not place.exists())
    tell(f"warning: {out} has appeared meanwhile, and stays as it is; this is saved as {other}.")
    return other


def listed_names(words: str) -> list[str]:
    """Return the names of a list with commas; a name that has a comma stands in quotes.

    Example:
        >>> listed_names('war, "food, drink"')
        ['war', 'food, drink']
    """
    (cells,) = csv.reader([" ".join(words.splitlines())], skipinitialspace=True) if words.strip() else ([],)
    return [cell.strip() for cell in cells if cell.strip()]


def label_names(words: str) -> list[str]:
    """Return the labels of a list, whose commas may be Chinese or Arabic; a name with a comma stands in quotes.

    "\u3001", which Chinese also writes within a name, counts where there is no other.
    """
    quoted = '(?:^|(?<=[,\uff0c\u060c\u3001]))\\s*"[^"]*"'
    commas = "\uff0c\u060c" if re.search("[,\uff0c\u060c]", re.sub(quoted, "", words)) else "\u3001"
    return listed_names(re.sub(f"({quoted})|[{commas}]", lambda found: found[1] or ",", words))


def open_encoder(
    name: str = DEFAULT_ENCODER, *, offline: bool = False, quiet: bool = False, **options: Any
) -> "Encoder":
    """Open an encoder with the options of the command line."""
    from labelspace.encoders.resolve import check_remote_code, resolve

    # Check before torch is loaded, which takes seconds.
    refuse_no_encoder(name)
    check_remote_code(name, options.get("trust_remote_code", False))
    resolve(name, revision=options.get("revision"), offline=offline or None)
    with busy(f"opening {name}", quiet=quiet), _uncollected():
        from labelspace.encoders import Encoder

        return Encoder(name, offline=offline or None, **options)


def open_model(
    folder: Path,
    threshold: float | None = None,
    min_probability: float | None = None,
    device: str = EncodingConfig.device,
    trust_remote_code: bool = False,
    *,
    long_texts: str | None = None,
    quiet: bool = False,
    to_answer: bool = False,
) -> Any:
    """Open a saved model; a threshold, lowest probability or way to read long texts given here replaces its own.

    With `to_answer` it may lack what scikit-learn's estimators have, and opens faster.
    """
    decision = {"threshold": threshold, "min_probability": min_probability, "long_texts": long_texts}
    given = {name: value for name, value in decision.items() if value is not None}
    DecisionConfig(**given)  # checks them before torch is loaded
    with busy(f"opening {folder}", quiet=quiet), _uncollected():
        from labelspace.classify.saved.opening import load, open_to_answer

        model = (open_to_answer if to_answer else load)(folder, device=device, trust_remote_code=trust_remote_code)
    read = getattr(model, "long_texts", None)
    for name in given:
        if model.label_space_.several and name != "long_texts":
            raise ConfigError(f"{flag(name)} is for one label a text; MODEL gives several, by a cut of each label.")
        if not hasattr(model, name):
            other = "min_probability" if name == "threshold" else "threshold"
            cure = "leave it out" if name == "long_texts" else f"use {flag(other)}"
            raise ConfigError(f"{flag(name)} is not for a {model.class_name}; {cure}.")
        setattr(model, name, given[name])
    model.decision()  # it raises if the fitted model cannot use it
    if long_texts is not None:
        from labelspace.classify.long_texts import tell_other_reading

        tell_other_reading(model, str(read))
    return model


@contextmanager
def _uncollected() -> Iterator[None]:
    """Pause Python's garbage collector, which looks again and again and frees nothing while modules load."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
