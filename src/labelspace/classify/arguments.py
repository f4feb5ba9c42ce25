"""Conversion of constructor and `fit` arguments: labels, encoders, a single label."""

import inspect
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.checks import check_keys
from labelspace.corpus import as_targets
from labelspace.corpus.in_memory import kind_of
from labelspace.errors import ConfigError, InputError, warn
from labelspace.labels import Label, LabelSpace
from labelspace.labels.label import described
from labelspace.labels.lint_meaning import read_alike
from labelspace.labels.lint_words import some

if TYPE_CHECKING:
    from labelspace.encoders import Encoder

TRAINED = ", trained"
"""Name suffix if `fit` started from a live Encoder that had been trained. After `load`, `fit` then fails rather than
restart from other weights."""


def check_targets(X: Any, y: Any, space: LabelSpace) -> None:
    """Raise InputError unless `y` fits the documents and the labels; nothing is learnt from it."""
    if X is None or y is None:
        return
    if isinstance(X, (str, Path)) or not hasattr(X, "__len__"):
        raise InputError(
            f"y goes with documents in memory. Got X of type {type(X).__name__}; leave y out, it teaches nothing here."
        )
    as_targets(y, space.names, n_documents=len(X))


def as_label_space(labels: Any) -> LabelSpace:
    """Convert a dictionary, a list of names or a label file to a LabelSpace; return a LabelSpace as it is.

    Raises:
        LabelFileError: the content is no valid label space.
        ConfigError: the type is not supported.
    """
    if isinstance(labels, LabelSpace):
        return labels
    if isinstance(labels, (str, Path)):
        return LabelSpace.from_file(labels)
    if isinstance(labels, Mapping):
        return LabelSpace.from_dict(dict(labels))
    came = type(labels).__name__
    # A table iterates over its columns' names, and an open file over its lines: both would pass for label names.
    # A set has another order in each process, and an iterator is empty for the second fit.
    passes = not isinstance(labels, (set, frozenset, Iterator)) and isinstance(labels, Iterable)
    if passes and not (hasattr(labels, "columns") or hasattr(labels, "read")):
        entries = list(labels)
        if all(isinstance(entry, Label) for entry in entries):
            return LabelSpace(entries)
        if all(isinstance(entry, str) for entry in entries):
            return LabelSpace.from_names(entries)
        odd = next(entry for entry in entries if not isinstance(entry, str))
        came = f"a {came} that holds {described(odd)}"
    came += " instead; pass its names" if kind_of(labels) == "datasets.ClassLabel" else " instead"
    raise ConfigError(
        f"labels must be a LabelSpace, a label file, a dictionary like one, or a list of names. Got {came}."
    )


def one_label_space(labels: Any, method: str) -> LabelSpace:
    """Convert labels as `as_label_space` does, for a method that gives each text one label.

    Args:
        labels: what `as_label_space` takes.
        method: name of the classifier.

    Raises:
        ConfigError: the label space says `several: true`.
        LabelFileError: the content is no valid label space.
    """
    space = as_label_space(labels)
    if space.several:
        raise ConfigError(
            f"{method} gives each text one label, and the labels say several: true; use DescriptionClassifier or "
            "ZeroShotClassifier, or leave several out."
        )
    return space


def warn_of_unread(space: LabelSpace, method: str) -> None:
    """Warn if the labels say what they are not, or what lies outside, and the method learns from rows alone."""
    unread = ["outside"] * bool(space.outside) + ["not"] * any(label.excludes for label in space)
    if unread:
        warn(
            f"{method} does not read {' and '.join(map(repr, unread))} of the labels; DescriptionClassifier and "
            "ZeroShotClassifier do."
        )


def warn_of_alike(encoder: "Encoder", space: LabelSpace, *, bare: bool = False) -> None:
    """Warn if an encoder reads the verbalizers of two labels alike.

    Args:
        encoder: the encoder.
        space: the labels.
        bare: whether only the labels without descriptions are known by their verbalizers.
    """
    known = {
        label.name: verbalizer
        for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
        if not (bare and label.descriptions)
    }
    alike = next(read_alike(encoder, known), None)
    if alike is not None:
        warn(
            f"{encoder.name} reads the verbalizers of {some(alike)} alike, so they do not tell these labels apart; "
            "give each a phrase or verbalizer in words that it knows, or take an encoder of the language."
        )


def as_encoder(encoder: Any) -> "Encoder":
    """Open an Encoder from a name, a folder or a dictionary of arguments; return an Encoder as it is."""
    from labelspace.encoders import Encoder

    if isinstance(encoder, Encoder):
        return encoder
    name = encoder.get("name") if isinstance(encoder, Mapping) else encoder
    if isinstance(name, str) and name.endswith(TRAINED):
        raise ConfigError(
            f"the model was fitted from an Encoder that had been trained before ({name!r}), and no name leads to that; "
            "set encoder to the folder of one, for example of this model."
        )
    if isinstance(encoder, (str, Path)):
        return Encoder(encoder)
    if isinstance(encoder, Mapping):
        check_keys("Encoder", encoder, list(inspect.signature(Encoder).parameters))
        return Encoder(**encoder)
    raise ConfigError(
        "encoder must be a name, a folder, an Encoder or a dictionary of its arguments. "
        f"Got {type(encoder).__name__} instead."
    )


def own_encoder(encoder: Any) -> "Encoder":
    """Return an Encoder that may be trained; the caller's own Encoder is copied."""
    given = as_encoder(encoder)
    return given.copy() if given is encoder else given


def name_of_start(given: Any, encoder: "Encoder") -> str:
    """Return the name of the encoder that `fit` started from.

    Args:
        given: the argument `encoder`.
        encoder: the encoder that `fit` opened or copied.
    """
    if isinstance(given, type(encoder)) and given.trained and not given.name.endswith(TRAINED):
        return given.name + TRAINED
    return encoder.name


def as_label(label: Label | Mapping[str, Any]) -> Label:
    """Convert a mapping with the keys of a label file to a Label; return a Label as it is.

    Raises:
        ConfigError: it is neither.
        LabelFileError: the mapping cannot be used.
    """
    if isinstance(label, Label):
        return label
    if not isinstance(label, Mapping):
        raise ConfigError(f"a label is a Label, or a mapping with its name and descriptions. Got {described(label)}.")
    # Read it like a label file, so that typos and empty texts raise the same errors.
    space = LabelSpace.from_dict({"labels": [dict(label), {"name": f"not {label.get('name')}"}]})
    return space.labels[0]
