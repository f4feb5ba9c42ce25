"""Turn the plain data of a label file (mappings, lists, texts) into its name, template and labels.

One reader serves every file format and `LabelSpace.from_dict`. Only the place in an error differs: a file gives
`path:line: label 'x': `, a dict gives `labels[2] ('x'): `. A path is the tuple of keys and positions that leads to a
value, for example `("labels", 2, "descriptions", 0)`.
"""

import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, final

from labelspace.checks import did_you_mean
from labelspace.errors import LabelFileError
from labelspace.labels.label import (
    REPEATED,
    Label,
    NotText,
    clean_name,
    clean_text,
    clean_texts,
    cut,
    described,
    quoted,
)

KEYS = ("name", "template", "several", "outside", "labels")
LABEL_KEYS = ("name", "phrase", "verbalizer", "descriptions", "not")
DEFAULT_NAME = "labels"
DEFAULT_TEMPLATE = "This text is about {label}."
NOT_BOTH = (
    "outside says nothing where a text may have several labels, each with its own cut; remove outside or several."
)
SEPARATOR = "|"
"""Stands between the names of a text's labels in a file, where a text may have several."""

Path = tuple[Any, ...]


class Source(Protocol):
    """Names places in the data for error messages."""

    def at(self, path: Path, name: str | None = None) -> str:
        """Return the prefix of a message about the value at `path`, which belongs to the label `name`."""
        ...


@final
@dataclass(frozen=True)
class FromDict:
    """Data passed as Python objects."""

    def at(self, path: Path, name: str | None = None) -> str:
        """Return `labels[2] ('x'): ` for a path inside a label, else an empty string."""
        if len(path) < 2:
            return ""
        known = f" ({quoted(name)})" if name is not None and isinstance(path[1], int) else ""
        return f"labels[{path[1]!r}]{known}: "


@final
@dataclass(frozen=True)
class FromFile:
    """Data read from a file, with the line of each path."""

    file: str
    lines: Mapping[Path, int] = field(default_factory=dict)

    def at(self, path: Path, name: str | None = None) -> str:
        """Return `file:line: label 'x': `, with the line of `path` or of its nearest parent that has one."""
        line = self.line(path)
        place = f"{self.file}:{line}: " if line is not None else f"{self.file}: "
        if len(path) < 2:
            return place
        if name is None:
            return f"{place}label {path[1] + 1}: " if isinstance(path[1], int) else place
        return f"{place}label {quoted(name)}: "

    def line(self, path: Path) -> int | None:
        """Return the line of `path`, or of its nearest parent whose line is known."""
        if path[:1] == ("labels",) and path[:1] not in self.lines:
            path = path[1:]  # the short form has no `labels:` key
        for length in range(len(path), -1, -1):
            if path[:length] in self.lines:
                return self.lines[path[:length]]
        return None


@final
@dataclass(frozen=True)
class Document:
    """The checked contents of a label file; None where a key is absent."""

    name: str | None
    template: str | None
    outside: tuple[str, ...]
    several: bool
    labels: tuple[Label, ...]


def read_document(data: object, source: Source) -> Document:
    """Check plain data and turn it into labels.

    Args:
        data: a mapping with the keys of a label file, or a short form without the key `labels`: a list of names, or a
            mapping from names to a list of descriptions, a single one, or the keys of a label.
        source: names places in errors.

    Raises:
        LabelFileError: the data cannot be used; the message names the place.
    """
    document = _with_labels_key(data, source)
    _check_keys(document, KEYS, (), source, None)
    name = document.get("name")
    template = document.get("template")
    if name is not None:
        name = clean_name(name, "name", source.at(("name",)))
    if template is not None:
        template = clean_template(template, source.at(("template",)))
    several = _truth_value(document.get("several"), source)
    if document.get("labels") is None:
        raise LabelFileError(f"{source.at(('labels',))}there are no labels; a classifier needs at least two labels.")
    labels: dict[str, Label] = {}
    seen: dict[str, Path] = {}
    for path, path_of_descriptions, item in _items(document["labels"], source):
        label = _read_label(item, path, path_of_descriptions, source)
        if label.name in labels:
            first = _first_place(seen[label.name], source)
            raise LabelFileError(
                f"{source.at((*path, 'name'), label.name)}the name is used twice{first}; rename or remove one."
            )
        labels[label.name], seen[label.name] = label, path
    check_count(list(labels), source.at(("labels",)))
    outside = _texts(document, "outside", ("outside",), source, None)
    if outside and several:
        raise LabelFileError(source.at(("outside",)) + NOT_BOTH)
    return Document(name, template, outside, several, tuple(labels.values()))


