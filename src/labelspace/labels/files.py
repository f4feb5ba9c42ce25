"""Read label files (YAML, JSON, CSV) and write them (YAML, JSON).

Reading returns plain data and the line of every value; `document` interprets the data. YAML is composed into nodes and
never constructed: no tag can run code, `no` and `2024` keep their characters, and duplicate keys are found. JSON is
parsed by `json`, and composed as YAML only to find the lines.
"""

import contextlib
import csv
import io
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from labelspace.checks import did_you_mean
from labelspace.errors import LabelFileError
from labelspace.folders import write_atomically
from labelspace.labels.document import FromFile
from labelspace.labels.label import NotText, cut, quoted

READABLE = (".yaml", ".yml", ".json", ".csv")
WRITABLE = (".yaml", ".yml", ".json")
SHEETS = (".xlsx", ".xls", ".ods", ".numbers")
WIDTH = 110

TAG = "tag:yaml.org,2002:"
KINDS = {"bool": "a truth value", "int": "a number", "float": "a number", "timestamp": "a date", "merge": "a merge key"}
YAML_HINTS = {
    "mapping values are not allowed here": "put a text that holds ': ' in quotes",
    "could not find expected ':'": "check the indentation, and put a text that holds ': ' or '#' in quotes",
    "expected <block end>": "check the indentation and the quotes",
    "cannot start any token": "indent with spaces, and put a text that starts with a special character in quotes",
    "unexpected end of stream": "close the quotes",
    "expected a single document": "keep one document per file, without '---' between labels",
}

ODD_BREAKS = re.compile("[\r\x85\u2028\u2029]")

COLUMNS = ("label", "name", "phrase", "verbalizer", "description")
SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
NUMBERED = re.compile(r"description[_ ]?(\d+)")
SEPARATOR_LINE = re.compile(r"\Asep=.(?=\r?\n)")
"""A first line that tells Excel the separator; which one it is shows in the header too."""


def read_file(path: str | os.PathLike[str]) -> tuple[Any, FromFile]:
    """Read a label file into plain data.

    Args:
        path: a file whose name ends in .yaml, .yml, .json or .csv.

    Returns:
        The data as mappings, lists and texts (`NotText` for scalars that YAML does not read as text), and a source
        that knows their lines.

    Raises:
        LabelFileError: no such file, another extension, not UTF-8, a syntax error, a duplicate key.
    """
    file = Path(path)
    readers = {".json": _read_json, ".csv": _read_csv}
    extension = file.suffix.lower()
    if not file.exists():
        raise LabelFileError(f"{file}: no such file.{_hint(file)} 'labelspace init' writes a new one.")
    if extension not in READABLE:
        came = f"Got {file.suffix!r}" if file.suffix else "Got no extension"
        cure = "save it as 'CSV UTF-8'" if extension in SHEETS else "rename it"
        raise LabelFileError(f"{file}: the name of a label file ends in {', '.join(READABLE)}. {came}; {cure}.")
    return readers.get(extension, read_yaml)(read_text(file), str(file))


def write_file(path: str | os.PathLike[str], data: Mapping[str, Any]) -> None:
    """Write plain data as YAML or JSON, by extension, atomically.

    Args:
        path: a file whose name ends in .yaml, .yml or .json; an existing one is replaced.
        data: the result of `LabelSpace.to_dict`.

    Raises:
        LabelFileError: another extension.
        OutputError: the file cannot be written.
    """
    file = Path(path)
    if file.suffix.lower() not in WRITABLE:
        came = f"Got {file.suffix!r}" if file.suffix else "Got no extension"
        raise LabelFileError(f"{file}: a label file is written as {', '.join(WRITABLE)}. {came}; use one of these.")
    if file.suffix.lower() == ".json":
        text = json.dumps(data, ensure_ascii=False, indent=2) + "\n"
    else:
        text = as_yaml(data)
    write_atomically(file, text)


def as_yaml(data: Mapping[str, Any]) -> str:
    """Return plain data, the result of `LabelSpace.to_dict`, as YAML in block style."""
    return yaml.dump(dict(data), Dumper=_BlockDumper, sort_keys=False, allow_unicode=True, width=WIDTH)


