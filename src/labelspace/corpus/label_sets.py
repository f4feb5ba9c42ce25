"""Sets of labels of documents, as an indicator matrix."""

import numbers
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import did_you_mean
from labelspace.corpus.in_memory import as_arrow_table, document_values, is_table, kind_of
from labelspace.corpus.policy import is_missing
from labelspace.corpus.readers import DocumentTable
from labelspace.corpus.targets import composed, is_unlabelled, read_cells
from labelspace.errors import InputError


class LabelSets(NamedTuple):
    """The labels of some documents."""

    truth: NDArray[np.bool_]
    """[text label] whether a document has a label."""

    known: NDArray[np.bool_]
    """[text] whether the labels of a document are known; a document may have none."""


def as_label_sets(y: Any, names: Sequence[str], *, n_documents: int, separator: str, what: str = "y") -> LabelSets:
    """Return the labels of each document as an indicator matrix.

    Args:
        y: an indicator matrix (an array, a frame or a sparse matrix) whose columns are the sorted names; or for each
            document a list of names, or a text in which names are joined. An empty list or text means that no label
            applies; None, NaN or -1 that the labels are not known.
        names: [label] the label names, in column order.
        n_documents: number of documents.
        separator: stands between joined names.
        what: the caller's name for `y`, used in messages.

    Raises:
        InputError: an unknown label, a matrix of another shape or with other values than 0 and 1, a table that names
            its columns in another order, or not one set of labels per document.

    Example:
        >>> found = as_label_sets([["money", "sports"], "sports", [], None], ["sports", "money"], n_documents=4,
        ...     separator="|")
        >>> found.truth.astype(int).tolist(), found.known.tolist()
        ([[1, 1], [1, 0], [0, 0], [0, 0]], [True, True, True, False])
    """
    if isinstance(y, (str, bytes)) or not (isinstance(y, Iterable) or is_table(y)):
        raise InputError(f"{what} must hold a set of labels for each document. Got {type(y).__name__} instead.")
    if kind_of(y) == "datasets.Column":
        y = list(document_values(y, text_column=None, what=what))
    matrix, columns = _as_matrix(y, what)
    if matrix is not None:
        if columns != sorted(names) and not set(columns).isdisjoint(names):
            raise InputError(
                f"{what} is a table whose columns are not the sorted label names. Got {', '.join(columns[:20])}; take "
                "the columns in the order of classes_."
            )
        return _of_matrix(matrix, names, n_documents, what)
    sets = list(document_values(y, text_column=None, what=what))
    if len(sets) != n_documents:
        raise InputError(
            f"{what} must hold one set of labels for each of the {n_documents} documents. Got {len(sets)} instead; "
            "documents whose labels are not known carry None."
        )
    columns = {name: column for column, name in enumerate(names)}
    columns = {**{composed(name): column for name, column in columns.items()}, **columns}
    truth = np.zeros((n_documents, len(names)), dtype=bool)
    known = np.ones(n_documents, dtype=bool)
    for row, value in enumerate(sets):
        if not isinstance(value, Iterable):
            known[row] = not is_unlabelled(value)
            if known[row]:
                raise InputError(f"{what}[{row}] is {value!r}; give a list of names, or None where none is known.")
            continue
        parts: Iterable[Any] = value
        if isinstance(value, str):
            parts = value.split(separator) if value.strip() else ()
        for name in parts:
            column = None
            if isinstance(name, str):
                column = columns.get(name.strip(), columns.get(composed(name)))
            if column is None:
                raise _unknown(f"{what}[{row}]", name, names, separator)
            truth[row, column] = True
    return LabelSets(truth, known)


def _as_matrix(y: Any, what: str) -> tuple[NDArray[Any] | None, list[str]]:
    """Return y as an array if it is an indicator matrix, else None; and the names of its columns, if it has any."""
    if is_table(y) and not kind_of(y).endswith(".DataFrame"):
        table = as_arrow_table(y, what)
        found = [column.to_numpy() for column in table.columns]
        return np.column_stack(found) if found else np.empty((len(table), 0)), table.column_names
    if hasattr(y, "toarray"):
        return y.toarray(), []
    if len(getattr(y, "shape", ())) == 2:
        return np.asarray(y), [str(name) for name in getattr(y, "columns", ())]
    if isinstance(y, (list, tuple)) and y and all(_numbers(row) for row in y):
        lengths = {len(row) for row in y}
        return np.array(y) if len(lengths) == 1 else None, []
    return None, []


def _numbers(row: Any) -> bool:
    return isinstance(row, (list, tuple)) and bool(row) and all(isinstance(value, numbers.Real) for value in row)


def _of_matrix(matrix: NDArray[Any], names: Sequence[str], n_documents: int, what: str) -> LabelSets:
    if matrix.shape != (n_documents, len(names)):
        raise InputError(
            f"{what} must have a row for each of the {n_documents} documents and a column for each of the "
            f"{len(names)} labels, sorted by name. Got the shape {matrix.shape} instead."
        )
    unknown = matrix.dtype == object and any(map(is_missing, matrix.flat))  # `isin` cannot compare pandas' NA
    if unknown or not np.isin(matrix, (0, 1)).all():
        raise InputError(f"{what} must hold 0 and 1 alone, 1 where a document has a label. Got other values too.")
    order = np.argsort(np.argsort(np.array(names, dtype=object), kind="stable"))
    return LabelSets(matrix.astype(bool)[:, order], np.ones(n_documents, dtype=bool))


def _unknown(where: str, name: object, names: Sequence[str], separator: str) -> InputError:
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if not isinstance(name, str):
        return InputError(f"{where} holds {name!r} of type {type(name).__name__}; pass label names. Labels: {listed}.")
    return InputError(
        f"{where} holds {name.strip()!r}, which is no label.{did_you_mean(name.strip(), names)} Labels: {listed}; "
        f"{separator!r} joins several."
    )


def sets_of_column(values: Iterable[Any]) -> list[Any]:
    """Return the cells of a table's label column as `as_label_sets` takes them: an empty cell means no label."""
    return ["" if value is None else value for value in values]


def check_label_sets(table: DocumentTable, names: Sequence[str], separator: str) -> tuple[int, int]:
    """Check the labels of every row of a table, and return the number of rows, and of those whose labels are known.

    Args:
        table: a table with a label column.
        names: [label] the label names.
        separator: stands between joined names.

    Raises:
        InputError: an unknown label; the message names file, row and column.
    """

    def read(cells: Sequence[object], what: str) -> LabelSets:
        if any(map(_numbers, cells)):
            raise InputError(f"{what} holds numbers; write the names of labels, joined by {separator!r} or in a list.")
        return as_label_sets(cells, names, n_documents=len(cells), separator=separator, what=what)

    rows = known = 0
    for batch in table.batches():
        values = sets_of_column(batch.column(table.label_column).to_pylist())
        found = read_cells(
            values, read, lambda cell, first=rows: f"{table.place(first + cell)}: column {table.label_column!r}"
        )
        rows += len(values)
        known += int(found.known.sum())
    return rows, known
