"""Files of pairs on the command line of `prefinetune`: FILE, or FILE:key=value,... with the file's own columns.

    --pairs      qa.tsv:anchor=question,positive=answer,source=    empty source: use the file's name
    --labelled   news.csv:text=body,label=topic,labels=news.yaml   empty labels: use the label's name
    --scored     quora.tsv:anchor=question1,positive=question2,score=dup,min_score=1

The options --anchor-column and the like, --labels and --min-score give the values that a file does not set. An existing
path, or a glob that matches files, is always read as a path.
"""

import glob
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from labelspace.checks import did_you_mean
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace

if TYPE_CHECKING:
    from labelspace.corpus import PairSource

KEYS: Mapping[str, tuple[str, ...]] = {
    "pairs": ("anchor", "positive", "source"),
    "labelled": ("text", "label", "labels"),
    "scored": ("anchor", "positive", "score", "min_score"),
}
_MAY_BE_EMPTY = ("source", "labels")
# Split at the first colon followed by a key; the colon of a Windows drive has none.
_OWN = re.compile(r"(.+?):([\w-]+=.*)", re.DOTALL)


class PairFile(NamedTuple):
    """One file of pairs, or the files of a glob."""

    kind: str
    """`"pairs"`, `"labelled"` or `"scored"`."""

    given: str
    """The argument as given on the command line."""

    path: str
    """The path or glob in it."""

    own: dict[str, Any]
    """The keys and values after the path."""


def parse_files(kind: str, words: Sequence[str] | None) -> list[PairFile]:
    """Parse the values of one option.

    Raises:
        ConfigError: a key that this option does not know, one without a value, or a `min_score` that is no number.

    Example:
        >>> [(one.path, one.own) for one in parse_files("pairs", ["C:\\\\qa.tsv:anchor=q", "C:\\\\qa.tsv"])]
        [('C:\\\\qa.tsv', {'anchor': 'q'}), ('C:\\\\qa.tsv', {})]
    """
    return [_parse(kind, word) for word in words or ()]


def open_files(files: Sequence[PairFile], options: Mapping[str, Any], *, seed: int) -> "list[PairSource]":
    """Open files of pairs without reading them.

    Args:
        files: from `parse_files`.
        options: a value for each key of `KEYS`, used for files that do not set it.
        seed: seed for drawing descriptions.

    Raises:
        ConfigError: labels or `min_score` without a file, or scored files without `min_score`.
        InputError: as for `open_pairs`.
        LabelFileError: a label file is invalid.
    """
    _check(files, options)
    return [_open(one, name, options, seed) for one, name in zip(files, _names(files), strict=True)]


def _parse(kind: str, word: str) -> PairFile:
    found = None if _names_files(word) else _OWN.fullmatch(word)
    if found is None:
        return PairFile(kind, word, word, {})
    own: dict[str, Any] = {}
    for piece in found[2].split(","):
        key, equals, value = (part.strip() for part in piece.partition("="))
        said = f"--{kind} {word}: "
        if key not in KEYS[kind]:
            raise ConfigError(
                f"{said}no key {key!r}.{did_you_mean(key, KEYS[kind])} There are: {', '.join(KEYS[kind])}; for columns "
                f"with a comma use --{KEYS[kind][0]}-column and its kin."
            )
        if not equals or not (value or key in _MAY_BE_EMPTY):
            raise ConfigError(f"{said}{key} has no value; say {key}=..., or leave it out.")
        if key in own:
            raise ConfigError(f"{said}{key} is there twice; leave one out.")
        own[key] = _number(said, value) if key == "min_score" else value
    return PairFile(kind, word, found[1], own)


def _names_files(word: str) -> bool:
    try:
        if Path(word).exists():
            return True
    except OSError:  # a path with many columns may be longer than a file name can be
        return False
    # Same search as in `open_table`.
    return glob.has_magic(word) and any(glob.iglob(word, recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns


def _number(said: str, value: str) -> float:
    try:
        return float(value)
    except ValueError as error:
        raise ConfigError(f"{said}min_score must be a number. Got {value!r} instead.") from error


def _check(files: Sequence[PairFile], options: Mapping[str, Any]) -> None:
    if not files:
        raise ConfigError(
            "there is nothing to learn from; give --pairs FILE, --labelled FILE or --scored FILE, once or more."
        )
    for (kind, given), count in Counter((one.kind, one.given) for one in files).items():
        if count > 1:
            raise ConfigError(f"--{kind} {given} is there {count} times; leave one of them.")
    known: dict[tuple[str, Path, str], str] = {}
    for one in files:
        # A source that is there twice under two names would count twice in every median.
        columns = {key: one.own.get(key, options.get(key)) for key in KEYS[one.kind]}
        first = known.setdefault((one.kind, Path(one.path).resolve(), repr(sorted(columns.items()))), one.given)
        if first != one.given:
            raise ConfigError(f"--{one.kind} {first} and --{one.kind} {one.given} are one file; leave one of them.")
    kinds = {one.kind for one in files}
    if options["labels"] and "labelled" not in kinds:
        raise ConfigError("--labels needs --labelled FILE.")
    lacking = any(one.kind == "scored" and "min_score" not in one.own for one in files)
    if lacking if options["min_score"] is None else "scored" not in kinds:
        raise ConfigError("--scored FILE and --min-score X need one another; give both, or neither.")


def _names(files: Sequence[PairFile]) -> Iterable[str | None]:
    """Yield explicit names for globs and for files that share a name or a path, None for others."""
    from labelspace.corpus.pair_sources import name_of_file

    names = Counter(name_of_file(one.path) for one in files)
    paths = Counter(one.path for one in files)
    for one in files:
        several = names[name_of_file(one.path)] > 1 or set(one.path) & set("*?[")
        yield one.given if paths[one.path] > 1 else one.path if several else None


def _open(one: PairFile, name: str | None, options: Mapping[str, Any], seed: int) -> "PairSource":
    from labelspace.corpus import open_labelled_pairs, open_pairs, open_scored_pairs

    found = {key: one.own.get(key, options[key]) for key in KEYS[one.kind]}
    columns: dict[str, Any] = {
        f"{key}_column": value or None for key, value in found.items() if key not in ("labels", "min_score")
    }
    if one.kind == "pairs":
        return open_pairs(one.path, name=name, **columns)
    if one.kind == "scored":
        return open_scored_pairs(one.path, name=name, min_score=found["min_score"], **columns)
    labels = found["labels"]
    descriptions = {label.name: label.descriptions for label in LabelSpace.from_file(labels)} if labels else None
    return open_labelled_pairs(one.path, name=name, descriptions=descriptions, seed=seed, **columns)
