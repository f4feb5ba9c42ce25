"""Tables read as a stream: every row once, in batches of one size, in constant memory.

    open_table(source)  ->  DocumentTable  ->  .batches()  ->  pyarrow.RecordBatch of exactly `batch_rows` rows

A batch boundary depends on `batch_rows` alone, never on row groups, blocks or files, so that work can be
taken up again at any boundary. Three decisions a user should know:

    CSV, TSV   every column is read as strings, so 007 stays 007; an empty cell is an empty string; a blank
               line is no row; one row may hold up to 64 MB.
    JSONL      columns and types are those of the first SCHEMA_ROWS rows; a later row that does not fit them
               is an error and never a silent loss. A key that a row lacks is null.
    Parquet    taken as it is.

Rows are counted from 1 in messages, without the header.
"""

import csv
import glob
import gzip
import hashlib
import json
import os
import warnings
import weakref
import zlib
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from labelspace.checks import check_number
from labelspace.corpus.documents import (
    DocumentPolicy,
    MemorySource,
    as_arrow_table,
    missing_column,
    one_line,
    plain_schema,
    without_surrogates,
)
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning

SCHEMA_ROWS = 1000
"""Rows of JSONL that tell columns and types; a constant, so that `batch_rows` changes no type."""

_CSV_BLOCK_BYTES = 1024 * 1024
_CSV_ROW_BYTES = 64 * 1024 * 1024  # a document may have 10 MB; a row much longer is an open quotation mark
_SCHEMA_BYTES = 32 * 1024 * 1024  # of JSONL held for its schema, where rows are very long
_COLUMN_BYTES = 1024 * 1024  # of a Parquet column held at a time
_END_BYTES = 64 * 1024  # of a file that go into its fingerprint, at either end
_KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet"}
_TEXT_TYPES = ("string", "large_string", "binary", "large_binary", "null", "dictionary<")
_JSON_TYPES = {
    str: pa.types.is_string,
    bool: pa.types.is_boolean,
    int: lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    float: pa.types.is_floating,
}


