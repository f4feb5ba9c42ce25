"""Collections and tables in memory, from any library.

    document_values    list, iterator, numpy, pandas, polars, Arrow, HF dataset    ->  values, one by one
    as_arrow_table     pandas, polars, Arrow, HF dataset                           ->  pyarrow.Table
    MemorySource       an Arrow table as `readers.DocumentTable` reads it

pandas, polars and datasets are recognised by type name and never imported: a caller who passes such an object has
already imported them.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, final

import numpy as np
import pyarrow as pa

from labelspace.corpus.class_labels import class_labels, named
from labelspace.corpus.wording import missing_column, one_line
from labelspace.errors import ColumnError, InputError

ROWS_AT_ONCE = 10_000
_STRING_DTYPES = {"str", "string", "object", "utf8", "large_string"}
_NOT_YET_TABLES = {
    "polars.LazyFrame": "call .collect() first",
    "datasets.DatasetDict": "choose a split first, for example X['train']",
    "datasets.IterableDataset": "pass an iterator over its texts, for example (row['text'] for row in X)",
    "datasets.IterableDatasetDict": "choose a split first, for example X['train']",
}


def document_values(X: object, *, text_column: str | None, what: str) -> Iterable[object]:
    """Return the values of `X` one by one; the shape of `X` is checked, its values are not."""
    kind = kind_of(X)
    if kind in _NOT_YET_TABLES:
        raise InputError(f"{what} is a {kind}; {_NOT_YET_TABLES[kind]}.")
    if isinstance(X, (str, bytes, bytearray)):
        if what == "y":
            raise InputError("y is a single str, not the label of each document; pass the column: X['label'].")
        raise InputError(
            f"{what} is a single {type(X).__name__}, not a collection of documents; "
            f"pass [{what}] for one document, or pathlib.Path({what}) to read a file."
        )
    if is_table(X):
        return _table_column(X, text_column, what)
    if isinstance(X, np.ndarray):
        return _array_values(X, what)
    for method in ("to_list", "to_pylist"):  # pandas and polars Series; Arrow arrays
        if hasattr(X, method):
            return getattr(X, method)()
    # A sparse matrix holds numbers, and some kinds cannot be iterated over.
    if isinstance(X, (Mapping, set, frozenset)) or not isinstance(X, Iterable) or hasattr(X, "tocsr"):
        raise InputError(
            f"{what} must be documents in some order: a list, an array, a column or a table. "
            f"Got a {type(X).__name__} instead."
        )
    return named(X, getattr(X, "features", None)) if kind == "datasets.Column" else X


def as_arrow_table(X: Any, what: str = "the table") -> pa.Table:
    """Return a table in memory as an Arrow table of `plain_schema`, copying only where necessary.

    Raises:
        InputError: `X` is not a table, or one of its columns mixes types.

    Example:
        >>> as_arrow_table(pa.record_batch({"text": ["a"]})).num_rows
        1
    """
    kind = kind_of(X)
    table: Any = None
    try:
        if isinstance(X, pa.Table):
            table = X
        elif isinstance(X, pa.RecordBatch):
            table = pa.Table.from_batches([X])
        elif kind == "pandas.DataFrame":
            _check_unique([str(name) for name in X.columns], what)  # pyarrow would raise an error of its own
            table = pa.Table.from_pandas(X, preserve_index=False)
        elif kind == "polars.DataFrame":
            table = X.to_arrow()
        elif kind == "datasets.Dataset":
            table = X.with_format("arrow")[:]
        elif hasattr(X, "__arrow_c_stream__") and not kind.endswith(".Series"):
            table = pa.table(X)
    except pa.ArrowException as error:
        reason = " ".join(str(part) for part in reversed(error.args))
        raise InputError(f"{what} has a column whose values do not share one type: {one_line(reason)}.") from error
    if table is None:
        hint = _NOT_YET_TABLES.get(kind, "pass a path, or a pandas, polars, Arrow or HF table")
        raise InputError(f"{what} is not a table but a {type(X).__name__}; {hint}.")
    table = table.cast(plain_schema(table.schema))
    _check_unique(table.column_names, what)
    return table


def _check_unique(names: list[str], what: str) -> None:
    for name in names:
        if names.count(name) > 1:
            raise ColumnError(f"{what} has two columns named {name!r}; rename one of them.")


@final
class MemorySource:
    """The rows of an Arrow table, as `readers.DocumentTable` reads them; the caller holds the table."""

    name = "the table"

    def __init__(self, table: pa.Table) -> None:
        # Not `nbytes`, which older pyarrow cannot tell of views of texts within lists.
        self.schema, self.rows, self.bytes_total = table.schema, table.num_rows, table.get_total_buffer_size()
        self._table, self._done = table, 0

    def bytes_read(self) -> int:
        return self.bytes_total * self._done // max(1, self.rows)

    def pieces(self, skip: int, size: int, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        self._done = min(skip, self.rows)
        table = self._table if columns is None else self._table.select(columns)
        for batch in table.slice(self._done).to_batches(max_chunksize=size):
            self._done += batch.num_rows
            yield batch

    def place(self, row: int) -> str:
        return f"{self.name}: row {row + 1}"

    def fingerprint(self) -> dict[str, Any]:
        digest = hashlib.sha256()
        for start in range(0, self.rows, ROWS_AT_ONCE):
            content = pa.BufferOutputStream()
            with pa.ipc.new_stream(content, self.schema) as stream:
                stream.write_table(_copied(self._table.slice(start, ROWS_AT_ONCE)))
            digest.update(content.getvalue())
        return {"files": None, "rows": self.rows, "columns": self.schema.names, "sha256": digest.hexdigest()}


def _copied(rows: pa.Table) -> pa.Table:
    """Return a copy, in which neither chunks nor what lies under a null make a difference; rare types stay as given."""
    try:
        return rows.take(np.arange(rows.num_rows)).combine_chunks()
    except pa.ArrowNotImplementedError:
        return rows


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Drop metadata left by other libraries, but for names of labels; and string views, which few writers support."""
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    fields = [pa.field(field.name, views.get(field.type, field.type), field.nullable) for field in schema]
    return pa.schema(fields, class_labels(schema))