def clean_template(value: object, where: str = "") -> str:
    """Return a template, stripped; it must contain `{label}` and no other placeholder.

    Args:
        value: the template; `{{` and `}}` are literal braces.
        where: prefix of the error message.
    """
    template = clean_text(value, "template", where)
    try:
        fields = [(name, spec, how) for _, name, spec, how in string.Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise LabelFileError(
            f"{where}template has an unbalanced brace: {quoted(template)}; "
            "write {label} for the phrase, {{ and }} for literal braces."
        ) from error
    for name, spec, how in fields:
        if name != "label" or spec or how:
            shown = "{" + name + (f"!{how}" if how else "") + (f":{spec}" if spec else "") + "}"
            hint = did_you_mean(name, ["label"])
            raise LabelFileError(f"{where}template has the unknown placeholder {cut(shown)}.{hint} Write {{label}}.")
    if not fields:
        raise LabelFileError(
            f"{where}template has no {{label}}: {quoted(template)}; every label would read the same. "
            "Write {label} where the phrase goes."
        )
    return template


def check_count(names: Sequence[str], where: str) -> None:
    """Raise LabelFileError for fewer than two labels."""
    if len(names) < 2:
        came = f"Got only {quoted(names[0])}" if names else "Got none"
        raise LabelFileError(f"{where}a classifier needs at least two labels. {came}; add another label.")


def _truth_value(value: object, source: Source) -> bool:
    """Return whether a text may have several labels; a file's truth values come as `NotText`."""
    if isinstance(value, NotText) and value.kind == "a truth value":
        return value.source.lower() in ("true", "yes", "on")
    if value is None or isinstance(value, bool):
        return bool(value)
    raise LabelFileError(
        f"{source.at(('several',))}several says whether a text may have several labels: true or false. "
        f"Got {described(value)}."
    )


def _with_labels_key(data: object, source: Source) -> Mapping[Any, Any]:
    """Return the long form of a document: put a bare list, or a bare mapping from names, under `labels`."""
    if isinstance(data, list | tuple):
        return {"labels": data}
    if not isinstance(data, Mapping):
        came = "an empty document" if data is None else described(data)
        raise LabelFileError(f"{source.at(())}a label file is a mapping with the key 'labels'. Got {came}.")
    # Arrays and columns of other libraries have no truth value of their own.
    data = {key: value.tolist() if hasattr(value, "tolist") else value for key, value in data.items()}
    # `several` is no sign of the long form: it is true or false there, and may be the name of a label here.
    if len(data) < 2 or any(key in data for key in KEYS if key != "several"):
        return data
    if len({isinstance(value, str) for value in data.values() if value}) < 2:
        return {"labels": data}
    if any(isinstance(key, str) and did_you_mean(key, KEYS) for key in data):
        return data
    # Texts mixed with lists may be the title of a label file whose keys are all wrong.
    raise LabelFileError(
        f"{source.at(())}some keys hold a text and some a list, which may be labels or something else; if they are "
        "labels, write them below the key 'labels'."
    )


def _items(labels: object, source: Source) -> Iterator[tuple[Path, Path, Any]]:
    """Yield each label with its path and the path of its descriptions; mappings are brought into the long form."""
    if isinstance(labels, Mapping):
        for key, value in labels.items():
            path = ("labels", key)
            if not isinstance(value, Mapping):
                yield path, path, {"name": key, "descriptions": [value] if isinstance(value, str) else value}
            elif "name" in value:
                where = source.at((*path, "name"), str(key))
                raise LabelFileError(f"{where}the name is written twice, as key and as 'name'; keep the key.")
            else:
                yield path, (*path, "descriptions"), {"name": key, **value}
    elif isinstance(labels, list | tuple):
        for i, item in enumerate(labels):
            yield ("labels", i), ("labels", i, "descriptions"), item
    else:
        raise LabelFileError(
            f"{source.at(('labels',))}labels must be a list, or a mapping from names to descriptions. "
            f"Got {described(labels)}."
        )


def _read_label(item: object, path: Path, path_of_descriptions: Path, source: Source) -> Label:
    if isinstance(item, list | tuple):
        raise LabelFileError(f"{source.at(path)}must be a name or a mapping with the key 'name'. Got a list.")
    if not isinstance(item, Mapping):
        return Label(clean_name(item, "the name", source.at(path)))
    if item.get("name") is None:
        _check_keys(item, LABEL_KEYS, path, source, None)
        raise LabelFileError(f"{source.at(path)}has no name; write 'name:' (in quotes if it is a word like null).")
    name = clean_name(item["name"], "the name", source.at((*path, "name")))
    _check_keys(item, LABEL_KEYS, path, source, name)
    texts: dict[str, str | None] = {}
    for key in ("phrase", "verbalizer"):
        value = item.get(key)
        texts[key] = None if value is None else clean_text(value, f"the {key}", source.at((*path, key), name))
    descriptions = _texts(item, "descriptions", path_of_descriptions, source, name)
    excludes = _texts(item, "not", (*path, "not"), source, name)
    repeated = next((i for i, text in enumerate(excludes) if text in descriptions), None)
    if repeated is not None:
        where = source.at((*path, "not", repeated), name)
        raise LabelFileError(where + REPEATED.format(quoted(excludes[repeated])))
    return Label(name, **texts, descriptions=descriptions, excludes=excludes)


def _texts(item: Mapping[Any, Any], key: str, place: Path, source: Source, name: str | None) -> tuple[str, ...]:
    """Return the texts of a list, none if it is left out."""
    value = item.get(key)
    if value is None:
        return ()
    return clean_texts(value, key, source.at(place, name), lambda i: source.at((*place, i), name))


def _check_keys(data: Mapping[Any, Any], known: Sequence[str], path: Path, source: Source, name: str | None) -> None:
    # A label may be called as one of the keys, so that the others look like unknown ones.
    more = "" if path or "labels" in data else " If these are labels, write them below the key 'labels'."
    for key in data:
        if key in known:
            continue
        if not isinstance(key, str):
            raise LabelFileError(f"{source.at((*path, key), name)}a key must be text. Got {described(key)}.")
        raise LabelFileError(
            f"{source.at((*path, key), name)}unknown key {quoted(key)}.{did_you_mean(key, known)} "
            f"Known: {', '.join(known)}.{more}"
        )


def _first_place(path: Path, source: Source) -> str:
    if isinstance(source, FromFile):
        line = source.line(path)
        return f" (first in line {line})" if line is not None else ""
    return f" (first at labels[{path[1]!r}])"
