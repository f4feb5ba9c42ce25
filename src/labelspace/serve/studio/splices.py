"""An edit in the text of a YAML label file: only the lines that it is about change.

Comments, order, quotes and line breaks elsewhere stay as they are, to the byte. A comment above an entry belongs to it
and goes with it. (A round trip through a tree of YAML hangs a comment on the entry before it, so that a removed
description would take the comment of the next one along.)

`spliced` does not promise to find a way: the caller reads its text again, and writes the file anew if it does not say
what it should.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple

import yaml

from labelspace.labels.files import compose_yaml, is_nothing, line_after, value_below, yaml_scalar


class Entry(NamedTuple):
    """One label in the text: the nodes that stand for it."""

    key: Any
    """The node of its name."""

    value: Any
    """The node of all that is said of it; the name's own for a bare name in a list."""

    dash: int
    """The column at which its lines begin."""

    flow: bool
    """Whether it stands in brackets or braces."""


def spliced(text: str, edit: Mapping[str, Any]) -> str | None:
    """Return the text of a label file after an edit of `draft`; None where the form of the file has no room for it."""
    root = compose_yaml(text)
    do = edit["do"]
    if do == "template":
        node = value_below(root, "template")
        if node is not None:
            return _replaced(text, node, edit["text"])
        key = _key(root, "labels")
        return key and _inserted(text, key.start_mark.line, [f"template: {yaml_scalar(edit['text'])}"])
    labels = value_below(root, "labels") or root
    entries = _entries(labels)
    if do == "add label":
        return _label_added(text, root, labels, entries, edit["text"])
    entry = entries[edit["label"]]
    if do == "remove label":
        if labels.flow_style:
            return _item_cut(text, labels, edit["label"])
        return _cut(text, entry.key.start_mark.line, _end_of(text, entry), entry.dash)
    if do == "name":
        return _replaced(text, entry.key, edit["text"], flow=entry.flow)
    if do in ("phrase", "verbalizer"):
        return _field_set(text, entry, do, edit["text"].strip())
    return _description(text, entry, edit)


def _entries(labels: Any) -> list[Entry]:
    if isinstance(labels, yaml.MappingNode):
        return [Entry(key, value, key.start_mark.column, bool(labels.flow_style)) for key, value in labels.value]
    found = []
    for item in labels.value if isinstance(labels, yaml.SequenceNode) else ():
        name = value_below(item, "name") if isinstance(item, yaml.MappingNode) else item
        flow = labels.flow_style or getattr(item, "flow_style", False)  # a scalar has none
        found.append(Entry(name, item, labels.start_mark.column, bool(flow)))
    return found


def _label_added(text: str, root: Any, labels: Any, entries: list[Entry], name: str) -> str | None:
    if not entries:
        key = _key(root, "labels")
        if key is None or (isinstance(labels, (yaml.MappingNode, yaml.SequenceNode)) and labels is not root):
            return None
        return _inserted(text, key.end_mark.line + 1, [f"  - name: {yaml_scalar(name)}"])
    last = entries[-1]
    if labels.flow_style:
        return _item_added(text, labels, yaml_scalar(name))
    line = f"{yaml_scalar(name)}:" if isinstance(labels, yaml.MappingNode) else f"- name: {yaml_scalar(name)}"
    return _inserted(text, _end_of(text, last), [" " * last.dash + line])


def _field_set(text: str, entry: Entry, field: str, value: str) -> str | None:
    mapping = entry.value
    if not isinstance(mapping, yaml.MappingNode):
        if mapping is not entry.key or not value:  # a mapping from names to descriptions has no room for a field
            return None
        told = f"{field}: {yaml_scalar(value)}"
        return _told_more(text, entry, told, [told])
    node = value_below(mapping, field)
    if node is not None and value:
        return _replaced(text, node, value, flow=entry.flow)
    if node is not None:
        key = _key(mapping, field)
        return None if key is mapping.value[0][0] else _cut(text, key.start_mark.line, line_after(node), None)
    if mapping.flow_style or not value:
        return None
    name = value_below(mapping, "name")
    line = line_after(name) if name is not None else mapping.start_mark.line
    return _inserted(text, line, [f"{' ' * mapping.start_mark.column}{field}: {yaml_scalar(value)}"])


def _told_more(text: str, entry: Entry, field: str, lines: list[str]) -> str:
    """Turn a bare name into a mapping of the name and a field, which stands in brackets or on lines of its own."""
    start, end = entry.key.start_mark.index, entry.key.end_mark.index
    if entry.flow:
        return f"{text[:start]}{{name: {text[start:end]}, {field}}}{text[end:]}"
    text = f"{text[:start]}name: {text[start:]}"
    return _inserted(text, line_after(entry.key), [" " * entry.key.start_mark.column + line for line in lines])


