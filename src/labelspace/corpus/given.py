"""What a caller gives as documents, looked at once: texts, or pairs of texts, in memory or in a file."""

import os
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.corpus.documents import Documents, Kind
from labelspace.corpus.in_memory import document_values, is_table
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.readers import open_table
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning

PAIR_COLUMNS = ("text", "text_pair")


def as_documents(X: object, *, text: str | None = None, what: str = "X") -> list[str]:
    """Return the documents of `X` as a list of str, in order, one for each row.

    Args:
        X: a list, tuple, iterator, numpy array, pandas or polars Series or DataFrame, Arrow array or table,
            HF dataset or its column, or a `pathlib.Path` to a CSV, TSV, JSONL or Parquet file.
        text: the column that holds the text, where `X` is a table. Left out, it is the column named
            "text", or the only column of strings. For other inputs it has no meaning.
        what: the caller's name for `X`, used in messages.

    Returns:
        The documents; an empty input gives an empty list.

    Raises:
        InputError: `X` is no collection of documents, or one of them is no text; names the position.
        ColumnError: a table without the column asked for.

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
    if isinstance(X, os.PathLike):
        table = open_table(Path(X), text=text or "text")
        return [document for batch in table.batches() for document in table.texts(batch)]
    policy = DocumentPolicy(lambda position: f"{what}[{position}]")
    documents = policy.clean(document_values(X, text=text, what=what))
    for note in policy.notes().values():
        warnings.warn(note, LabelSpaceWarning, stacklevel=2)
    return documents


def as_texts_or_pairs(X: Any, what: str = "X", *, pair_columns: bool = True) -> Documents:
    """Return documents with their kind: pairs where `X` has two texts in a row.

    Args:
        X: whatever `as_documents` takes; or a list of 2-tuples, an array of two columns, or a table that has the
            columns "text" and "text_pair"; or `Documents`, which are returned as they are.
        what: the caller's name for it.
        pair_columns: False takes two columns, of a table or an array, for no pairs; of a table "text" is read alone.

    Returns:
        The documents; texts where there is none.

    Raises:
        InputError: a document is none, or a pair lacks a half.

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
        X = list(zip(*(document_values(X, text=name, what="X") for name in columns), strict=True))
    elif isinstance(X, np.ndarray) and X.ndim == 2:
        if X.shape[1] != 2 or not pair_columns:
            return Documents(as_documents(X, what=what), Kind.TEXTS)
        X = [tuple(row) for row in X.tolist()]
    elif _objects_of_pairs(X) or is_stream(X):
        X = list(X)
    if kind_of_input(X) is Kind.TEXTS:
        return Documents(as_documents(X, what=what), Kind.TEXTS)
    return Documents(_pairs(X, what), Kind.PAIRS)


def kind_of_input(X: Any) -> Kind:
    """Say whether a table holds pairs of texts, or a sequence starts with one; of a stream or a file nothing is read.

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
    """Whether X can be read once only."""
    return not hasattr(X, "__len__") and hasattr(X, "__iter__") and not hasattr(X, "__fspath__")


def _pairs(X: Any, what: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    notes: dict[str, str] = {}
    for row, pair in enumerate(X):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            got = f"{len(pair)} values" if isinstance(pair, (tuple, list)) else f"a {type(pair).__name__}"
            raise InputError(f"{what}[{row}] must be a pair of texts, as {what}[0] is. Got {got} instead.")
        policy = DocumentPolicy(lambda half, row=row: f"{what}[{row}][{half}]")
        first, second = policy.clean(pair)
        pairs.append((first, second))
        notes = {**policy.notes(), **notes}
    for note in notes.values():
        warnings.warn(note, LabelSpaceWarning, stacklevel=3)
    return pairs


def _texts_of_table(table: Any, what: str, *, pair_columns: bool) -> list[str]:
    try:
        return as_documents(table, what=what)
    except ColumnError as error:
        if not pair_columns:
            raise
        raise ColumnError(f"{error} The halves of pairs are called 'text' and 'text_pair'.") from error


def _pair_columns(table: Any) -> list[str]:
    """Return the two columns of a table that hold the halves of pairs; none where it holds plain texts.

    By name alone, the ones that Hugging Face gives them: two columns of any other name may be a text and its label.
    """
    columns = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    return list(PAIR_COLUMNS) if set(PAIR_COLUMNS) <= set(columns) else []


def _objects_of_pairs(X: Any) -> bool:
    """Whether X is a Series of pandas or an array of one dimension that holds pairs as Python objects."""
    if getattr(X, "dtype", None) != np.dtype(object) or getattr(X, "ndim", None) != 1 or not len(X):
        return False
    return isinstance(next(iter(X)), (tuple, list))
