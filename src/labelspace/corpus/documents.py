"""Documents as a list of str, from whatever holds them; the rules for odd ones are in `policy`."""

import os
import warnings
from pathlib import Path

from labelspace.corpus.in_memory import document_values
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.readers import open_table
from labelspace.errors import LabelSpaceWarning


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
        >>> as_documents(("one", b"two"))
        ['one', 'two']
        >>> import pyarrow as pa
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
