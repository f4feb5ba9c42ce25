"""Files of each format as rows: first their columns, then their rows in pieces, in constant memory.

    file_kind(path)                               format and compression, from the file name
    csv_schema, jsonl_schema                      columns and types, found before any work; Parquet stores its own
    csv_pieces, jsonl_pieces, parquet_pieces      rows in pieces, which `readers` cuts and joins into batches
    readable(path)                                turns library errors about a damaged file into one line

What a user should know about each format:

    CSV, TSV   every column is read as strings, so 007 stays 007; an empty cell is an empty string; a blank
               line is not a row; one row may hold up to 64 MB. Delimiter and encoding: see `dialects`.
    JSONL      the first SCHEMA_ROWS rows decide columns and types; a later row that does not fit them is an
               error, never a silent loss. A key that a row lacks is null.
    Parquet    read unchanged.
    XLSX       see `spreadsheets`.

`rows_to_files` does the reverse, from rows to the bytes of a file.
"""

import atexit
import csv
import gzip
import io
import json
import os
import re
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import islice
from typing import Any, NamedTuple, final

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from labelspace.corpus.dialects import Dialect, wrong_encoding
from labelspace.corpus.policy import without_surrogates
from labelspace.corpus.stores import Place, StoredFile, arrow_source, unpacked, unreachable
from labelspace.corpus.wording import one_line, shown
from labelspace.errors import InputError

SCHEMA_ROWS = 1000
"""Rows of JSONL that decide columns and types; a constant, so that `batch_rows` changes no type."""

