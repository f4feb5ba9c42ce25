"""Tables read as a stream: every row once, in batches of one size, in constant memory.

    open_table(source)  ->  DocumentTable  ->  .batches()  ->  pyarrow.RecordBatch of exactly `batch_rows` rows

Batch boundaries depend only on `batch_rows`, never on row groups, blocks or files, so work can resume at any boundary.
See `files_to_rows` for how each format is read.

Messages count rows from 1, without the header.
"""

import glob
import hashlib
import os
import warnings
import weakref
from collections import deque
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, final

import pyarrow as pa
import pyarrow.parquet as pq

from labelspace.checks import check_number
from labelspace.corpus.dialects import AUTO, Dialect, check_dialect, dialect_of, own_delimiter
from labelspace.corpus.documents import Documents, Kind
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
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.spreadsheets import excel_pieces, excel_schema
from labelspace.corpus.stores import Place, StoredFile, arrow_source, is_address, stored_files
from labelspace.corpus.targets import as_targets
from labelspace.corpus.wording import listed, missing_column, one_line
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning

STREAM = "datasets.IterableDataset"

_END_BYTES = 64 * 1024  # hashed at either end of a file for its fingerprint
_TEXT_TYPES = ("string", "large_string", "binary", "large_binary", "null", "dictionary<")


