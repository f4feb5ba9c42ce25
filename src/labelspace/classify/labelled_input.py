"""What `fit` is given where labels teach, made into documents and targets: texts or pairs, labels known or not."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import as_documents, as_targets
from labelspace.corpus.documents import DocumentPolicy, document_values, is_table
from labelspace.errors import InputError, LabelSpaceWarning
from labelspace.labels import LabelSpace
from labelspace.training.rows import Document


@final
@dataclass(frozen=True)
class Supervision:
    """The rows that have a label, and what the labels are."""

    space: LabelSpace
    """The labels."""

    meaningful: bool
    """False where they were found in y, and so are names without a meaning."""

    documents: list[Document]
    """Labelled texts, or pairs of them."""

    targets: NDArray[np.intp]
    """[text], the column of each one's label."""

    unlabelled: int
    """Rows without a label."""


def supervise(space: LabelSpace | None, X: Any, y: Any) -> Supervision | None:
    """Check documents and labels against one another; None where no row has a label.

    Args:
        space: the labels, or None: those that y names, sorted.
        X: documents or pairs.
        y: label names, with None, NaN, -1 or "" where there is none; None: there is none at all.

    Raises:
        InputError: documents or labels cannot be used, or all labelled rows have one label.
    """
    if y is None:
        return None
    if X is None:
        raise InputError("y names labels, and X is None. Pass the documents they belong to.")
    documents = as_texts_or_pairs(X)
    y = list(document_values(y, text=None, what="y"))
    given = space
    if space is None:
        names = sorted({value for value in y if isinstance(value, str)} - {"", "-1"})
        if len(names) < 2:
            raise InputError(
                f"y must name two labels at least, as text, where labels is None. Got {len(names)} instead; pass "
                "labels, or label names in y."
            )
        space = LabelSpace.from_names(names)
    targets = np.array(as_targets(y, space.names, n_documents=len(documents)), dtype=np.intp)
    rows = np.flatnonzero(targets >= 0)
    if not len(rows):
        return None
    if len(np.unique(targets[rows])) == 1:
        name = space.names[targets[rows[0]]]
        raise InputError(
            f"all {len(rows)} labelled rows have the label {name!r}, so there is nothing to tell apart; label rows of "
            "another one too."
        )
    return Supervision(
        space,
        meaningful=given is not None,
        documents=[documents[row] for row in rows],
        targets=targets[rows],
        unlabelled=len(documents) - len(rows),
    )


def as_texts_or_pairs(X: Any, what: str = "X") -> list[Document]:
    """Return documents, or pairs where `X` has two texts in a row.

    Args:
        X: whatever `as_documents` takes; or a list of 2-tuples, an array or a table of two columns (none of them
            called "text").
        what: the caller's name for it.

    Raises:
        InputError: a document is none, or a pair lacks a half.

    Example:
        >>> as_texts_or_pairs([("a man sleeps", "a man is awake")])
        [('a man sleeps', 'a man is awake')]
        >>> as_texts_or_pairs([("a man sleeps", None)])
        Traceback (most recent call last):
        labelspace.errors.InputError: X[0][1] is missing (None); leave such rows out, or give them a text.
    """
    if is_table(X):
        columns = [str(name) for name in (X.column_names if hasattr(X, "column_names") else X.columns)]
        if len(columns) != 2 or "text" in columns:
            return list(as_documents(X, what=what))
        X = list(zip(*(as_documents_of(X, name) for name in columns), strict=True))
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 2:
        X = [tuple(row) for row in X.tolist()]
    elif not hasattr(X, "__len__") and hasattr(X, "__iter__") and not hasattr(X, "__fspath__"):
        X = list(X)
    if not is_pairs(X):
        return list(as_documents(X, what=what))
    halves: list[list[str]] = []
    notes: dict[str, str] = {}
    for row, pair in enumerate(X):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            got = f"{len(pair)} values" if isinstance(pair, (tuple, list)) else f"a {type(pair).__name__}"
            raise InputError(f"{what}[{row}] must be a pair of texts, as {what}[0] is. Got {got} instead.")
        policy = DocumentPolicy(lambda half, row=row: f"{what}[{row}][{half}]")
        halves.append(policy.clean(pair))
        notes = {**policy.notes(), **notes}
    for note in notes.values():
        warnings.warn(note, LabelSpaceWarning, stacklevel=2)
    return [(first, second) for first, second in halves]


def as_documents_of(X: Any, name: str) -> Sequence[object]:
    """Return the values of one column of a table, not yet checked."""
    return list(document_values(X, text=name, what="X"))


def is_pairs(X: Any) -> bool:
    """Whether a sequence starts with a pair of texts rather than with a text."""
    if isinstance(X, np.ndarray):
        return X.ndim == 2 and X.shape[1] == 2
    return isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], (tuple, list))