def _description(text: str, entry: Entry, edit: Mapping[str, Any]) -> str | None:
    value, key = entry.value, entry.key
    if isinstance(value, yaml.MappingNode):
        key, value = _key(value, "descriptions"), value_below(value, "descriptions")
    elif value is entry.key:
        scalar = yaml_scalar(edit["text"].strip())
        return _told_more(text, entry, f"descriptions: [{scalar}]", ["descriptions:", f"  - {scalar}"])
    texts = list(value.value) if isinstance(value, yaml.SequenceNode) else []
    place = edit["place"]
    if edit["do"] == "remove description":
        if not texts:
            return None
        if value.flow_style:
            return _item_cut(text, value, place)
        node = texts[place]
        return _cut(text, node.start_mark.line, line_after(node), value.start_mark.column)
    if place < len(texts):
        return _replaced(text, texts[place], edit["text"].strip(), flow=value.flow_style)
    line = f"- {yaml_scalar(edit['text'].strip())}"
    if texts:
        if value.flow_style:
            return _item_added(text, value, line.removeprefix("- "))
        return _inserted(text, line_after(texts[-1]), [" " * value.start_mark.column + line])
    if key is None:
        mapping = entry.value
        if mapping.flow_style:
            return None
        column = mapping.start_mark.column
        after = line_after(mapping.value[-1][1])
        return _inserted(text, after, [" " * column + "descriptions:", " " * (column + 2) + line])
    if not is_nothing(value):
        return None
    return _inserted(text, key.end_mark.line + 1, [" " * (key.start_mark.column + 2) + line])


def _item_added(text: str, items: Any, new: str) -> str | None:
    """Add an item to a list in brackets."""
    if not isinstance(items, yaml.SequenceNode):
        return None
    end = items.value[-1].end_mark.index
    return f"{text[:end]}, {new}{text[end:]}"


def _item_cut(text: str, items: Any, place: int) -> str | None:
    """Remove an item, and the comma beside it, from a list in brackets; None if a comment would go too."""
    if not isinstance(items, yaml.SequenceNode):
        return None
    nodes = items.value
    start, end = nodes[place].start_mark.index, nodes[place].end_mark.index
    if place + 1 < len(nodes):
        end = nodes[place + 1].start_mark.index
    elif place:
        start = nodes[place - 1].end_mark.index
    return None if "#" in text[start:end] else text[:start] + text[end:]


def _replaced(text: str, node: Any, new: str, *, flow: bool = False) -> str | None:
    """Put another text in place of a scalar, in its own quotes where they can hold it; brackets want some."""
    if not isinstance(node, yaml.ScalarNode):
        return None
    style = node.style if node.style in ('"', "'") else None
    if "\n" in new or (style is None and (node.style or flow)):
        style = '"'
    dumped = yaml.safe_dump(new, default_style=style, allow_unicode=True, width=2**31).removesuffix("\n...\n").strip()
    start, end = node.start_mark.index, node.end_mark.index
    tail = "\n" if node.style in ("|", ">") and text[start:end].endswith("\n") else ""
    gap = " " if start == end else ""  # `phrase:` without a value
    return text[:start] + gap + dumped + tail + text[end:]


def _inserted(text: str, line: int, added: list[str]) -> str:
    lines = text.splitlines(keepends=True)
    ending = "\r\n" if lines and lines[0].endswith("\r\n") else "\n"
    if line >= len(lines) and lines and not lines[-1].endswith("\n"):
        lines[-1] += ending
    lines[line:line] = [one + ending for one in added]
    return "".join(lines)


def _cut(text: str, start: int, end: int, column: int | None) -> str:
    """Remove lines, and the comments right above them that begin in the column given."""
    lines = text.splitlines(keepends=True)
    while column is not None and start and lines[start - 1].startswith(" " * column + "#"):
        start -= 1
    del lines[start:end]
    return "".join(lines)


def _end_of(text: str, entry: Entry) -> int:
    """Return the line after a label, with the comments below it that are indented as what it says."""
    lines, line = text.splitlines(), line_after(entry.value)
    while line < len(lines):
        stripped = lines[line].lstrip()
        if not stripped.startswith("#") or len(lines[line]) - len(stripped) <= entry.dash:
            break
        line += 1
    return line


def _key(node: Any, key: str) -> Any:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((each for each, _ in pairs if each.value == key), None)
