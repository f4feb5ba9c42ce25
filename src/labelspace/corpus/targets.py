"""Labels of documents as column numbers; labels may be missing."""

import numbers
import unicodedata
from collections.abc import Callable, Sequence
from typing import TypeVar

from labelspace.checks import did_you_mean
from labelspace.corpus.in_memory import document_values
from labelspace.corpus.policy import is_missing
from labelspace.corpus.wording import shown
from labelspace.errors import InputError

Read = TypeVar("Read")

UNLABELLED = -1
"""The column number of a document without a label, as in `sklearn.semi_supervised`."""


def as_targets(y: object, names: Sequence[str], *, n_documents: int, what: str = "y") -> list[int]:
    """Return the column number of each document's label, -1 for documents without one.

    Args:
        y: one label name per document, in any collection that `as_documents` takes; surrounding white space and
            the form of Unicode are ignored. -1, None, NaN and NA mean unlabelled; so do "-1" (numpy's form of -1
            among strings) and "" (an empty CSV cell), unless a label has that name.
        names: the label names, in column order.
        n_documents: number of documents.
        what: the caller's name for `y`, used in messages.

    Returns:
        One number per document, from 0 to `len(names) - 1`, or -1.

    Raises:
        InputError: an unknown label, or not one label per document.

    Example:
        >>> as_targets(["sports", None, "world"], ["world", "sports"], n_documents=3)
        [1, -1, 0]
    """
    columns = {name: column for column, name in enumerate(names)}
    in_any_form = {composed(name): column for name, column in columns.items()}
    targets = []
    for position, value in enumerate(document_values(y, text_column=None, what=what)):
        column = None
        if isinstance(value, str):
            column = columns.get(value.strip(), in_any_form.get(composed(value)))
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


def read_cells(
    values: Sequence[object], read: Callable[[Sequence[object], str], Read], place: Callable[[int], str]
) -> Read:
    """Read the cells of a column together; of one that cannot be read, the error names the row.

    Args:
        values: the cells.
        read: takes cells and what messages call them.
        place: takes the number of a cell and returns what messages call it.

    Raises:
        InputError: a cell cannot be read.

    Example:
        >>> read_cells(["b", "a"], lambda cells, what: as_targets(cells, ["a", "b"], n_documents=len(cells), what=what),
        ...     "row {}".format)
        [1, 0]
    """
    try:
        return read(values, "y")
    except InputError:
        for number, value in enumerate(values):
            where = place(number)
            try:
                read([value], where)
            except InputError as error:
                raise InputError(str(error).replace(f"{where}[0]", where, 1)) from None
        raise


def composed(name: str) -> str:
    """Return a label's name without surrounding white space, in the form (Unicode NFC) that compares equal.

    Example:
        >>> composed(" cafe\u0301") == "caf\u00e9"
        True
    """
    return unicodedata.normalize("NFC", name.strip())


def is_unlabelled(value: object) -> bool:
    """Return whether a value among labels means unlabelled: -1, None, NaN, NA, "-1" or "".

    Example:
        >>> [is_unlabelled(value) for value in (None, -1, "", "sports")]
        [True, True, True, False]
    """
    if isinstance(value, str):
        return value.strip() in ("", "-1")
    minus_one = isinstance(value, numbers.Real) and not isinstance(value, bool) and value == UNLABELLED
    return minus_one or is_missing(value)


def _unknown_label(where: str, value: object, names: Sequence[str]) -> InputError:
    listed = ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")
    if isinstance(value, str):
        several = len(parts := value.split("|")) > 1 and all(composed(part) in names for part in parts)
        cure = (
            " If a text may have several labels, say several: true in the label file, and fit."
            if several
            else did_you_mean(value, names)
        )
        return InputError(f"{where} is {value!r}, which is no label.{cure} Labels: {listed}.")
    numbered = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    in_python = numbered and where.startswith("y[")
    example = ", for example [names[number] if number >= 0 else None for number in y]," if in_python else ""
    return InputError(
        f"{where} is {shown(value)} of type {type(value).__name__}; pass label names{example or ','} and None for "
        f"unlabelled. Labels: {listed}."
    )
