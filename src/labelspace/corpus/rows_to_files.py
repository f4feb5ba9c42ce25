"""Rows as the bytes of a file: one chunk alone, and all chunks as one file.

    Format(path, schema)  ->  .encode(batch)          bytes of one chunk
                          ->  .assemble(file, parts)  the complete file, made from its chunks

    Parquet    one row group per chunk.
    CSV, TSV   RFC 4180, quoted only where needed, lines end in LF; null is an empty cell, nested values are
               JSON text.
    JSONL      UTF-8; NaN and infinities become null, because JSON has no such numbers.
    .xlsx      numbers and booleans as such, the rest as in CSV, NaN and infinities as empty cells; its chunks are
               Parquet.

`files_to_rows` does the reverse, from files to rows; `writers` stores the bytes so that they survive a kill.
"""

import base64
import gzip
import io
import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, BinaryIO, final

import pyarrow as pa
import pyarrow.compute
import pyarrow.parquet as pq

from labelspace.corpus.files_to_rows import file_kind
from labelspace.corpus.spreadsheets import Cell, check_sheet, sheet_writer, write_sheet
from labelspace.corpus.stores import Place
from labelspace.corpus.wording import listed, one_line
from labelspace.errors import InputError

_GZIP_LEVEL = 3  # a third of the time of Python's own 9, which is longer than a model of words takes; files 8 % larger
_CELL = pa.large_string()
_arrow: Any = pyarrow.compute  # type checkers do not know its functions


@final
class Format:
    """Turns rows into bytes: one chunk alone, and all chunks as one file."""

    def __init__(self, path: Place, schema: pa.Schema) -> None:
        self._kind, self._packed = file_kind(path)
        self._path, self._schema = path, schema
        self._delimiter = "\t" if self._kind == "tsv" else ","
        chunks = "parquet" if self._kind == "xlsx" else self._kind
        self.suffix = f"{chunks}.gz" if self._packed else chunks
        if self._kind == "xlsx":
            sheet_writer()
            check_sheet(path, schema.names, [], 0)
        if len(set(schema.names)) < len(schema.names):
            raise InputError(f"{path}: two columns would share a name: {listed(schema)}; rename one of them.")
        try:
            self.encode(pa.RecordBatch.from_pylist([], schema=schema))
        except pa.ArrowException as error:
            raise InputError(f"{path}: {self._kind} cannot hold these columns ({one_line(error)}).") from error

    def check(self, batch: pa.RecordBatch, before: int) -> None:
        """Refuse rows that the format cannot hold, in all or some of its columns; only .xlsx has limits.

        Args:
            batch: the rows.
            before: number of rows before them.
        """
        if self._kind == "xlsx":
            check_sheet(self._path, self._schema.names, map(_sheet_cells, batch.columns), before + batch.num_rows)

    def encode(self, batch: pa.RecordBatch) -> bytes:
        """Return the bytes of one chunk; a chunk of CSV has no header."""
        if self.suffix == "parquet":
            sink = io.BytesIO()
            self._write_parquet(sink, [pa.Table.from_batches([batch], self._schema)])
            return sink.getvalue()
        if self._kind == "jsonl":
            columns = [_json_values(column) for column in batch.columns]
            rows = zip(*columns, strict=True)
            lines = [_json_text(dict(zip(self._schema.names, row, strict=True))) for row in rows]
        else:
            lines = self._csv_lines([_csv_cells(column) for column in batch.columns])
        return self._pack(lines)

    def assemble(self, file: BinaryIO, parts: Iterator[bytes]) -> None:
        """Write the complete file from the bytes of its chunks; CSV gets its header here."""
        if self._kind == "parquet":
            self._write_parquet(file, (pq.ParquetFile(pa.BufferReader(data)).read() for data in parts))
            return
        if self._kind == "xlsx":
            chunks = (pq.ParquetFile(pa.BufferReader(data)).read() for data in parts)
            batches = (batch for chunk in chunks for batch in chunk.cast(self._schema).to_batches())
            rows = (row for batch in batches for row in zip(*map(_sheet_cells, batch.columns), strict=True))
            write_sheet(file, self._schema.names, rows)
            return
        if self._kind != "jsonl":
            file.write(self._pack(self._csv_lines([pa.array([name], _CELL) for name in self._schema.names])))
        for data in parts:  # gzip files may be concatenated
            file.write(data)

    def _write_parquet(self, sink: BinaryIO, tables: Iterable[pa.Table]) -> None:
        with pq.ParquetWriter(sink, self._schema) as writer:
            for table in tables:
                writer.write_table(table.cast(self._schema), row_group_size=max(1, table.num_rows))

    def _pack(self, lines: list[str]) -> bytes:
        data = "\n".join([*lines, ""]).encode()
        return gzip.compress(data, _GZIP_LEVEL, mtime=0) if self._packed else data

    def _csv_lines(self, columns: Sequence[pa.Array]) -> list[str]:
        """Return the lines of rows, from cells [column row]; by whole columns, because a loop over cells is slow."""
        if len(columns) == 1:
            return [cell or '""' for cell in self._quoted(columns[0]).to_pylist()]  # a blank line would not be a row
        return _joined([self._quoted(column) for column in columns], self._delimiter).to_pylist()

    def _quoted(self, cells: pa.Array) -> pa.Array:
        """Put cells that hold a delimiter, a quotation mark or a line break in quotation marks."""
        odd = _arrow.match_substring_regex(cells, f'["\r\n{self._delimiter}]')
        if not _arrow.any(odd).as_py():
            return cells
        return _arrow.if_else(odd, _joined(['"', _arrow.replace_substring(cells, '"', '""'), '"'], ""), cells)