_CSV_BLOCK_BYTES = 1024 * 1024
_CSV_ROW_BYTES = 64 * 1024 * 1024  # a document may have 10 MB; a much longer row is an unclosed quotation mark
_SCHEMA_BYTES = 32 * 1024 * 1024  # of JSONL read for the schema if rows are very long
_COLUMN_BYTES = 1024 * 1024  # of a Parquet column held at a time
_KINDS = {".csv": "csv", ".tsv": "tsv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".parquet": "parquet", ".xlsx": "xlsx"}
_JSON_TYPES = {
    str: pa.types.is_string,
    bool: pa.types.is_boolean,
    int: lambda kind: pa.types.is_integer(kind) or pa.types.is_floating(kind),
    float: pa.types.is_floating,
}


def file_kind(path: Place) -> tuple[str, bool]:
    """Return the format implied by a file name and whether it is compressed; InputError for an unknown extension.

    Example:
        >>> from pathlib import Path
        >>> file_kind(Path("news.csv.gz"))
        ('csv', True)
    """
    packed = path.suffix.lower() == ".gz"
    kind = _KINDS.get((path.with_suffix("") if packed else path).suffix.lower())
    if kind is None or (packed and kind in ("parquet", "xlsx")):
        raise InputError(
            f"{path}: the extension must tell the format: .csv, .tsv, .jsonl, .ndjson (each also with .gz), "
            f".parquet or .xlsx. Got {path.name!r} instead."
        )
    return kind, packed


class Piece(NamedTuple):
    """Some rows of a file: the number of the first row, the rows, and the bytes of the file read so far."""

    first: int
    rows: pa.RecordBatch
    position: int


@contextmanager
def readable(path: Place, encoding: str = "utf-8") -> Iterator[None]:
    """Turn library errors about a damaged file into one line."""
    try:
        yield
    except (pa.ArrowException, OSError, EOFError, zlib.error, UnicodeDecodeError, csv.Error) as error:
        if isinstance(error, UnicodeDecodeError) or "invalid UTF8" in str(error):  # typical of a spreadsheet's CSV
            raise wrong_encoding(path, encoding, error) from error
        if isinstance(path, StoredFile) and isinstance(error, OSError) and not isinstance(error, gzip.BadGzipFile):
            raise unreachable(path, error) from error
        raise InputError(f"{path}: cannot be read, it may be damaged or cut short ({one_line(error)}).") from error


def csv_schema(path: Place, dialect: Dialect) -> pa.Schema:
    """Return the columns named in the header, all of type string."""
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with unpacked(path) as file, io.TextIOWrapper(file, encoding, newline="") as lines:
        names = next((row for row in csv.reader(lines, delimiter=dialect.delimiter) if row), None)
    if names is None:
        raise InputError(f"{path}: is empty; its first line must name the columns.")
    return pa.schema([pa.field(name, pa.string()) for name in names])


def csv_pieces(path: Place, schema: pa.Schema, dialect: Dialect) -> Iterator[Piece]:
    """Read in small blocks, because pyarrow buffers 32 of them; double the block size if a row does not fit."""
    first, block = 0, _CSV_BLOCK_BYTES
    while True:
        try:
            for piece in _csv_blocks(path, schema, dialect, block):
                fresh = piece.first + piece.rows.num_rows - first
                if fresh > 0:
                    yield Piece(first, piece.rows.slice(piece.rows.num_rows - fresh), piece.position)
                    first += fresh
            return
        except pa.ArrowInvalid as error:
            if re.search(r"Expected \d+ columns, got", str(error)):
                raise InputError(
                    f"{path}: cannot be read, a row does not fit the header with the delimiter {dialect.delimiter!r} "
                    f"({one_line(error)}); quote cells that contain it, or name another delimiter (--delimiter)."
                ) from error
            if "Empty CSV file" in str(error):  # a header without a line break at its end; `csv_schema` has read it
                return
            if "straddling" not in str(error):
                raise
            if block >= _CSV_ROW_BYTES:
                raise InputError(
                    f"{path}: row {first + 1}, or one soon after, is longer than {_CSV_ROW_BYTES // 1024**2} MB; "
                    "is a quotation mark left open?"
                ) from error
            block *= 2


# The last readers that came to their end. A thread of pyarrow may be the one to let go of a reader's Python stream, and
# where Python is about to exit by then, the process aborts.
_ENDED: deque[Any] = deque(maxlen=8)

# A row of such cells is put after the last row of a CSV. A quotation mark left open takes it into its cell.
_END = "\x1eend of the file\x1e"


def _csv_blocks(path: Place, schema: pa.Schema, dialect: Dialect, block: int) -> Iterator[Piece]:
    packed = file_kind(path)[1]
    stream = pa.input_stream(arrow_source(path), compression="gzip" if packed else None)
    if dialect.encoding != "utf-8":
        stream = pa.transcoding_input_stream(stream, dialect.encoding, "utf-8")
    source = _WholeBreaks(stream, dialect.delimiter.join([_END] * len(csv_schema(path, dialect))))
    file_bytes, first, complete = path.stat().st_size, 0, False
    swallowed = 0  # rows left out because of the cell that took the end in

    def invalid(row: pa_csv.InvalidRow) -> str:
        nonlocal swallowed
        if _END not in row.text:
            return "error"
        swallowed = 1
        return "skip"

    reader = pa_csv.open_csv(
        pa.PythonFile(source, mode="r"),
        read_options=pa_csv.ReadOptions(block_size=block, use_threads=False),
        parse_options=pa_csv.ParseOptions(
            delimiter=dialect.delimiter, newlines_in_values=True, invalid_row_handler=invalid
        ),
        convert_options=pa_csv.ConvertOptions(
            column_types=schema, include_columns=schema.names, strings_can_be_null=False
        ),
    )
    unpacked_bytes = _unpacked_bytes(path) if packed else file_bytes

    def end() -> None:
        """Let the reader's thread, which reads ahead, come to an end; it must not call Python while Python exits."""
        source.ended = True
        with suppress(pa.ArrowException):
            for _ in reader:
                pass
        reader.close()

    atexit.register(end)
    try:
        for number, rows in enumerate(reader, 1):
            if rows.num_rows and rows.column(0)[-1].as_py() == _END:
                rows, complete = rows.slice(0, rows.num_rows - 1), True
            yield Piece(first, rows, int(file_bytes * min(1, number * block / unpacked_bytes)))
            first += rows.num_rows
        if not complete:
            raise InputError(
                f"{path}: row {first + swallowed} has a quotation mark that is never closed, which takes all later "
                'lines into one cell; close it, or write it twice ("") in a quoted cell.'
            )
    finally:
        atexit.unregister(end)
        end()
        _ENDED.append(reader)


@final
class _WholeBreaks:
    """A stream with a last row added. No block ends between CR and LF: pyarrow drops the LF from a quoted cell then."""

    closed = ended = False

    def __init__(self, stream: pa.NativeFile, last: str) -> None:
        self._stream, self._kept, self._last = stream, b"", f"\n{last}\n".encode()

    def read(self, size: int) -> bytes:
        if self.ended:
            return b""
        content = self._kept + self._stream.read(size - len(self._kept))
        if content == b"\r":  # or all would be kept, which means the end
            content += self._stream.read(1)
        if not content:
            content, self._last = self._last, b""
        self._kept = b"\r" if len(content) > 1 and content.endswith(b"\r") else b""
        return content.removesuffix(self._kept)

    def close(self) -> None:
        self.closed = True
        self._stream.close()


def _unpacked_bytes(path: Place) -> int:
    """Estimate the unpacked size from the end of a gzip file; with several members it is only the last one's."""
    with path.open("rb") as file:
        file.seek(-4, os.SEEK_END)
        return max(int.from_bytes(file.read(), "little"), path.stat().st_size)


def parquet_pieces(path: Place, schema: pa.Schema, ahead: int, size: int) -> Iterator[Piece]:
    """Read `size` rows at a time in schema order, starting at the row group that holds row `ahead`."""
    file_bytes = path.stat().st_size
    with pq.ParquetFile(arrow_source(path), buffer_size=_COLUMN_BYTES, pre_buffer=False) as file:
        groups = [file.metadata.row_group(group).num_rows for group in range(file.metadata.num_row_groups)]
        first = skipped = 0
        while skipped < len(groups) and first + groups[skipped] <= ahead:
            first, skipped = first + groups[skipped], skipped + 1
        yield Piece(first, _no_rows(schema), file_bytes * first // max(1, sum(groups)))
        wanted = list(range(skipped, len(groups)))
        for rows in file.iter_batches(size, row_groups=wanted, columns=schema.names):
            columns = [_cast(rows.column(field.name), field.type) for field in schema]
            rows_behind = first + rows.num_rows
            yield Piece(first, pa.record_batch(columns, schema=schema), file_bytes * rows_behind // sum(groups))
            first = rows_behind


def _cast(column: pa.Array, kind: pa.DataType) -> pa.Array:
    return column if column.type == kind else column.cast(kind)


def _json_lines(path: Place) -> Iterator[tuple[int, bytes, int]]:
    """Yield the number, content and end position of each line that is not blank."""
    with path.open("rb") as raw:
        lines: Iterable[bytes] = gzip.GzipFile(fileobj=raw) if file_kind(path)[1] else raw
        for number, line in enumerate(lines, 1):
            content = line.strip() if number > 1 else line.removeprefix(b"\xef\xbb\xbf").strip()
            if content:
                yield number, content, raw.tell()


def _json_row(path: Place, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: line {number} is not valid JSON ({one_line(error)}).") from error
    if not isinstance(row, dict):
        raise InputError(f"{path}: line {number} must be an object with named values. Got {one_line(row, 40)} instead.")
    # Only an escape can produce a surrogate, which UTF-8 cannot hold.
    return _without_surrogates(row) if b"\\ud" in line.lower() else row


def jsonl_schema(paths: Sequence[Place], wanted: list[str]) -> pa.Schema:
    """Return the columns and types of the first SCHEMA_ROWS rows, counted over all files."""
    rows, size = [], 0
    places: list[str] = []
    for path in paths:
        with readable(path):
            for row_number, (number, line, _) in enumerate(_json_lines(path), 1):
                if len(rows) == SCHEMA_ROWS or size > _SCHEMA_BYTES:
                    break
                rows.append(_json_row(path, number, line))
                places.append(f"{path}: row {row_number}")
                size += len(line)
    if not rows:  # without rows any columns will do, so return those requested
        return pa.schema([(name, pa.string()) for name in wanted])
    fields = []
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [row.get(name) for row in rows]
        try:
            fields.append((name, _without_null(pa.array(values).type)))
        except (pa.ArrowException, OverflowError) as error:
            odd = _first_odd(values)
            which = "" if odd is None else f": {places[odd]} has {shown(values[odd])}"
            raise InputError(
                f"{paths[0]}: the values of {name!r} in the first {len(rows)} rows do not share one type{which} "
                f"({one_line(error)}); give the column one type."
            ) from error
    return pa.schema(fields)


def _first_odd(values: list[Any]) -> int | None:
    """Return the index of the first value that Arrow cannot store, alone or beside the first value."""
    first = next((value for value in values if value is not None), None)
    for place, value in enumerate(values):
        try:
            pa.array([first, value])
        except (pa.ArrowException, OverflowError):
            return place
    return None


def jsonl_pieces(path: Place, schema: pa.Schema, ahead: int, size: int) -> Iterator[Piece]:
    """Read `size` rows at a time, starting at row `ahead`; each row must fit the schema."""
    lines = _json_lines(path)
    first = sum(1 for _ in islice(lines, ahead))
    yield Piece(first, _no_rows(schema), 0)
    while chunk := list(islice(lines, size)):
        rows = [_json_row(path, number, line) for number, line, _ in chunk]
        yield Piece(first, _json_batch(path, rows, schema, first), chunk[-1][2])
        first += len(rows)


def _json_batch(path: Place, rows: list[dict[str, Any]], schema: pa.Schema, first: int) -> pa.RecordBatch:
    names = set(schema.names)
    for row_number, row in enumerate(rows, first + 1):
        if not row.keys() <= names:
            new = next(name for name in row if name not in names)
            raise InputError(f"{path}: row {row_number} has the key {new!r}, which none of the first rows has.")
        for name, value in row.items():
            if not _fits(value, schema.field(name).type):
                raise InputError(
                    f"{path}: row {row_number} has {shown(value)} as {name!r}, where the first rows "
                    f"have {schema.field(name).type}; give the column one type."
                )
    try:
        columns = [pa.array([row.get(field.name) for row in rows], field.type) for field in schema]
    except (pa.ArrowException, OverflowError) as error:
        raise InputError(f"{path}: a number after row {first} is too large ({one_line(error)}).") from error
    return pa.record_batch(columns, schema=schema)


def _fits(value: Any, kind: pa.DataType) -> bool:
    """Return whether a type keeps a JSON value whole; Arrow itself would drop fractions and new keys."""
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
    """Read a column that starts with only nulls as strings."""
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
