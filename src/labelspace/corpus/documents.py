"""Documents and labels that lie in memory, whatever library holds them.

    Documents       texts or pairs of texts that were looked at, with their kind
    as_targets      label names, some of them missing              ->  column numbers
    as_arrow_table  pandas, polars, Arrow, HF dataset              ->  pyarrow.Table

`given.as_documents` and `given.as_texts_or_pairs` make documents of whatever a caller holds.

What happens to an odd document is decided in one class, `DocumentPolicy`, for lists and files alike:

    None, NaN, NA, a number, anything else    InputError that names the position
    bytes                                     decoded as UTF-8, or InputError
    empty, or nothing but white space         kept, so that one row in is one row out; one warning
    longer than MAX_CHARACTERS                cut there; one warning
    lone surrogates                           replaced by U+FFFD, because UTF-8 cannot hold them

pandas, polars and datasets are recognised by the names of their types and never imported: whoever holds
such an object has imported them already.
"""

import hashlib
import numbers
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final, overload

import numpy as np
import pyarrow as pa

from labelspace.checks import did_you_mean
from labelspace.errors import ColumnError, InputError

MAX_CHARACTERS = 100_000
"""Characters of a document that are looked at; every encoder in the registry stops far earlier."""

UNLABELLED = -1
"""The column number of a document without a label, as in `sklearn.semi_supervised`."""

_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING_DTYPES = {"str", "string", "object", "utf8", "large_string"}
_NOT_YET_TABLES = {
    "polars.LazyFrame": "call .collect() first",
    "datasets.DatasetDict": "choose a split first, for example X['train']",
    "datasets.IterableDataset": "pass an iterator over its texts, for example (row['text'] for row in X)",
    "datasets.IterableDatasetDict": "choose a split first, for example X['train']",
}


Document = str | tuple[str, str]
"""A text, or a pair of texts."""


class Kind(StrEnum):
    """What documents are; the value is the word for messages."""

    TEXTS = "texts"
    PAIRS = "pairs of texts"