def _joined(parts: Sequence[Any], separator: str) -> pa.Array:
    """Join columns row by row; a str is the same in each row, and null is empty."""
    columns = [pa.scalar(part, _CELL) if isinstance(part, str) else part for part in parts]
    end = pa.scalar(separator, _CELL)
    return _arrow.binary_join_element_wise(*columns, end, null_handling="replace", null_replacement="")


def _csv_cells(column: pa.Array) -> pa.Array:
    """Return the cells of a column as strings; null stays null."""
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return column.cast(_CELL)
    if pa.types.is_nested(kind) or isinstance(column, (pa.ExtensionArray, pa.DictionaryArray)) or _is_bytes(kind):
        values = _json_values(column)
        return pa.array([value if isinstance(value, str | None) else _json_text(value) for value in values], _CELL)
    return _as_strings(column).cast(_CELL)


def _sheet_cells(column: pa.Array) -> list[Cell]:
    """Return the cells of a column; null stays null."""
    kind = column.type
    if pa.types.is_boolean(kind) or pa.types.is_integer(kind):
        return column.to_pylist()
    if pa.types.is_floating(kind):
        return [None if value is None else float(value) for value in _json_values(column)]
    return _csv_cells(column).to_pylist()


def _json_values(column: pa.Array) -> list[Any]:
    """Return the values of a column as JSON values."""
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    if isinstance(column, pa.DictionaryArray):
        column = column.dictionary_decode()
    if pa.types.is_temporal(column.type):
        return _as_strings(column).to_pylist()
    if _is_bytes(column.type):
        return [None if value is None else _plain(value) for value in column.to_pylist()]
    if pa.types.is_float32(column.type):  # 0.9, not 0.8999999761581421
        return [None if value is None else float(value) for value in _as_strings(column).to_pylist()]
    return column.to_pylist()


def _as_strings(column: pa.Array) -> pa.Array:
    try:
        return column.cast(pa.string())
    except pa.ArrowException:  # durations and other rare types
        return pa.array([None if value is None else str(value) for value in column.to_pylist()], pa.string())


def _json_text(value: Any) -> str:
    try:
        return _JSON.encode(value)
    except ValueError:
        return json.dumps(_finite(value), ensure_ascii=False, default=_plain)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    return value


def _plain(value: Any) -> str:
    if isinstance(value, bytes):
        try:
            return value.decode("utf-8")
        except UnicodeDecodeError:
            return base64.b64encode(value).decode()
    return str(value)


def _is_bytes(kind: pa.DataType) -> bool:
    return pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind)


_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, default=_plain)  # json.dumps would make one per row