def is_table(X: object) -> bool:
    """Return whether `X` has named columns."""
    known = {"pandas.DataFrame", "polars.DataFrame", "datasets.Dataset"}
    return isinstance(X, (pa.Table, pa.RecordBatch)) or kind_of(X) in known


def kind_of(X: object) -> str:
    """Return library and class of `X`, or of its known base class, for example `"pandas.DataFrame"`; else ""."""
    for base in type(X).__mro__:
        library = base.__module__.partition(".")[0]
        if library in {"pandas", "polars", "datasets"}:
            return f"{library}.{base.__name__}"
    return ""


def find_text_column(X: Any, text_column: str | None, what: str) -> str:
    """Return a table's text column: `text_column`, or by default "text", the only one, or the only one of strings.

    Raises:
        ColumnError: there is no such column, or several qualify.
    """
    frame = kind_of(X).endswith(".DataFrame")  # pandas, polars: bypass Arrow, which rejects mixed columns
    names = [str(name) for name in (X.columns if frame else X.column_names)]
    if text_column is None and "text" not in names:
        dtypes = [X[name].dtype for name in X.columns] if frame else as_arrow_table(X, what).schema.types
        kinds = [str(dtype).lower().partition("[")[0] for dtype in dtypes]  # pandas has string[pyarrow]
        strings = [name for name, kind in zip(names, kinds, strict=True) if kind in _STRING_DTYPES]
        if len(names) == 1:
            return names[0]
        if len(strings) != 1:
            listed = ", ".join(names) or "none"
            raise ColumnError(
                f"{what} is a table without a column 'text'; pass the column of texts, for example "
                f"{what}[{(strings or names or ['text'])[0]!r}]. Its columns: {listed}."
            )
        return strings[0]
    wanted = text_column or "text"
    if wanted not in names:
        raise missing_column(what, wanted, names)
    _check_unique([name for name in names if name == wanted], what)
    return wanted


def _table_column(X: Any, text_column: str | None, what: str) -> Iterable[object]:
    column = find_text_column(X, text_column, what)
    if not kind_of(X).endswith(".DataFrame"):
        return as_arrow_table(X, what).column(column).to_pylist()
    return X[X.columns[[str(name) for name in X.columns].index(column)]].to_list()


def _array_values(X: np.ndarray, what: str) -> list[object]:
    if X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    if X.ndim != 1:
        raise InputError(f"{what} must have one dimension, or one column. Got an array of shape {X.shape} instead.")
    return X.tolist()
