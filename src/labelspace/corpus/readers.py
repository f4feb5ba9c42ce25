"""Tables read as a stream: every row once, in batches of one size, in constant memory.

    open_table(source)  ->  DocumentTable  ->  .batches()  ->  pyarrow.RecordBatch of exactly `batch_rows` rows

Batch boundaries depend only on `batch_rows`, never on row groups, blocks or files, so work can resume at any boundary.
See `row_sources` for where rows come from, and `files_to_rows` for how each format is read.

Messages count rows from 1, without the header.
"""

import weakref
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, final

import pyarrow as pa

from labelspace.checks import check_number
from labelspace.corpus.class_labels import class_names, with_names
from labelspace.corpus.dialects import AUTO, check_dialect
from labelspace.corpus.documents import Documents, Kind
from labelspace.corpus.in_memory import plain_schema
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.row_sources import FileSource, Source, StreamSource, opened
from labelspace.corpus.stores import Place
from labelspace.corpus.targets import as_targets, read_cells
from labelspace.corpus.wording import missing_column
from labelspace.errors import ColumnError, InputError, warn

_TEXT_TYPES = ("string", "large_string", "binary", "large_binary", "null", "dictionary<")


@final
class DocumentTable:
    """A table with a text column, read in batches; made by `open_table`."""

    def __init__(
        self,
        source: Source,
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
        self._class_names = class_names(self.schema).get(label_column or "")
        if label_column is not None and self._class_names is not None:
            column = self.schema.names.index(label_column)
            several = pa.types.is_nested(self.schema.field(column).type)
            kind = pa.list_(pa.string()) if several else pa.string()
            self.schema = plain_schema(self.schema.set(column, pa.field(label_column, kind)))
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
        return not isinstance(self._source, StreamSource)

    def batches(self, skip_rows: int = 0) -> Iterator[pa.RecordBatch]:
        """Yield the rows after the first `skip_rows`, `batch_rows` at a time; only the last batch may be shorter.

        Raises:
            InputError: a damaged file, or a row that does not fit the others; batches already yielded stay valid.
        """
        check_number("skip_rows", skip_rows, least=0, whole=True)
        row = skip_rows
        for batch in _in_batches(self._source.pieces(skip_rows, self.batch_rows), self.batch_rows):
            if self.label_column is not None and self._class_names is not None:
                batch = with_names(batch, self.label_column, self._class_names, self.place, row)
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
                warn(f"{note} Later ones are not reported.")
                self._noted.add(kind)
        return documents

    @property
    def _columns(self) -> list[str]:
        """Names of the columns with texts."""
        return list(dict.fromkeys(name for name in (self.text_column, self.pair_column) if name is not None))

    def _place_in(self, column: str, row: int) -> str:
        # For pairs, name the column: either half may be at fault.
        return self.place(row) if self.pair_column is None else f"{self.place(row)}, column {column!r},"

    def check_documents(self, also: Callable[[pa.RecordBatch, int], None] | None = None) -> None:
        """Check the texts of every row; Parquet and CSV read no other column, and a stream is not checked.

        Args:
            also: called with these columns of some rows, and with the number of rows before.

        Raises:
            InputError: a row without a text, or a damaged file; the message names file and row.
        """
        if isinstance(self._source, StreamSource):
            return
        row = 0
        for piece in self._source.pieces(0, self.batch_rows, self._columns):
            for name in self._columns:
                values = piece.column(name)
                # Strings without nulls are documents; bytes must be decoded to know.
                if values.null_count or not str(values.type).endswith("string"):
                    DocumentPolicy(partial(self._place_in, name)).clean(values.to_pylist(), row)
            if also is not None:
                also(piece, row)
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
            targets = read_cells(
                values,
                lambda cells, what: as_targets(cells, names, n_documents=len(cells), what=what),
                lambda cell, first=rows: f"{self.place(first + cell)}: column {self.label_column!r}",
            )
            labelled += sum(target >= 0 for target in targets)
            rows += len(values)
        return rows, labelled

    def place(self, row: int) -> str:
        """Return the name of a row, counted from 0 over all files, for a message."""
        return self._source.place(row)

    @property
    def file_names(self) -> list[str]:
        """Names of the files that the rows come from, without folders; empty if they come from memory."""
        return self._source.file_names if isinstance(self._source, FileSource) else []

    def reads(self, place: Place) -> bool:
        """Return whether a file is one of those that the rows come from."""
        return isinstance(self._source, FileSource) and self._source.reads(place)

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
        label_column: the column of labels, if any; numbers whose names stand in the table's metadata
            (`datasets.ClassLabel`, also in Parquet) are read as these names, and -1 as no label.
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
    rows = opened(source, wanted, asked)
    for name in wanted:
        if name not in rows.schema.names:
            odd = rows.dialect_told() if isinstance(rows, FileSource) else ""
            raise missing_column(rows.name + odd, name, rows.schema.names)
    for name in (text_column, pair_column):
        kind = None if name is None else rows.schema.field(name).type
        if kind is not None and not str(kind).startswith(_TEXT_TYPES):
            raise ColumnError(f"{rows.name}: column {name!r} holds {kind}, not texts; choose another column.")
    return DocumentTable(
        rows,
        text_column=text_column,
        pair_column=pair_column,
        id_column=id_column,
        label_column=label_column,
        batch_rows=int(batch_rows),
    )


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
