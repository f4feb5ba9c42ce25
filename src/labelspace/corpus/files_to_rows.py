"""Files of each format as rows: first their columns, then their rows in pieces, in constant memory.

    file_kind(path)                               format and compression, from the file name
    csv_schema, jsonl_schema                      columns and types, found before any work; Parquet stores its own
    csv_pieces, jsonl_pieces, parquet_pieces      rows in pieces, which `readers` cuts and joins into batches
    readable(path)                                turns library errors about a damaged file into one line

What a user should know about each format:

    CSV, TSV   every column is read as strings, so 007 stays 007; an empty cell is an empty string; a line that
               is blank, or has empty cells alone, is not a row, and empty cells beside the table are no
               columns; one cell may hold 64 million characters. Delimiter and encoding: see `dialects`.
    JSONL      the first SCHEMA_ROWS rows decide columns and types; a later row that does not fit them is an
               error, never a silent loss. A key that a row lacks is null.
    Parquet    read unchanged.
    XLSX       see `spreadsheets`.

`rows_to_files` does the reverse, from rows to the bytes of a file.
"""

import csv
import gzip
import io
import json
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain, islice
from typing import Any, AnyStr, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.corpus.dialects import SEPARATOR_LINE, Dialect, named, wrong_encoding
from labelspace.corpus.policy import without_surrogates
from labelspace.corpus.stores import Place, StoredFile, arrow_source, unreachable
from labelspace.corpus.wording import one_line, shown
from labelspace.errors import InputError

SCHEMA_ROWS = 1000
"""Rows of JSONL that decide columns and types; a constant, so that `batch_rows` changes no type."""

_CSV_ROWS_AT_ONCE = 4  # so that even the longest cells stay below the 2 GB of a column in a piece
_CSV_PIECE_CHARACTERS = 1024 * 1024
_CSV_CELL_CHARACTERS = 64 * 1024 * 1024  # a document may have 10 MB; a much longer cell is an unclosed quotation mark
_LINE = 2 * _CSV_CELL_CHARACTERS  # a packed file of 4 MB may hold a line of 4 GB
_END = "\x1eend_of_the_file\x1e"
_CLOSED = _END + '"'  # as the last line: it closes a quotation mark left open
_OPEN = (
    "has a quotation mark that is never closed, which takes all later lines into one cell; close it, or write it twice "
    '("") in a quoted cell.'
)
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


@contextmanager
def _csv_rows(path: Place, dialect: Dialect) -> Iterator[tuple[BinaryIO, Iterator[list[str]]]]:
    """Yield the open file and its rows with the header, then a row that is not in the file, [_CLOSED].

    A quotation mark left open takes that last row into its cell, without the mark that closes it.
    """
    csv.field_size_limit(max(csv.field_size_limit(), _CSV_CELL_CHARACTERS))
    encoding = "utf-8-sig" if dialect.encoding == "utf-8" else dialect.encoding
    with path.open("rb") as raw:
        file: Any = gzip.GzipFile(fileobj=raw) if file_kind(path)[1] else raw
        with io.TextIOWrapper(file, encoding, newline="") as lines:
            every = _lines(path, lines.readline)
            first = [line for line in islice(every, 1) if not SEPARATOR_LINE.fullmatch(line)]
            reader = csv.reader(chain(first, every, [_CLOSED]), delimiter=dialect.delimiter, strict=True)
            header = next(filter(any, reader))
            yield raw, chain([header], filter(any if len(header) > 1 else None, reader))


def _lines(path: Place, read: Callable[[int], AnyStr]) -> Iterator[AnyStr]:
    """Yield the lines that `readline` returns; never hold a longer one than any document needs."""
    number = 1
    while line := read(_LINE + 1):
        if len(line) > _LINE:
            most = _LINE // 1024**2
            raise InputError(f"{path}: line {number} has more than {most} million characters; write a row a document.")
        yield line
        number += 1


def csv_schema(path: Place, dialect: Dialect) -> pa.Schema:
    """Return the columns named in the header, all of type string."""
    with _csv_rows(path, dialect) as (_, rows):
        names = named(next(rows))
    if names == [_CLOSED]:
        raise InputError(f"{path}: is empty; its first line must name the columns.")
    if names[-1].endswith(_END):
        raise InputError(f"{path}: the header {_OPEN}")
    return pa.schema([pa.field(name, pa.string()) for name in names])


def csv_pieces(path: Place, schema: pa.Schema, dialect: Dialect) -> Iterator[Piece]:
    """Read with Python's csv: pyarrow's has threads, which can abort a process that exits soon afterwards."""
    first = 0
    with _csv_rows(path, dialect) as (file, rows):
        header = next(rows)
        names = named(header)
        places, width = [names.index(name) for name in schema.names], len(names)
        while found := _some_rows(path, rows, first):
            good = len(found)
            if len(header) > width:
                found = [row if any(row[width:]) or len(row) > len(header) else row[:width] for row in found]
            if set(map(len, found)) != {width}:
                good = next(place for place, row in enumerate(found) if len(row) != width)
            elif found[-1][-1].endswith((_END, _CLOSED)):
                good -= 1
            if good:
                columns = list(zip(*found[:good], strict=True))
                cells = [_strings(columns[place]) for place in places]
                yield Piece(first, pa.record_batch(cells, schema=schema), file.tell())
            first += good
            if good < len(found) and found[good] != [_CLOSED]:
                raise _wrong_row(path, first + 1, found[good], width, dialect)


def _strings(cells: Sequence[str]) -> pa.Array:
    """Return a column of strings; `pa.array` would import pandas, where it is installed, at a short command's cost."""
    encoded = [cell.encode() for cell in cells]
    ends = np.cumsum([0, *map(len, encoded)], dtype=np.int32)
    return pa.StringArray.from_buffers(len(cells), pa.py_buffer(ends), pa.py_buffer(b"".join(encoded)))


def _some_rows(path: Place, rows: Iterator[list[str]], first: int) -> list[list[str]]:
    """Return the next rows, some more than _CSV_PIECE_CHARACTERS."""
    found, size = list[list[str]](), 0
    try:
        while size < _CSV_PIECE_CHARACTERS and (some := list(islice(rows, _CSV_ROWS_AT_ONCE))):
            found += some
            size += sum(map(len, chain.from_iterable(some)))
    except csv.Error as error:
        if "expected after" in str(error):
            raise InputError(
                f"{path}: row {first + len(found) + 1}, or one soon after, has more text after a quotation mark that "
                'closes its cell; quote the whole cell, and write each mark in it twice ("").'
            ) from error
        if "field limit" not in str(error):
            raise
        raise InputError(
            f"{path}: row {first + len(found) + 1}, or one soon after, has a cell of more than "
            f"{_CSV_CELL_CHARACTERS // 1024**2} million characters; is a quotation mark left open?"
        ) from error
    return found


def _wrong_row(path: Place, number: int, row: list[str], width: int, dialect: Dialect) -> InputError:
    if row[-1].endswith(_END):
        return InputError(f"{path}: row {number} {_OPEN}")
    return InputError(
        f"{path}: row {number} does not fit the header with the delimiter {dialect.delimiter!r}: it has {len(row)} "
        f"cells, and there are {width} columns ({one_line(dialect.delimiter.join(row), 60)}); quote cells that contain "
        "it, close a quotation mark left open, or name another delimiter (--delimiter)."
    )


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
        lines: BinaryIO = gzip.GzipFile(fileobj=raw) if file_kind(path)[1] else raw  # type: ignore[assignment]
        for number, line in enumerate(_lines(path, lines.readline), 1):
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