@final
@dataclass(frozen=True)
class Documents(Sequence[Document]):
    """Documents that were looked at, and what they are; nobody needs to look again.

    Example:
        >>> found = Documents([("a man sleeps", "a man is awake")], Kind.PAIRS)
        >>> len(found), found[0][1], found[:0].kind
        (1, 'a man is awake', <Kind.PAIRS: 'pairs of texts'>)
    """

    rows: list[Any]
    """[text] the documents: a list of str, or a list of 2-tuples of str."""

    kind: Kind
    """Which of the two; texts where there is no document."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> "Documents": ...
    def __getitem__(self, index: int | slice) -> "Document | Documents":
        return Documents(self.rows[index], self.kind) if isinstance(index, slice) else self.rows[index]

    def take(self, rows: Iterable[int]) -> "Documents":
        """Return some of the documents, in the order asked for."""
        return Documents([self.rows[row] for row in rows], self.kind)


def check_kind(came: Kind, fitted: Kind) -> None:
    """Refuse pairs where a model was fitted on texts, and texts where it was fitted on pairs.

    Raises:
        InputError: the kinds differ.
    """
    if came != fitted:
        raise InputError(f"the model was fitted on {fitted}. Got {came} instead; pass what it was fitted on.")


@final
class DocumentPolicy:
    """Turns values into documents, refuses what is none, and counts what is odd but can be kept.

    Args:
        place: names a position in messages, for example `"X[3]"` or `"news.csv: row 4"`.

    Example:
        >>> policy = DocumentPolicy(lambda position: f"X[{position}]")
        >>> policy.clean(["good", b"caf\\xc3\\xa9", " "])
        ['good', 'café', ' ']
        >>> list(policy.notes().values())
        ['1 document is empty or white space (first: X[2]); such documents are kept, but say nothing about a label.']
    """

    def __init__(self, place: Callable[[int], str]) -> None:
        self._place = place
        self._empty: list[int] = [0, -1]
        self._cut: list[int] = [0, -1]

    def clean(self, values: Iterable[object], first: int = 0) -> list[str]:
        """Return one str per value; `first` is the position of the first value.

        Raises:
            InputError: a value is no document; the message names its position.
        """
        documents = []
        for position, value in enumerate(values, first):
            text = value if type(value) is str else self._to_str(value, position)
            if len(text) > MAX_CHARACTERS:
                text = text[:MAX_CHARACTERS]
                _count(self._cut, position)
            if not text or text.isspace():
                _count(self._empty, position)
            elif not text.isascii():
                text = without_surrogates(text)
            documents.append(text)
        return documents

    def notes(self) -> dict[str, str]:
        """Return what was noticed since the last call, one sentence for each kind, `"empty"` and `"long"`."""
        sentences = {}
        for kind, (count, first), what, then in (
            ("empty", self._empty, "empty or white space", "such documents are kept, but say nothing about a label"),
            ("long", self._cut, f"longer than {MAX_CHARACTERS:,} characters", "only the beginning is read"),
        ):
            if count:
                many = "1 document is" if count == 1 else f"{count} documents are"
                sentences[kind] = f"{many} {what} (first: {self._place(first).rstrip(',')}); {then}."
        self._empty, self._cut = [0, -1], [0, -1]
        return sentences

    def _to_str(self, value: object, position: int) -> str:
        if isinstance(value, str):  # numpy.str_ and the like
            return str(value)
        where = self._place(position)
        if isinstance(value, (bytes, bytearray)):
            try:
                return bytes(value).decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{where} is bytes that are not valid UTF-8 (byte {error.start}); "
                    "decode it with its own encoding first."
                ) from error
        if is_missing(value):
            raise InputError(f"{where} is missing ({_short(value)}); leave such rows out, or give them a text.")
        raise InputError(f"{where} is not a text but {_short(value)} of type {type(value).__name__}; pass a str.")


def as_targets(y: object, names: Sequence[str], *, n_documents: int, what: str = "y") -> list[int]:
    """Return the column number of each document's label, -1 where there is none.

    Args:
        y: one label name for each document, in any of the collections that `as_documents` takes; white space
            around a name does not count, as label spaces strip theirs. Unlabelled are -1, None, NaN and NA; also
            "-1" (what numpy makes of -1 among strings) and "" (what a CSV file has for nothing), unless a label is
            called that.
        names: the label names, in the order of the columns.
        n_documents: how many documents there are.
        what: the caller's name for `y`, used in messages.

    Returns:
        One number for each document, from 0 to `len(names) - 1`, or -1.

    Raises:
        InputError: an unknown label, or not one label for each document.

    Example:
        >>> as_targets(["sports", None, "world"], ["world", "sports"], n_documents=3)
        [1, -1, 0]
    """
    columns = {name: column for column, name in enumerate(names)}
    targets = []
    for position, value in enumerate(document_values(y, text=None, what=what)):
        column = columns.get(value.strip()) if isinstance(value, str) else None
        if column is None and is_unlabelled(value):
            column = UNLABELLED
        if column is None:
            raise _unknown_label(f"{what}[{position}]", value, names)
        targets.append(column)
    if len(targets) != n_documents:
        raise InputError(
            f"{what} must hold one label for each of the {n_documents} documents. Got {len(targets)} instead; "
            "documents without a label carry None."
        )
    return targets


def document_values(X: object, *, text: str | None, what: str) -> Iterable[object]:
    """Return the values of `X` one by one, not yet checked; the shape of `X` itself is."""
    kind = kind_of(X)
    if kind in _NOT_YET_TABLES:
        raise InputError(f"{what} is a {kind}; {_NOT_YET_TABLES[kind]}.")
    if isinstance(X, (str, bytes, bytearray)):
        raise InputError(
            f"{what} is a single {type(X).__name__}, not a collection of documents; "
            f"pass [{what}] for one document, or pathlib.Path({what}) to read a file."
        )
    if is_table(X):
        return _table_column(X, text, what)
    if isinstance(X, np.ndarray):
        return _array_values(X, what)
    for method in ("to_list", "to_pylist"):  # Series of pandas and polars; arrays of Arrow
        if hasattr(X, method):
            return getattr(X, method)()
    # A sparse matrix holds numbers; some kinds of it cannot even be walked through.
    if isinstance(X, (Mapping, set, frozenset)) or not isinstance(X, Iterable) or hasattr(X, "tocsr"):
        raise InputError(
            f"{what} must be documents in some order: a list, an array, a column or a table. "
            f"Got a {type(X).__name__} instead."
        )
    return X


def as_arrow_table(X: object, what: str = "the table") -> pa.Table:
    """Return a table in memory as an Arrow table without metadata, copying only what must be copied.

    Raises:
        InputError: `X` is no table, or one of its columns mixes types.

    Example:
        >>> as_arrow_table(pa.record_batch({"text": ["a"]})).num_rows
        1
    """
    kind, any_x = kind_of(X), _untyped(X)
    table: Any = None
    try:
        if isinstance(X, pa.Table):
            table = X
        elif isinstance(X, pa.RecordBatch):
            table = pa.Table.from_batches([X])
        elif kind == "pandas.DataFrame":
            table = pa.Table.from_pandas(any_x, preserve_index=False)
        elif kind == "polars.DataFrame":
            table = any_x.to_arrow()
        elif kind == "datasets.Dataset":
            table = any_x.with_format("arrow")[:]
        elif hasattr(X, "__arrow_c_stream__") and not kind.endswith(".Series"):
            table = pa.table(X)
    except pa.ArrowException as error:
        reason = " ".join(str(part) for part in reversed(error.args))
        raise InputError(f"{what} has a column whose values do not share one type: {one_line(reason)}.") from error
    if table is None:
        hint = _NOT_YET_TABLES.get(kind, "pass a path, or a pandas, polars, Arrow or HF table")
        raise InputError(f"{what} is not a table but a {type(X).__name__}; {hint}.")
    table = table.cast(plain_schema(table.schema))
    for name in table.column_names:
        if table.column_names.count(name) > 1:
            raise ColumnError(f"{what} has two columns named {name!r}; rename one of them.")
    return table


@final
class MemorySource:
    """The rows of an Arrow table, as `readers.DocumentTable` reads them; the caller holds the table anyway."""

    name = "the table"

    def __init__(self, table: pa.Table) -> None:
        self.schema, self.rows, self.bytes_total = table.schema, table.num_rows, table.nbytes
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
        ends = [self._table.slice(0, 1000).to_pylist(), self._table.slice(max(0, self.rows - 1000)).to_pylist()]
        digest = hashlib.sha256(repr(ends).encode()).hexdigest()
        return {"files": None, "rows": self.rows, "columns": self.schema.names, "sha256_ends": digest}


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Drop metadata, which names what another library once did, and string views, which few writers know."""
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return pa.schema([pa.field(field.name, views.get(field.type, field.type), field.nullable) for field in schema])