def value_below(node: Any, key: str) -> Any:
    """Return the node below a key of a mapping; None if there is none, or `node` is no mapping."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return next((value for each, value in pairs if each.value == key), None)


def is_nothing(node: Any) -> bool:
    """Return whether a node is what a key without a value has."""
    return isinstance(node, yaml.ScalarNode) and node.value == "" and node.tag.endswith(":null")


def line_after(node: Any) -> int:
    """Return the number of the line after a node."""
    # A block of lines ends where the next token starts, so ask the last thing in it.
    while isinstance(node, yaml.CollectionNode) and not node.flow_style and node.value:
        node = node.value[-1]
        node = node[1] if isinstance(node, tuple) else node
    # A block scalar ends at the start of the line after it.
    return node.end_mark.line + (node.end_mark.column > 0)


def yaml_scalar(text: str) -> str:
    """Return a text as YAML in double quotes on one line.

    Example:
        >>> yaml_scalar('no "quotes"')
        '"no \\\\"quotes\\\\""'
    """
    return yaml.safe_dump(text, default_style='"', allow_unicode=True, width=sys.maxsize).strip()


class _BlockDumper(yaml.SafeDumper):
    """Indents lists under their key and writes no aliases."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        super().increase_indent(flow, False)

    def represent_text(self, text: str) -> yaml.Node:
        # PyYAML writes these unescaped and reads them back as line breaks; only double quotes escape them.
        return self.represent_scalar(TAG + "str", text, style='"' if ODD_BREAKS.search(text) else None)

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002
        return True


_BlockDumper.add_representer(str, _BlockDumper.represent_text)


def _hint(file: Path) -> str:
    try:
        beside = [other.name for other in file.parent.iterdir() if other.suffix.lower() in READABLE]
    except OSError:
        return ""
    return did_you_mean(file.name, beside)


def read_text(file: Path) -> str:
    """Return the text of a label file, without a byte-order mark.

    Raises:
        LabelFileError: it cannot be read, or is not UTF-8.
    """
    try:
        raw = file.read_bytes()
    except OSError as error:
        raise LabelFileError(f"{file}: cannot be read ({error.strerror or error}); give a readable file.") from error
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise LabelFileError(
            f"{file}:{line}: not UTF-8. Got the byte 0x{raw[error.start]:02x}; save the file as UTF-8, which "
            "spreadsheets call 'CSV UTF-8'."
        ) from error


# ---- YAML


def read_yaml(text: str, file: str) -> tuple[Any, FromFile]:
    """Read the text of a YAML label file into plain data, as `read_file` does; `file` names it in errors."""
    try:
        node = compose_yaml(text)
        lines: dict[tuple[Any, ...], int] = {}
        data = None if node is None else _plain(node, (), lines, file, set())
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise LabelFileError(
            f"{file}:{line}: YAML allows no character U+{error.character:04X} here; remove it."
        ) from error
    except yaml.MarkedYAMLError as error:
        problem = cut(" ".join(part for part in (error.context, error.problem) if part), 120)
        hint = next((hint for part, hint in YAML_HINTS.items() if part in problem), "correct the line")
        line = f"{error.problem_mark.line + 1}: " if error.problem_mark else " "
        raise LabelFileError(f"{file}:{line}not valid YAML: {problem}; {hint}.") from error
    except RecursionError as error:
        raise LabelFileError(f"{file}: nested too deep; a label file has three levels.") from error
    return data, FromFile(file, lines)


def compose_yaml(text: str) -> Any:
    """Return the root node of a YAML text, None if it is empty.

    libyaml is ten times as fast where PyYAML has it; PyYAML's own parser words the errors.

    Raises:
        yaml.YAMLError: the text is no valid YAML.
    """
    if yaml.__with_libyaml__:
        with contextlib.suppress(yaml.YAMLError):
            return yaml.compose(text, Loader=yaml.CSafeLoader)
    return yaml.compose(text, Loader=yaml.SafeLoader)


