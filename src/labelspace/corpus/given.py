"""Documents as a caller passes them: texts or pairs of texts, in memory or in a file."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.corpus.documents import Documents, Kind
from labelspace.corpus.in_memory import document_values, is_table
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.readers import open_table
from labelspace.errors import ColumnError, InputError, warn

PAIR_COLUMNS = ("text", "text_pair")


def as_documents(X: object, *, text_column: str | None = None, what: str = "X") -> list[str]:
    """Return the documents of `X` as a list of str, one per row, in order.

    Args:
        X: a list, tuple, iterator, numpy array, pandas or polars Series or DataFrame, Arrow array or table,
            HF dataset or its column, or a `pathlib.Path` to a CSV, TSV, JSONL or Parquet file; or `Documents`, which
            are returned unchanged.
        text_column: the text column, if `X` is a table; None takes the column named "text", the only one, or the
            only one of strings. Ignored for other inputs.
        what: the caller's name for `X`, used in messages.

    Returns:
        The documents; an empty input gives an empty list.

    Raises:
        InputError: `X` is not a collection of documents, or one of them is not a text; the message names its position.
        ColumnError: the table lacks the column.

    Example:
        >>> import pyarrow as pa
        >>> as_documents(("one", b"two"))
        ['one', 'two']
        >>> as_documents(pa.table({"id": [7], "review": ["fine"]}))
        ['fine']
        >>> as_documents(["fine", None])
        Traceback (most recent call last):
        labelspace.errors.InputError: X[1] is missing (None); leave such rows out, or give them a text.
    """
    if isinstance(X, Documents) and X.kind is Kind.TEXTS:
        return X.rows
    if isinstance(X, os.PathLike):
        table = open_table(Path(X), text_column=text_column or "text")
        return [document for batch in table.batches() for document in table.texts(batch)]
    policy = DocumentPolicy(lambda position: f"{what}[{position}]")
    documents = policy.clean(document_values(X, text_column=text_column, what=what))
    for note in policy.notes().values():
        warn(note)
    return documents


def as_texts_or_pairs(X: Any, what: str = "X", *, pair_columns: bool = True) -> Documents:
    """Return documents with their kind: pairs if each row of `X` holds two texts.

    Args:
        X: whatever `as_documents` takes; or a list of 2-tuples, an array of two columns, or a table with the
            columns "text" and "text_pair"; or `Documents`, which are returned unchanged.
        what: the caller's name for `X`, used in messages.
        pair_columns: False never reads two columns as a pair; of a table only "text" is read.

    Returns:
        The documents; of kind texts if there are none.

    Raises:
        InputError: a row is not a document, or a pair lacks a half.

    Example:
        >>> as_texts_or_pairs([("a man sleeps", "a man is awake")]).rows
        [('a man sleeps', 'a man is awake')]
        >>> as_texts_or_pairs([("a man sleeps", None)])
        Traceback (most recent call last):
        labelspace.errors.InputError: X[0][1] is missing (None); leave such rows out, or give them a text.
    """
    if isinstance(X, Documents):
        return X
    if is_table(X):
        columns = _pair_columns(X) if pair_columns else []
        if not columns:
            return Documents(_texts_of_table(X, what, pair_columns=pair_columns), Kind.TEXTS)
        X = list(zip(*(document_values(X, text_column=name, what=what) for name in columns), strict=True))
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        if X.shape[1] != 2 or not pair_columns:
            return Documents(as_documents(X, what=what), Kind.TEXTS)
        X = [tuple(row) for row in X.tolist()]
    elif _objects_of_pairs(X):
        X = list(X)
    elif is_stream(X):
        X = list(document_values(X, text_column=None, what=what))
    if kind_of_input(X) is Kind.TEXTS:
        return Documents(as_documents(X, what=what), Kind.TEXTS)
    return Documents(_pairs(X, what), Kind.PAIRS)


def kind_of_input(X: Any) -> Kind:
    """Return the kind of a table, or of the first item of a sequence; nothing is read from a stream or a file.

    Example:
        >>> kind_of_input(["a text"]).name, kind_of_input([("a text", "another")]).name
        ('TEXTS', 'PAIRS')
    """
    if isinstance(X, Documents):
        return X.kind
    if is_table(X):
        pairs = bool(_pair_columns(X))
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        pairs = X.shape[1] == 2
    else:
        pairs = isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], (tuple, list))
        pairs = pairs or _objects_of_pairs(X)
    return Kind.PAIRS if pairs else Kind.TEXTS


def is_stream(X: Any) -> bool:
    """Return whether `X` can be read only once."""
    return not hasattr(X, "__len__") and hasattr(X, "__iter__") and not hasattr(X, "__fspath__")


def _pairs(X: Any, what: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    notes: dict[str, str] = {}
    for row, pair in enumerate(X):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            got = f"{len(pair)} values" if isinstance(pair, (tuple, list)) else f"a {type(pair).__name__}"
            as_first = f", as {what}[0] is" if row else " or a text"
            raise InputError(f"{what}[{row}] must be a pair of texts{as_first}. Got {got} instead.")
        policy = DocumentPolicy(lambda half, row=row: f"{what}[{row}][{half}]")
        first, second = policy.clean(pair)
        pairs.append((first, second))
        notes = {**policy.notes(), **notes}
    for note in notes.values():
        warn(note)
    return pairs


def _texts_of_table(table: Any, what: str, *, pair_columns: bool) -> list[str]:
    try:
        return as_documents(table, what=what)
    except ColumnError as error:
        if not pair_columns:
            raise
        raise ColumnError(f"{error} For pairs of texts, name the columns 'text' and 'text_pair'.") from error


def _pair_columns(table: Any) -> list[str]:
    """Return the two columns that hold pairs of texts, or an empty list if the table holds plain texts.

    Only the names used by Hugging Face count: two columns with other names may be a text and its label.
    """
    columns = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    return list(PAIR_COLUMNS) if set(PAIR_COLUMNS) <= set(columns) else []


def _objects_of_pairs(X: Any) -> bool:
    """Return whether `X` is a pandas Series or one-dimensional array that holds pairs as Python objects."""
    if getattr(X, "dtype", None) != np.dtype(object) or getattr(X, "ndim", None) != 1 or not len(X):
        return False
    return isinstance(next(iter(X)), (tuple, list))
