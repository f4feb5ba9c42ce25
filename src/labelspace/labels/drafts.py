"""Drafts: descriptions that a language model proposes, checked, and marked where they stand in a label file.

A draft is a line of `descriptions` like any other, with a comment above it that names its model, prompt and seed. The
user's file keeps its order, comments and quotes; a file whose form has no room for such lines is written anew.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, final

import yaml

from labelspace.errors import LabelFileError
from labelspace.labels.document import read_document
from labelspace.labels.files import as_yaml, is_nothing, line_after, read_text, read_yaml, value_below, yaml_scalar
from labelspace.labels.lint_words import names_in_descriptions, words
from labelspace.labels.space import LabelSpace

KEEPS = ("better", "all")
"""Which drafts stay: those with which an estimate rises, or all."""

FEWEST_WORDS, MOST_CHARACTERS = 4, 400
NEAR = 0.8
"""Share of common words (Jaccard) from which on a draft is a copy, as for `near-duplicate-description` of lint."""


@final
@dataclass(frozen=True)
class Draft:
    """A description that a language model proposes."""

    label: str
    """Name of the label."""

    text: str
    """The description."""

    against: str | None = None
    """The label that it is meant to be told apart from; None: it is about its label alone."""


@final
@dataclass(frozen=True)
class Confused:
    """Two labels that an encoder finds hard to tell apart."""

    labels: tuple[str, str]
    """Their names, in the order of the label space."""

    documents: int
    """Number of documents between them."""

    between: tuple[str, ...]
    """Some of these documents, those between which it decides least."""


def problem_of(space: LabelSpace, draft: Draft) -> str | None:
    """Return why a draft cannot be used, in a few words; None if it can.

    Example:
        >>> space = LabelSpace.from_names(["sports", "money"])
        >>> problem_of(space, Draft("sports", "A match that costs much money."))
        "names the label 'money'"
    """
    excludes = [text for label in space for text in label.excludes]
    known = [*(text for texts in space.descriptions for text in texts), *space.verbalizers, *excludes, *space.outside]
    if len(words(draft.text)) < FEWEST_WORDS:
        return f"has fewer than {FEWEST_WORDS} words"
    if len(draft.text) > MOST_CHARACTERS:
        return f"has more than {MOST_CHARACTERS} characters"
    if any(_near(draft.text, text) for text in known):
        return "is in the label file already, or nearly"
    alone = LabelSpace([replace(label, descriptions=()) for label in space], template=space.template)
    for finding in names_in_descriptions(with_drafts(alone, [draft])):
        return f"names the label {finding.labels[1]!r}"
    return None


def with_drafts(space: LabelSpace, drafts: Sequence[Draft]) -> LabelSpace:
    """Return the space with drafts as the last descriptions of their labels.

    Example:
        >>> space = LabelSpace.from_names(["sports", "money"])
        >>> with_drafts(space, [Draft("money", "Banks and their loans.")]).descriptions
        ((), ('Banks and their loans.',))
    """
    labels = [
        replace(label, descriptions=(*label.descriptions, *(one.text for one in drafts if one.label == label.name)))
        for label in space
    ]
    return replace(space, labels=labels)


def marked_file(file: Path, space: LabelSpace, drafts: Sequence[Draft], mark: str) -> tuple[str, bool]:
    """Return a label file as YAML with drafts in it, a comment above each, and whether the user's text was kept.

    Args:
        file: the label file that `space` was read from.
        space: its labels.
        drafts: drafts to add.
        mark: what the comments say, such as the model, the prompt's version and the seed.
    """
    wanted = with_drafts(space, drafts)
    if file.suffix.lower() in (".yaml", ".yml"):
        text = _inserted(read_text(file), drafts, mark)
        if text is not None and _read_as(text, str(file), wanted):
            return text, True
    text = _inserted(as_yaml(space.to_dict()), drafts, mark)
    assert text is not None
    return text, False


def _read_as(text: str, name: str, wanted: LabelSpace) -> bool:
    try:
        return read_document(*read_yaml(text, name)).labels == wanted.labels
    except LabelFileError:
        return False


def _near(one: str, other: str) -> bool:
    mine, yours = set(words(one)), set(words(other))
    return len(mine & yours) >= NEAR * len(mine | yours)


class _Place(NamedTuple):
    """Where the next description of a label goes: before which line, how far in, and whether the key is missing.

    `opening` is written first before `scalar`, a name or a text without room for more.
    """

    line: int
    column: int
    key: bool
    scalar: Any = None
    opening: str = ""


def _inserted(text: str, drafts: Sequence[Draft], mark: str) -> str | None:
    """Return a YAML label file with drafts; None if a label has no room for lines."""
    places = dict(_places(yaml.compose(text, Loader=yaml.SafeLoader)))
    lines, ending = text.splitlines(), "\r\n" if "\r\n" in text else "\n"
    by_label: dict[str, list[Draft]] = {}
    for draft in drafts:
        by_label.setdefault(draft.label, []).append(draft)
    if not set(by_label) <= set(places):
        return None
    for name in sorted(by_label, key=lambda name: -places[name].line):
        line, column, key, scalar, opening = places[name]
        added = [" " * (column - 2) + "descriptions:"] if key else []
        for draft in by_label[name]:
            against = "" if draft.against is None else f", against {draft.against}"
            added += [f"{' ' * column}# {mark}{against}", f"{' ' * column}- {yaml_scalar(draft.text)}"]
        lines[line:line] = added
        if scalar is not None:
            before, at = lines[scalar.start_mark.line], scalar.start_mark.column
            head = before[:at].rstrip() if opening.startswith("\n") else before[:at]
            lines[scalar.start_mark.line] = head + opening + before[at:]
    return ending.join(lines) + ending


def _places(root: Any) -> Iterator[tuple[str, _Place]]:
    """Yield the names of the labels that have room for lines, and where."""
    labels = value_below(root, "labels") or root
    if isinstance(labels, yaml.MappingNode):
        pairs = [(key.value, key, value) for key, value in labels.value]
    else:
        pairs = [(getattr(value_below(item, "name"), "value", None), None, item) for item in labels.value]
    for name, key, value in pairs:
        if name is None and isinstance(value, yaml.ScalarNode) and not labels.flow_style:
            name, at = value.value, value.start_mark.column
            yield str(name).strip(), _Place(line_after(value), at + 2, key=True, scalar=value, opening="name: ")
            continue
        place = _place(key, value)
        if name is not None and place is not None:
            yield str(name).strip(), place


def _place(key: Any, value: Any) -> _Place | None:
    """Return the place in what stands for a label: descriptions below a key, or a mapping."""
    if isinstance(value, yaml.MappingNode) and not value.flow_style:
        for inner, descriptions in value.value:
            if inner.value == "descriptions":
                return _place(inner, descriptions)
        return _Place(line_after(value.value[-1][1]), value.start_mark.column + 2, key=True)
    if isinstance(value, yaml.SequenceNode) and not value.flow_style and key is not None:
        return _Place(line_after(value.value[-1]), value.start_mark.column, key=False)
    if is_nothing(value) and key is not None:
        return _Place(key.end_mark.line + 1, key.start_mark.column + 2, key=False)
    if isinstance(value, yaml.ScalarNode) and key is not None:
        column = key.start_mark.column + 2
        return _Place(line_after(value), column, key=False, scalar=value, opening=f"\n{' ' * column}- ")
    return None