def _plain(node: yaml.Node, path: tuple[Any, ...], lines: dict[tuple[Any, ...], int], file: str, seen: set[int]) -> Any:
    """Turn a node into mappings, lists and texts, and note the line of each path in `lines`."""
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if isinstance(node, yaml.ScalarNode):
        return _scalar(node, f"{file}:{line}: ")
    if id(node) in seen:
        # Nested aliases can grow without bound, and a label file needs none.
        raise LabelFileError(f"{file}:{line}: this list or mapping is used again by an alias ('*'); write it out.")
    seen.add(id(node))
    if isinstance(node, yaml.SequenceNode) and node.tag == TAG + "seq":
        return [_plain(item, (*path, i), lines, file, seen) for i, item in enumerate(node.value)]
    if not (isinstance(node, yaml.MappingNode) and node.tag == TAG + "map"):
        raise LabelFileError(f"{file}:{line}: the tag {quoted(node.tag)} means nothing in a label file; remove it.")
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        if not isinstance(key_node, yaml.ScalarNode):
            raise LabelFileError(f"{file}:{line}: a key must be text. Got a list or a mapping; write one word.")
        key = _scalar(key_node, f"{file}:{line}: ")
        key = NotText(key_node.value or "an empty key", "nothing") if key is None else key
        if key in mapping:
            first = lines[(*path, key)]
            raise LabelFileError(
                f"{file}:{line}: the key {quoted(key_node.value)} is written twice (first in line {first}); keep one."
            )
        lines[(*path, key)] = line
        mapping[key] = _plain(value_node, (*path, key), lines, file, seen)
    return mapping


def _scalar(node: yaml.ScalarNode, where: str) -> str | NotText | None:
    kind = node.tag.removeprefix(TAG)
    if kind in ("str", "value"):
        return node.value
    if kind == "null":
        return None
    if kind in KINDS:
        return NotText(node.value, KINDS[kind])
    raise LabelFileError(f"{where}the tag {quoted(node.tag)} means nothing in a label file; remove it.")


# ---- JSON


def _read_json(text: str, file: str) -> tuple[Any, FromFile]:
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(key for key, count in Counter(key for key, _ in items).items() if count > 1)
        return dict(items)

    try:
        data = _mark_scalars(json.loads(text, object_pairs_hook=pairs)) if text.strip() else None
    except json.JSONDecodeError as error:
        cause = error.msg[:1].lower() + error.msg[1:]
        raise LabelFileError(
            f"{file}:{error.lineno}: not valid JSON: {cause} (column {error.colno}); correct the line."
        ) from error
    except (ValueError, RecursionError) as error:
        raise LabelFileError(f"{file}: not usable JSON: {cut(str(error))}; correct the file.") from error
    lines: dict[tuple[Any, ...], int] = {}
    # JSON is YAML except for tabs and a few rare escapes; where it is not, errors have no line.
    with contextlib.suppress(yaml.YAMLError, RecursionError):
        node = yaml.compose(text.replace("\t", " "), Loader=yaml.SafeLoader)
        if node is not None:
            _plain(node, (), lines, file, set())
    if twice:
        raise LabelFileError(f"{file}: the key {quoted(twice[0])} is written twice in one object; keep one.")
    return data, FromFile(file, lines)


