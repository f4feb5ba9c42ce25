"""Where rows come from: files of one format, a stream, or a table in memory; all as pieces of some rows.

    opened(source)  ->  a source  ->  .pieces(skip, size)  ->  pyarrow.RecordBatch of up to `size` rows

`readers` makes batches of the pieces. Every source has these:

schema, rows                 its columns; its number of rows, None if only reading would tell
bytes_total, bytes_read()    for a progress bar
place(row)                   name of a row, counted from 0, for a message
fingerprint()                values that identify it, as plain JSON values
"""

import glob
import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.corpus.class_labels import class_names
from labelspace.corpus.dialects import Dialect, dialect_of, own_delimiter
from labelspace.corpus.files_to_rows import (
    Piece,
    csv_pieces,
    csv_schema,
    file_kind,
    jsonl_pieces,
    jsonl_schema,
    parquet_pieces,
    readable,
)
from labelspace.corpus.in_memory import MemorySource, as_arrow_table, kind_of, plain_schema
from labelspace.corpus.spreadsheets import excel_pieces, excel_schema, sheet_numbers
from labelspace.corpus.stores import Place, StoredFile, arrow_source, is_address, stored_files
from labelspace.corpus.wording import listed, one_line
from labelspace.errors import ColumnError, InputError, warn

STREAM = "datasets.IterableDataset"

_END_BYTES = 64 * 1024  # hashed at either end of a file for its fingerprint


def opened(source: object, wanted: list[str], asked: tuple[str, str]) -> "Source":
    """Return where the rows of `open_table`'s source come from.

    Args:
        source: as for `open_table`.
        wanted: columns that are needed.
        asked: delimiter and encoding of .csv and .tsv files, each may be `"auto"`.
    """
    paths = _paths(source)
    if paths is not None:
        return FileSource(paths, wanted, asked)
    return StreamSource(source) if kind_of(source) == STREAM else MemorySource(as_arrow_table(source))


@final
class StreamSource:
    """The rows of a `datasets.IterableDataset`; each pass starts the stream again."""

    name = "the stream"
    rows, bytes_total = None, 0

    def __init__(self, stream: Any) -> None:
        self._stream = stream.with_format("arrow")
        first = next(iter(self._stream.iter(batch_size=100)), None)
        if first is None:
            raise InputError("the stream has no rows; give one that has some.")
        # The metadata of a batch may be older than the features, or be missing.
        said = None if stream.features is None else stream.features.arrow_schema.metadata
        self.schema = plain_schema(first.schema.with_metadata(said))

    def bytes_read(self) -> int:
        return 0

    def pieces(self, skip: int, size: int) -> Iterator[pa.RecordBatch]:
        row, tables = skip, iter((self._stream.skip(skip) if skip else self._stream).iter(batch_size=size))
        while True:
            try:
                table = next(tables).cast(self.schema)
            except StopIteration:
                return
            except (ValueError, pa.ArrowInvalid) as error:
                raise InputError(
                    f"{self.place(row)} or one soon after has other columns than the first rows ({one_line(error)}); "
                    "give all rows the same columns."
                ) from error
            row += table.num_rows
            yield from table.to_batches()

    def place(self, row: int) -> str:
        return f"{self.name}: row {row + 1}"

    def fingerprint(self) -> dict[str, Any]:
        return {"files": None, "rows": None, "columns": self.schema.names}