def is_table(X: object) -> bool:
    """Whether `X` has named columns."""
    known = {"pandas.DataFrame", "polars.DataFrame", "datasets.Dataset"}
    return isinstance(X, (pa.Table, pa.RecordBatch)) or kind_of(X) in known


def kind_of(X: object) -> str:
    """Name the type of `X` by library and class, for example `"pandas.DataFrame"`, looking through subclasses."""
    for base in type(X).__mro__:
        library = base.__module__.partition(".")[0]
        if library in {"pandas", "polars", "datasets"}:
            return f"{library}.{base.__name__}"
    return ""


def is_missing(value: object) -> bool:
    """Whether `value` stands for nothing: None, NaN, `pandas.NA`, NaT."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, (numbers.Real, np.datetime64)):
        return bool(value != value)  # NaN and NaT alone differ from themselves
    return False


def is_unlabelled(value: object) -> bool:
    """Whether a value among labels stands for none: -1, None, NaN, NA, "-1" or "".

    Example:
        >>> [is_unlabelled(value) for value in (None, -1, "", "sports")]
        [True, True, True, False]
    """
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    minus_one = isinstance(value, numbers.Real) and not isinstance(value, bool) and value == UNLABELLED
    return minus_one or is_missing(value)


def missing_column(where: str, name: str, columns: Sequence[str]) -> ColumnError:
    """Return the error for a column that is not there."""
    listed = ", ".join(columns) or "none"
    return ColumnError(f"{where} has no column {name!r}.{did_you_mean(name, columns)} Its columns: {listed}.")


def without_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def one_line(message: object, limit: int = 300) -> str:
    """Return a message of another library as one line of bounded length, without its full stop."""
    line = " ".join(str(message).split())
    return (line if len(line) <= limit else line[:limit] + "...").rstrip(".")


def text_column(X: object, text: str | None, what: str) -> str:
    """Return the name of a table's column of texts: the one asked for, "text", or the only column of strings.

    Raises:
        ColumnError: it is not there, or there are several.
    """
    any_x = _untyped(X)
    frame = kind_of(X).endswith(".DataFrame")  # pandas, polars: no need for Arrow, which refuses mixed columns
    names = [str(name) for name in (any_x.columns if frame else any_x.column_names)]
    if text is None and "text" not in names:
        dtypes = [any_x[name].dtype for name in any_x.columns] if frame else as_arrow_table(X, what).schema.types
        strings = [name for name, dtype in zip(names, dtypes, strict=True) if str(dtype).lower() in _STRING_DTYPES]
        if len(strings) != 1:
            listed = ", ".join(names) or "none"
            raise ColumnError(
                f"{what} is a table without a column 'text'; pass the column of texts, for example "
                f"{what}[{(strings or names or ['text'])[0]!r}]. Its columns: {listed}."
            )
        return strings[0]
    text = text or "text"
    if names.count(text) != 1:
        if text in names:
            raise ColumnError(f"{what} has two columns named {text!r}; rename one of them.")
        raise missing_column(what, text, names)
    return text


def _table_column(X: object, text: str | None, what: str) -> Iterable[object]:
    text = text_column(X, text, what)
    if not kind_of(X).endswith(".DataFrame"):
        return as_arrow_table(X, what).column(text).to_pylist()
    frame = _untyped(X)
    return frame[frame.columns[[str(name) for name in frame.columns].index(text)]].to_list()


def _array_values(X: np.ndarray, what: str) -> list[object]:
    if X.ndim == 2 and X.shape[1] == 1:
        X = X[:, 0]
    if X.ndim != 1:
        raise InputError(f"{what} must have one dimension, or one column. Got an array of shape {X.shape} instead.")
    return X.tolist()


def _unknown_label(where: str, value: object, names: Sequence[str]) -> InputError:
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if isinstance(value, str):
        return InputError(f"{where} is {value!r}, which is no label.{did_you_mean(value, names)} Labels: {listed}.")
    return InputError(
        f"{where} is {_short(value)} of type {type(value).__name__}; pass label names, and None for unlabelled. "
        f"Labels: {listed}."
    )


def _count(counter: list[int], position: int) -> None:
    counter[0] += 1
    if counter[1] < 0:
        counter[1] = position


def _short(value: object) -> str:
    return one_line(repr(value), 60)


def _untyped(X: object) -> Any:
    """Let the type checker forget: what follows is duck typing."""
    return X