def _mark_scalars(value: Any) -> Any:
    """Replace numbers and truth values with `NotText`, spelled as in JSON."""
    if isinstance(value, dict):
        return {key: _mark_scalars(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_mark_scalars(item) for item in value]
    if value is None or isinstance(value, str):
        return value
    return NotText(json.dumps(value), KINDS["bool" if isinstance(value, bool) else "float"])


# ---- CSV


def _separator(text: str) -> str:
    """Return what splits the header line into the most known columns, a comma in case of doubt."""
    header = next((line for line in text.splitlines() if line.strip(" ,;|\t")), "")
    return max(SEPARATORS, key=lambda mark: sum(_is_column(cell.strip(' "')) for cell in header.split(mark)))


def _is_column(cell: str) -> bool:
    column = cell.strip().lower()
    return column in COLUMNS or NUMBERED.fullmatch(column) is not None


def _read_csv(text: str, file: str) -> tuple[Any, FromFile]:
    text = SEPARATOR_LINE.sub("", text)  # its line break stays, so that lines keep their numbers
    mark = _separator(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, strict=True)
    rows: list[tuple[int, list[str]]] = []
    start = 1
    try:
        for row in reader:
            # Spreadsheets also save the empty cells beside a table.
            while row and not row[-1].strip():
                row.pop()
            if row:
                rows.append((start, row))
            start = reader.line_num + 1
    except csv.Error as error:
        raise LabelFileError(
            f"{file}:{start}: not valid CSV: {error}; put a cell that holds {SEPARATORS[mark]} or quotes in quotes, "
            "and double those."
        ) from error
    if not rows:
        raise LabelFileError(f"{file}: the file is empty; write a header line such as 'label,description'.")
    columns = _columns(rows[0][1], f"{file}:{rows[0][0]}: ")
    lines: dict[tuple[Any, ...], int] = {("labels",): rows[0][0]}
    labels: dict[str, tuple[int, dict[str, Any]]] = {}
    for line, row in rows[1:]:
        if len(row) > len(columns):
            raise LabelFileError(
                f"{file}:{line}: {len(row)} cells under {len(columns)} columns; put a cell that holds "
                f"{SEPARATORS[mark]} in quotes."
            )
        _read_row(row, columns, labels, lines, file, line)
    return {"labels": [label for _, label in labels.values()]}, FromFile(file, lines)


def _columns(header: list[str], where: str) -> list[str]:
    """Check the header and return a key for each column, `description:7` for a numbered one."""
    columns = []
    for cell in header:
        column = cell.strip().lower()
        numbered = NUMBERED.fullmatch(column)
        if not _is_column(cell):
            hint = did_you_mean(column, COLUMNS)
            raise LabelFileError(
                f"{where}unknown column {quoted(cell)}.{hint} Known: label, phrase, verbalizer, description, "
                "description_1, description_2, ..."
            )
        column = "label" if column == "name" else f"description:{int(numbered[1])}" if numbered else column
        if column in columns:
            raise LabelFileError(f"{where}the column {quoted(cell)} appears twice; keep one.")
        columns.append(column)
    if "label" not in columns:
        raise LabelFileError(
            f"{where}there is no column 'label'. Got {', '.join(map(quoted, header))}; name one of them 'label'."
        )
    return columns


def _read_row(
    row: list[str],
    columns: list[str],
    labels: dict[str, tuple[int, dict[str, Any]]],
    lines: dict[tuple[Any, ...], int],
    file: str,
    line: int,
) -> None:
    """Add one row to `labels` and the lines of its values to `lines`."""
    cells = {column: cell.strip() for column, cell in zip(columns, row, strict=False)}
    name = cells.get("label", "")
    if not name:
        raise LabelFileError(f"{file}:{line}: no label in this row; write its name in the column 'label'.")
    known = name in labels
    number, label = labels.setdefault(name, (len(labels), {"name": name, "descriptions": []}))
    path = ("labels", number)
    lines.setdefault(path, line)
    for key in ("phrase", "verbalizer"):
        value = cells.get(key)
        if value and label.setdefault(key, value) != value:
            raise LabelFileError(
                f"{file}:{line}: label {quoted(name)}: a second {key}, {quoted(value)}. "
                f"Got {quoted(label[key])} before; keep one."
            )
        if value:
            lines.setdefault((*path, key), line)
    numbered = sorted((column for column in columns if ":" in column), key=lambda column: int(column.split(":")[1]))
    texts = [text for column in ["description", *numbered] if (text := cells.get(column))]
    if known and not texts:
        raise LabelFileError(
            f"{file}:{line}: label {quoted(name)}: the description is empty in another row of the label; "
            "write one or remove the row."
        )
    for text in texts:
        lines[(*path, "descriptions", len(label["descriptions"]))] = line
        label["descriptions"].append(text)