@final
class DocumentTable:
    """A table with a text column, read in batches; made by `open_table`."""

    def __init__(
        self, source: "MemorySource | _FileSource", *, text: str, id: str | None, label: str | None, batch_rows: int
    ) -> None:
        self.text, self.id, self.label, self.batch_rows = text, id, label, batch_rows
        self.schema: pa.Schema = source.schema
        self.columns: list[str] = source.schema.names
        self.rows: int | None = source.rows  # None where only reading would tell: CSV, JSONL
        self.bytes_total: int = source.bytes_total
        self._source = source
        self._policy = DocumentPolicy(source.place)
        self._noted = False
        # Where the batches handed out last begin. Weak, so that a batch dies with its user.
        self._begins: deque[tuple[weakref.ref[pa.RecordBatch], int]] = deque(maxlen=64)

    def bytes_read(self) -> int:
        """Bytes of `bytes_total` that are behind us, good for a progress bar."""
        return self._source.bytes_read()

    def batches(self, skip_rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows after the first `skip_rows`, `batch_rows` at a time; only the last batch may be shorter.

        Raises:
            InputError: a damaged file, or a row that does not fit the others; what was yielded stays good.
        """
        check_number("skip_rows", skip_rows, least=0, whole=True)
        row = skip_rows
        for batch in _in_batches(self._source.pieces(skip_rows, self.batch_rows), self.batch_rows):
            self._begins.append((weakref.ref(batch), row))
            yield batch
            row += batch.num_rows

    def texts(self, batch: pa.RecordBatch) -> list[str]:
        """Return the documents of a batch that `batches` yielded, under the same policy as `as_documents`.

        Empty and overlong documents are warned of once for the whole table.

        Raises:
            InputError: a row without a text; the message names file and row.
        """
        first = next((row for known, row in self._begins if known() is batch), 0)
        documents = self._policy.clean(batch.column(self.text).to_pylist(), first)
        for note in self._policy.notes():
            if not self._noted:
                warnings.warn(f"{note} Later ones are not reported.", LabelSpaceWarning, stacklevel=2)
                self._noted = True
        return documents

    def place(self, row: int) -> str:
        """Name a row, counted from 0 over all files, for a message."""
        return self._source.place(row)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells this input from another, without folders, as plain values that JSON can hold."""
        options = {"text": self.text, "id": self.id, "label": self.label, "batch_rows": self.batch_rows}
        return {**self._source.fingerprint(), **options}


def open_table(
    source: object, *, text: str = "text", id: str | None = None, label: str | None = None, batch_rows: int = 1024
) -> DocumentTable:
    """Open a table of documents without reading it.

    Args:
        source: a path or glob of .csv, .tsv, .jsonl, .ndjson (each also .gz) or .parquet files, a list of
            paths, or a pandas, polars, Arrow or HF table in memory. Files of a glob are read in sorted order.
        text: name of the column that holds the documents.
        id: name of the column that identifies them, if any.
        label: name of the column that holds their labels, if any.
        batch_rows: rows in a batch.

    Raises:
        ColumnError: a column that is not there; lists those that are.
        InputError: no such file, an unknown format, a damaged file, files whose columns differ.
        ConfigError: `batch_rows` is no positive whole number.

    Example:
        >>> table = open_table(pa.table({"text": ["a", "b", "c"]}), batch_rows=2)
        >>> [table.texts(batch) for batch in table.batches()]
        [['a', 'b'], ['c']]
    """
    check_number("batch_rows", batch_rows, least=1, whole=True)
    wanted = [name for name in (text, id, label) if name is not None]
    paths = _paths(source)
    opened = MemorySource(as_arrow_table(source)) if paths is None else _FileSource(paths, wanted)
    for name in wanted:
        if name not in opened.schema.names:
            raise missing_column(opened.name, name, opened.schema.names)
    kind = opened.schema.field(text).type
    if not str(kind).startswith(_TEXT_TYPES):
        raise ColumnError(f"{opened.name}: column {text!r} holds {kind}, not texts; choose another column.")
    return DocumentTable(opened, text=text, id=id, label=label, batch_rows=batch_rows)


def file_kind(path: Path) -> tuple[str, bool]:
    """Return the format behind a file name and whether it is compressed; InputError for an unknown extension.

    Example:
        >>> file_kind(Path("news.csv.gz"))
        ('csv', True)
    """
    packed = path.suffix.lower() == ".gz"
    kind = _KINDS.get((path.with_suffix("") if packed else path).suffix.lower())
    if kind is None or (packed and kind == "parquet"):
        raise InputError(
            f"{path}: the extension must tell the format: .csv, .tsv, .jsonl, .ndjson (each also with .gz) or "
            f".parquet. Got {path.name!r} instead."
        )
    return kind, packed


class _Piece(NamedTuple):
    """Some rows of a file: the number of the first one, the rows, and how many bytes are behind us after them."""

    first: int
    rows: pa.RecordBatch
    position: int


@final
class _FileSource:
    """The rows of one or several files of one format."""

    def __init__(self, paths: list[Path], wanted: list[str]) -> None:
        for path in paths:
            if not path.is_file():
                raise InputError(f"{path}: {'is a folder, not a file' if path.is_dir() else 'no such file'}.")
            if file_kind(path)[0] != file_kind(paths[0])[0]:
                raise InputError(f"{path}: files read together must have one format; {paths[0]} has another.")
        self._paths, self._kind = paths, file_kind(paths[0])[0]
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._sizes = [path.stat().st_size for path in paths]
        self.bytes_total, self._read = sum(self._sizes), 0
        self._begins: list[tuple[int, Path]] = []
        self.rows: int | None = None
        self.schema = _jsonl_schema(paths, wanted) if self._kind == "jsonl" else self._common_schema()

    def bytes_read(self) -> int:
        return self._read

    def pieces(self, skip: int, size: int) -> Iterator[pa.RecordBatch]:
        self._begins, self._read = [], 0
        rows_before = bytes_before = 0
        for path, file_bytes in zip(self._paths, self._sizes, strict=True):
            self._begins.append((rows_before, path))
            ahead = max(0, skip - rows_before)  # rows of this file that nobody wants
            end = position = 0
            with _readable(path):
                for first, rows, now in self._file_pieces(path, ahead, size):
                    end, previous, position = first + rows.num_rows, position, now
                    for start in range(max(0, ahead - first), rows.num_rows, size):
                        part = rows.slice(start, size)
                        # A reader runs ahead of us; what counts as read is what was handed out.
                        share = (start + part.num_rows) / rows.num_rows
                        self._read = bytes_before + int(previous + share * (position - previous))
                        yield part
            rows_before, bytes_before = rows_before + end, bytes_before + file_bytes
            self._read = bytes_before

    def place(self, row: int) -> str:
        first, path = next((begin for begin in reversed(self._begins) if begin[0] <= row), (0, self._paths[0]))
        return f"{path}: row {row - first + 1}"

    def fingerprint(self) -> dict[str, Any]:
        return {"files": [_file_fingerprint(path) for path in self._paths], "columns": self.schema.names}

    def _file_pieces(self, path: Path, ahead: int, size: int) -> Iterator[_Piece]:
        if self._kind == "parquet":
            return _parquet_pieces(path, self.schema, ahead, size)
        if self._kind == "jsonl":
            return _jsonl_pieces(path, self.schema, ahead, size)
        return _csv_pieces(path, self.schema)

    def _common_schema(self) -> pa.Schema:
        """Return the columns of all files; a file that differs is found here, before any work."""
        schemas = [self._file_schema(path) for path in self._paths]
        for path, schema in zip(self._paths, schemas, strict=True):
            if len(set(schema.names)) < len(schema.names):
                raise ColumnError(f"{path}: two columns share a name; rename one. Its columns: {_listed(schema)}.")
            if {field.name: field.type for field in schema} != {field.name: field.type for field in schemas[0]}:
                raise InputError(
                    f"{path}: files read together must have the same columns. It has {_listed(schema)}; "
                    f"{self._paths[0]} has {_listed(schemas[0])}."
                )
        return schemas[0]

    def _file_schema(self, path: Path) -> pa.Schema:
        with _readable(path):
            if self._kind != "parquet":
                return _csv_schema(path)
            with pq.ParquetFile(path) as file:
                self.rows = (self.rows or 0) + file.metadata.num_rows
                return plain_schema(file.schema_arrow)


def _csv_options(path: Path) -> tuple[str, bool]:
    kind, packed = file_kind(path)
    return "," if kind == "csv" else "\t", packed


def _csv_schema(path: Path) -> pa.Schema:
    delimiter, packed = _csv_options(path)
    opener = gzip.open if packed else open
    with opener(path, "rt", encoding="utf-8-sig", newline="") as lines:
        names = next((row for row in csv.reader(lines, delimiter=delimiter) if row), None)
    if names is None:
        raise InputError(f"{path}: is empty; its first line must name the columns.")
    return pa.schema([pa.field(name, pa.string()) for name in names])


def _csv_pieces(path: Path, schema: pa.Schema) -> Iterator[_Piece]:
    """Read with small blocks, because pyarrow holds 32 of them ready; and with larger ones once a row needs it."""
    first, block = 0, _CSV_BLOCK_BYTES
    while True:
        try:
            for piece in _csv_blocks(path, schema, block):
                fresh = piece.first + piece.rows.num_rows - first
                if fresh > 0:
                    yield _Piece(first, piece.rows.slice(piece.rows.num_rows - fresh), piece.position)
                    first += fresh
            return
        except pa.ArrowInvalid as error:
            if "straddling" not in str(error):
                raise
            if block >= _CSV_ROW_BYTES:
                raise InputError(
                    f"{path}: row {first + 1}, or one soon after, is longer than {_CSV_ROW_BYTES // 1024**2} MB; "
                    "is a quotation mark left open?"
                ) from error
            block *= 2


def _csv_blocks(path: Path, schema: pa.Schema, block: int) -> Iterator[_Piece]:
    delimiter, packed = _csv_options(path)
    reader = pa_csv.open_csv(
        pa.input_stream(str(path), compression="gzip" if packed else None),
        read_options=pa_csv.ReadOptions(block_size=block, use_threads=False),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(
            column_types=schema, include_columns=schema.names, strings_can_be_null=False
        ),
    )
    file_bytes, first = path.stat().st_size, 0
    unpacked_bytes = _unpacked_bytes(path) if packed else file_bytes
    for number, rows in enumerate(reader, 1):
        yield _Piece(first, rows, int(file_bytes * min(1, number * block / unpacked_bytes)))
        first += rows.num_rows


def _unpacked_bytes(path: Path) -> int:
    """Return the size that a gzip file tells at its end; of several members it is the last one's, so a guess."""
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return max(int.from_bytes(file.read(), "little"), path.stat().st_size)


def _parquet_pieces(path: Path, schema: pa.Schema, ahead: int, size: int) -> Iterator[_Piece]:
    file_bytes = path.stat().st_size
    with pq.ParquetFile(path, buffer_size=_COLUMN_BYTES, pre_buffer=False) as file:
        groups = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        first = skipped = 0
        while skipped < len(groups) and first + groups[skipped] <= ahead:
            first, skipped = first + groups[skipped], skipped + 1
        yield _Piece(first, _no_rows(schema), file_bytes * first // max(1, sum(groups)))
        for rows in file.iter_batches(size, row_groups=list(range(skipped, len(groups)))):
            columns = [_cast(rows.column(field.name), field.type) for field in schema]
            rows_behind = first + rows.num_rows
            yield _Piece(first, pa.record_batch(columns, schema=schema), file_bytes * rows_behind // sum(groups))
            first = rows_behind


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _json_lines(path: Path) -> Iterator[tuple[int, bytes, int]]:
    """Yield number, content and end position of each line that is not blank."""
    with path.open("rb") as raw:
        lines: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if file_kind(path)[1] else raw
        for number, line in enumerate(lines, 1):
            content = line.strip() if number > 1 else line.removeprefix(b"\xef\xbb\xbf").strip()
            if content:
                yield number, content, raw.tell()


def _json_row(path: Path, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: line {number} is not valid JSON ({one_line(error)}).") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}: line {number} must be an object with named values. Got {one_line(row, 40)} instead.")
    # Only an escape can bring in a surrogate, and UTF-8 cannot hold it.
    return _without_surrogates(row) if b"\\ud" in line.lower() else row


def _jsonl_schema(paths: list[Path], wanted: list[str]) -> pa.Schema:
    rows, size = [], 0
    for path in paths:
        with _readable(path):
            for number, line, _ in _json_lines(path):
                if len(rows) == SCHEMA_ROWS or size > _SCHEMA_BYTES:
                    break
                rows.append(_json_row(path, number, line))
                size += len(line)
    if not rows:  # no row in, no row out: whatever was asked for is there
        return pa.schema([(name, pa.string()) for name in wanted])
    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        try:
            fields.append((name, _without_null(pa.array([row.get(name) for row in rows]).type)))
        except (pa.ArrowException, OverflowError) as error:
            raise InputError(
                f"{paths[0]}: the values of {name!r} in the first {len(rows)} rows do not share one type "
                f"({one_line(error)})."
            ) from error
    return pa.schema(fields)


def _jsonl_pieces(path: Path, schema: pa.Schema, ahead: int, size: int) -> Iterator[_Piece]:
    lines = _json_lines(path)
    first = sum(1 for _ in islice(lines, ahead))
    yield _Piece(first, _no_rows(schema), 0)
    while chunk := list(islice(lines, size)):
        rows = [_json_row(path, number, line) for number, line, _ in chunk]
        yield _Piece(first, _json_batch(path, rows, schema, first), chunk[-1][2])
        first += len(rows)


def _json_batch(path: Path, rows: list[dict[str, Any]], schema: pa.Schema, first: int) -> pa.RecordBatch:
    names = set(schema.names)
    for row_number, row in enumerate(rows, first + 1):
        if not row.keys() <= names:
            new = next(name for name in row if name not in names)
            raise InputError(f"{path}: row {row_number} has the key {new!r}, which no row at the beginning has.")
        for name, value in row.items():
            if not _fits(value, schema.field(name).type):
                raise InputError(
                    f"{path}: row {row_number} has {one_line(repr(value), 60)} as {name!r}, where the rows at the "
                    f"beginning have {schema.field(name).type}; give the column one type."
                )
    try:
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"{path}: a number after row {first} is too large ({one_line(error)}).") from error
    return pa.record_batch(columns, schema=schema)


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Whether Arrow keeps all of a JSON value in that type; on its own it would drop fractions and new keys."""
    if value is None:
        return True
    if isinstance(value, dict):
        return pa.types.is_struct(kind) and all(
            kind.get_field_index(name) >= 0 and _fits(inner, kind.field(name).type) for name, inner in value.items()
        )
    if isinstance(value, list):
        return pa.types.is_list(kind) and all(_fits(inner, kind.value_type) for inner in value)
    return _JSON_TYPES[type(value)](kind)


def _without_null(kind: pa.DataType) -> pa.DataType:
    """A column that begins with nothing but nulls is taken for strings."""
    if pa.types.is_null(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_null(kind.value_type))
    if pa.types.is_struct(kind):
        fields = [kind.field(number) for number in range(kind.num_fields)]
        return pa.struct([(field.name, _without_null(field.type)) for field in fields])
    return kind


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_without_surrogates(inner) for inner in value]
    if isinstance(value, dict):
        return {without_surrogates(name): _without_surrogates(inner) for name, inner in value.items()}
    return value


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def _in_batches(pieces: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Cut and join pieces to batches of exactly `size` rows; the last may be shorter."""
    held: list[pa.RecordBatch] = []
    count = 0
    for piece in pieces:
        rest = piece
        while count + rest.num_rows >= size:
            yield _joined([*held, rest.slice(0, size - count)])
            held, count, rest = [], 0, rest.slice(size - count)
        if rest.num_rows:
            held.append(rest)
            count += rest.num_rows
    if held:
        yield _joined(held)


def _joined(pieces: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(pieces) == 1:
        return pieces[0]
    joined = pa.Table.from_batches(pieces).combine_chunks().to_batches()
    if len(joined) != 1:
        raise InputError("one batch holds more than 2 GB of text; choose fewer batch_rows.")
    return joined[0]


def _paths(source: object) -> list[Path] | None:
    """Return the files that `source` names, or None where it names none."""
    items: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    if not items or not all(isinstance(item, (str, os.PathLike)) for item in items):
        return None
    paths: list[Path] = []
    for item in items:
        try:
            found = Path(item).exists()
        except (OSError, ValueError) as error:
            raise InputError(f"{one_line(item, 60)!r} is not a path ({one_line(error, 60)}).") from error
        if found or not glob.has_magic(str(item)):
            paths.append(Path(item))
            continue
        matches = sorted(glob.glob(str(item), recursive=True))  # noqa: PTH207 - Path.glob refuses absolute patterns
        if not matches:
            raise InputError(f"{item}: no file matches.")
        paths.extend(Path(match) for match in matches)
    return paths


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what the libraries say about a damaged file into one line."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path}: cannot be read, it may be damaged or cut short ({one_line(error)}).") from error


def _file_fingerprint(path: Path) -> dict[str, Any]:
    stat = path.stat()
    with path.open("rb") as file:
        head = file.read(_END_BYTES)
        file.seek(max(0, stat.st_size - _END_BYTES))
        tail = file.read(_END_BYTES)
    digest = hashlib.sha256(head + tail).hexdigest()
    return {"name": path.name, "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256_ends": digest}


def _listed(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"