@final
class DocumentTable:
    """A table with a text column, read in batches; made by `open_table`."""

    def __init__(
        self,
        source: "MemorySource | _FileSource | _StreamSource",
        *,
        text_column: str,
        pair_column: str | None,
        id_column: str | None,
        label_column: str | None,
        batch_rows: int,
    ) -> None:
        self.text_column, self.pair_column = text_column, pair_column
        self.id_column, self.label_column = id_column, label_column
        self.batch_rows = batch_rows
        self.schema: pa.Schema = source.schema
        self.columns: list[str] = source.schema.names
        self.rows: int | None = source.rows  # None if only reading would tell: CSV, JSONL
        self.bytes_total: int = source.bytes_total
        self._source = source
        self._policies = {column: DocumentPolicy(partial(self._place_in, column)) for column in self._columns}
        self._noted: set[str] = set()
        # First rows of the most recent batches, by weak reference, so that batches are freed with their last user.
        self._begins: deque[tuple[weakref.ref[pa.RecordBatch], int]] = deque(maxlen=64)

    def bytes_read(self) -> int:
        """Return how many of `bytes_total` have been read, for a progress bar."""
        return self._source.bytes_read()

    @property
    def countable(self) -> bool:
        """Whether all rows can be read to count them: False for a stream, which may be slow or endless."""
        return not isinstance(self._source, _StreamSource)

    def batches(self, skip_rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows after the first `skip_rows`, `batch_rows` at a time; only the last batch may be shorter.

        Raises:
            InputError: a damaged file, or a row that does not fit the others; batches already yielded stay valid.
        """
        check_number("skip_rows", skip_rows, least=0, whole=True)
        row = skip_rows
        for batch in _in_batches(self._source.pieces(skip_rows, self.batch_rows), self.batch_rows):
            self._begins.append((weakref.ref(batch), row))
            yield batch
            row += batch.num_rows

    def texts(self, batch: pa.RecordBatch) -> list[str]:
        """Return the documents of a batch that `batches` yielded, under the same rules as `as_documents`.

        Empty and overlong documents cause one warning for the whole table.

        Raises:
            InputError: a row without a text; the message names file and row.
        """
        return self._clean(batch, self.text_column)

    @property
    def kind(self) -> Kind:
        """Pairs of texts if the table was opened with `pair_column`, else texts."""
        return Kind.TEXTS if self.pair_column is None else Kind.PAIRS

    def documents(self, batch: pa.RecordBatch) -> Documents:
        """Return the texts of a batch, or its pairs of texts if the table was opened with `pair_column`.

        Raises:
            InputError: a row without a text; the message names file and row.
        """
        texts = self.texts(batch)
        if self.pair_column is None:
            return Documents(texts, self.kind)
        return Documents(list(zip(texts, self._clean(batch, self.pair_column), strict=True)), self.kind)

    def _clean(self, batch: pa.RecordBatch, column: str) -> list[str]:
        first = next((row for known, row in self._begins if known() is batch), 0)
        policy = self._policies[column]
        documents = policy.clean(batch.column(column).to_pylist(), first)
        for kind, note in policy.notes().items():
            if kind not in self._noted:
                warnings.warn(f"{note} Later ones are not reported.", LabelSpaceWarning, stacklevel=2)
                self._noted.add(kind)
        return documents

    @property
    def _columns(self) -> list[str]:
        """Names of the columns with texts."""
        return list(dict.fromkeys(name for name in (self.text_column, self.pair_column) if name is not None))

    def _place_in(self, column: str, row: int) -> str:
        # For pairs, name the column: either half may be at fault.
        return self.place(row) if self.pair_column is None else f"{self.place(row)}, column {column!r},"

    def check_documents(self) -> None:
        """Check the texts of every row; Parquet and CSV read no other column, and a stream is not checked.

        Raises:
            InputError: a row without a text, or a damaged file; the message names file and row.
        """
        if isinstance(self._source, _StreamSource):
            return
        row = 0
        for piece in self._source.pieces(0, self.batch_rows, self._columns):
            for name in self._columns:
                values = piece.column(name)
                # Strings without nulls are documents; bytes must be decoded to know.
                if values.null_count or not str(values.type).endswith("string"):
                    DocumentPolicy(partial(self._place_in, name)).clean(values.to_pylist(), row)
            row += piece.num_rows

    def check_labels(self, names: Sequence[str]) -> tuple[int, int]:
        """Check the label of every row, and return the number of rows and of labelled rows.

        Args:
            names: the label names; `as_targets` defines unlabelled rows.

        Raises:
            InputError: an unknown label; the message names file, row and column.
        """
        assert self.label_column is not None, "the table was opened with a label column"
        rows = labelled = 0
        for batch in self.batches():
            values = batch.column(self.label_column).to_pylist()
            try:
                labelled += sum(target >= 0 for target in as_targets(values, names, n_documents=len(values)))
            except InputError:
                for row, value in enumerate(values, rows):
                    where = f"{self.place(row)}: column {self.label_column!r}"
                    try:
                        as_targets([value], names, n_documents=1, what=where)
                    except InputError as error:
                        raise InputError(str(error).replace(f"{where}[0]", where, 1)) from None
                raise
            rows += len(values)
        return rows, labelled

    def place(self, row: int) -> str:
        """Return the name of a row, counted from 0 over all files, for a message."""
        return self._source.place(row)

    def reads(self, place: Place) -> bool:
        """Return whether a file is one of those that the rows come from."""
        return isinstance(self._source, _FileSource) and self._source.reads(place)

    def fingerprint(self) -> dict[str, Any]:
        """Return values that identify this input, without folder names, as plain JSON values."""
        columns = {"text": self.text_column, "id": self.id_column, "label": self.label_column}
        options = {**columns, "batch_rows": self.batch_rows}
        pair = {} if self.pair_column is None else {"pair": self.pair_column}
        return {**self._source.fingerprint(), **options, **pair}


def open_table(
    source: object,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    batch_rows: int = 1024,
    delimiter: str = AUTO,
    encoding: str = AUTO,
) -> DocumentTable:
    """Open a table of documents without reading it.

    Args:
        source: a path, glob or address (`s3://bucket/key`) of .csv, .tsv, .jsonl, .ndjson (each also .gz), .parquet or
            .xlsx files, a list of these, a pandas, polars, Arrow or HF table in memory, or a streaming HF dataset.
            Files of a glob are read in sorted order; a stream is read again each time.
        text_column: the column of documents.
        pair_column: the column of second texts, if documents are pairs of texts.
        id_column: the column that identifies documents, if any.
        label_column: the column of labels, if any.
        batch_rows: rows per batch.
        delimiter: delimiter of .csv and .tsv files, one character; ignored for other formats. `"auto"`: detected
            from the first rows of each file.
        encoding: encoding of .csv and .tsv files, for example `"cp1252"`; `"auto"`: detected from the first megabyte.

    Returns:
        The table; its columns are checked, and `batches` reads its rows.

    Raises:
        ColumnError: a column is missing; the message lists the columns.
        InputError: no such file, an unknown format, a damaged file, files whose columns differ, or an ambiguous
            delimiter or encoding.
        ConfigError: `batch_rows` is not a positive whole number, or the delimiter or encoding is invalid.

    Warns:
        LabelSpaceWarning: the detected delimiter or encoding is not that of plain CSV or TSV in UTF-8.

    Example:
        >>> table = open_table(pa.table({"text": ["a", "b", "c"]}), batch_rows=2)
        >>> [table.texts(batch) for batch in table.batches()]
        [['a', 'b'], ['c']]
    """
    check_number("batch_rows", batch_rows, least=1, whole=True)
    asked = check_dialect(delimiter, encoding)
    asked_for = (text_column, pair_column, id_column, label_column)
    wanted = list(dict.fromkeys(name for name in asked_for if name is not None))
    opened = _opened(source, wanted, asked)
    for name in wanted:
        if name not in opened.schema.names:
            odd = opened.dialect_told() if isinstance(opened, _FileSource) else ""
            raise missing_column(opened.name + odd, name, opened.schema.names)
    for name in (text_column, pair_column):
        kind = None if name is None else opened.schema.field(name).type
        if kind is not None and not str(kind).startswith(_TEXT_TYPES):
            raise ColumnError(f"{opened.name}: column {name!r} holds {kind}, not texts; choose another column.")
    return DocumentTable(
        opened,
        text_column=text_column,
        pair_column=pair_column,
        id_column=id_column,
        label_column=label_column,
        batch_rows=int(batch_rows),
    )


def _opened(source: object, wanted: list[str], asked: tuple[str, str]) -> "MemorySource | _FileSource | _StreamSource":
    paths = _paths(source)
    if paths is not None:
        return _FileSource(paths, wanted, asked)
    return _StreamSource(source) if kind_of(source) == STREAM else MemorySource(as_arrow_table(source))


@final
class _StreamSource:
    """The rows of a `datasets.IterableDataset`; each pass starts the stream again."""

    name = "the stream"
    rows, bytes_total = None, 0

    def __init__(self, stream: Any) -> None:
        self._stream = stream.with_format("arrow")
        first = next(iter(self._stream.iter(batch_size=100)), None)
        if first is None:
            raise InputError("the stream has no rows; give one that has some.")
        self.schema = plain_schema(first.schema)

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
class _FileSource:
    """The rows of one or several files of one format."""

    def __init__(self, paths: list[Place], wanted: list[str], asked: tuple[str, str]) -> None:
        for path in paths:
            with readable(path):
                if not path.is_file():
                    raise InputError(f"{path}: {_in_place_of_a_file(path)}.")
            if file_kind(path)[0] != file_kind(paths[0])[0]:
                raise InputError(f"{path}: files read together must have one format; {paths[0]} has another.")
        self._paths, self._kind = paths, file_kind(paths[0])[0]
        self.name = str(paths[0]) if len(paths) == 1 else f"{paths[0]} and {len(paths) - 1} more"
        self._sizes = [path.stat().st_size for path in paths]
        self.bytes_total, self._read = sum(self._sizes), 0
        self._begins: list[tuple[int, Place]] = []
        self.rows: int | None = None
        self._dialects: dict[Place, Dialect] = {}
        if self._kind in ("csv", "tsv"):
            for path in paths:
                with readable(path):
                    self._dialects[path] = dialect_of(path, *asked, wanted)
        self.schema = jsonl_schema(paths, wanted) if self._kind == "jsonl" else self._common_schema()

        for dialect in self._dialects.values():
            if dialect.told:
                warnings.warn(dialect.told, LabelSpaceWarning, stacklevel=4)

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
        return f"{path}: row {row - first + 1}"

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


def _in_batches(pieces: Iterator[pa.RecordBatch], size: int) -> Iterator[pa.RecordBatch]:
    """Cut and join pieces into batches of exactly `size` rows; the last may be shorter."""
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