@final
class FileSource:
    """The rows of one or several files of one format."""

    def __init__(self, paths: list[Place], wanted: list[str], asked: tuple[str, str]) -> None:
        for path in paths:
            with readable(path):
                if not path.is_file():
                    raise InputError(f"{one_line(path, 300)}: {_in_place_of_a_file(path)}.")
            if file_kind(path)[0] != file_kind(paths[0])[0]:
                raise InputError(f"{path}: files read together must have one format; {paths[0]} has another.")
        self._paths, self._kind = paths, file_kind(paths[0])[0]
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._sizes = [path.stat().st_size for path in paths]
        self.bytes_total, self._read = sum(self._sizes), 0
        self._begins: list[tuple[int, Place]] = []
        self.rows: int | None = None
        self._dialects: dict[Place, Dialect] = {}
        self._numbers: dict[Place, list[int]] = {}
        if self._kind in ("csv", "tsv"):
            for path in paths:
                with readable(path):
                    self._dialects[path] = dialect_of(path, *asked, wanted)
        self.schema = jsonl_schema(paths, wanted) if self._kind == "jsonl" else self._common_schema()

        for dialect in self._dialects.values():
            if dialect.told:
                warn(dialect.told)

    def dialect_told(self) -> str:
        """Return a phrase for messages if the first file is not read as plain CSV, else an empty string."""
        dialect, path = self._dialects.get(self._paths[0]), self._paths[0]
        if dialect is None or dialect[:2] == (own_delimiter(path), "utf-8"):
            return ""
        return f", read with the delimiter {dialect.delimiter!r} in {dialect.encoding},"

    def bytes_read(self) -> int:
        return self._read

    def pieces(self, skip: int, size: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        # JSONL reads all columns, because a row must fit them all.
        names = self.schema.names if columns is None or self._kind == "jsonl" else columns
        schema = pa.schema([self.schema.field(name) for name in names])
        self._begins, self._read = [], 0
        rows_before = bytes_before = 0
        for path, file_bytes in zip(self._paths, self._sizes, strict=True):
            self._begins.append((rows_before, path))
            ahead = max(0, skip - rows_before)  # rows of this file to skip
            end = position = 0
            with readable(path, *self._encoding(path)):
                for first, rows, now in self._file_pieces(path, schema, ahead, size):
                    end, previous, position = first + rows.num_rows, position, now
                    for start in range(max(0, ahead - first), rows.num_rows, size):
                        part = rows.slice(start, size)
                        # The reader buffers ahead; count only what was handed out.
                        share = (start + part.num_rows) / rows.num_rows
                        self._read = bytes_before + int(previous + share * (position - previous))
                        yield part
            rows_before, bytes_before = rows_before + end, bytes_before + file_bytes
            self._read = bytes_before

    def place(self, row: int) -> str:
        first, path = next((begin for begin in reversed(self._begins) if begin[0] <= row), (0, self._paths[0]))
        return f"{path}: row {self._number(path, row - first)}"

    def _number(self, path: Place, row: int) -> int:
        """Return the number of a row in its file; a spreadsheet counts the header and empty rows too."""
        if self._kind != "xlsx":
            return row + 1
        if path not in self._numbers:  # read once, since some callers name every row
            self._numbers[path] = sheet_numbers(path)
        numbers = self._numbers[path]
        return numbers[row] if row < len(numbers) else row + 2

    @property
    def file_names(self) -> list[str]:
        return [path.name for path in self._paths]

    def reads(self, place: Place) -> bool:
        if isinstance(place, Path) and place.exists():
            return any(isinstance(own, Path) and own.samefile(place) for own in self._paths)
        return str(place) in map(str, self._paths)

    def fingerprint(self) -> dict[str, Any]:
        odd = {
            path.name: list(how[:2])
            for path, how in self._dialects.items()
            if how[:2] != (own_delimiter(path), "utf-8")
        }
        read = {"dialects": odd} if odd else {}
        return {"files": [_file_fingerprint(path) for path in self._paths], "columns": self.schema.names, **read}

    def _encoding(self, path: Place) -> list[str]:
        return [self._dialects[path].encoding] if path in self._dialects else []

    def _file_pieces(self, path: Place, schema: pa.Schema, ahead: int, size: int) -> Iterator[Piece]:
        if self._kind == "parquet":
            return parquet_pieces(path, schema, ahead, size)
        if self._kind == "jsonl":
            return jsonl_pieces(path, schema, ahead, size)
        if self._kind == "xlsx":
            return excel_pieces(path, schema, ahead, size)
        return csv_pieces(path, schema, self._dialects[path])

    def _common_schema(self) -> pa.Schema:
        """Return the columns of all files; files that differ fail here, before any work."""
        schemas = [self._file_schema(path) for path in self._paths]
        for path, schema in zip(self._paths, schemas, strict=True):
            if len(set(schema.names)) < len(schema.names):
                raise ColumnError(f"{path}: two columns share a name; rename one. Its columns: {listed(schema)}.")
            if {field.name: field.type for field in schema} != {field.name: field.type for field in schemas[0]}:
                raise InputError(
                    f"{path}: files read together must have the same columns. It has {listed(schema)}; "
                    f"{self._paths[0]} has {listed(schemas[0])}."
                )
        if any(class_names(schema) != class_names(schemas[0]) for schema in schemas):
            return schemas[0].remove_metadata()  # a number may mean another label in each file
        return schemas[0]

    def _file_schema(self, path: Place) -> pa.Schema:
        with readable(path, *self._encoding(path)):
            if self._kind == "xlsx":
                return excel_schema(path)
            if self._kind != "parquet":
                return csv_schema(path, self._dialects[path])
            with pq.ParquetFile(arrow_source(path)) as file:
                self.rows = (self.rows or 0) + file.metadata.num_rows
                return plain_schema(file.schema_arrow)


def _paths(source: object) -> list[Place] | None:
    """Return the files that `source` names, or None if it names none."""
    items: list[Any] = list(source) if isinstance(source, (list, tuple)) else [source]
    if not items or not all(isinstance(item, (str, os.PathLike)) for item in items):
        return None
    paths: list[Place] = []
    for item in items:
        if is_address(item):
            paths.extend(stored_files(item))
            continue
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


def _in_place_of_a_file(path: Place) -> str:
    if not path.is_dir():
        if isinstance(path, Path) and path.exists():
            return "is no regular file but a pipe or a device, which cannot be read twice; write it to a file first"
        return (
            f"no bucket {path.bucket}" if isinstance(path, StoredFile) and not path.bucket.exists() else "no such file"
        )
    if any((path / name).is_file() for name in ("dataset_info.json", "dataset_dict.json")):
        return "is a folder, not a file; write this data set to a file, with its to_parquet or to_json"
    return f"is a folder, not a file; name a file in it, or several by a glob, such as '{path}/*.jsonl'"


def _file_fingerprint(path: Place) -> dict[str, Any]:
    stat = path.stat()
    with path.open("rb") as file:
        head = file.read(_END_BYTES)
        file.seek(max(0, stat.st_size - _END_BYTES))
        tail = file.read(_END_BYTES)
    digest = hashlib.sha256(head + tail).hexdigest()
    return {"name": path.name, "bytes": stat.st_size, "mtime_ns": stat.st_mtime_ns, "sha256_ends": digest}


Source = MemorySource | FileSource | StreamSource
