"""What `fit` is given where labels teach, made into documents and targets: texts or pairs, labels known or not."""

import numbers
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import as_documents, as_targets
from labelspace.corpus.in_memory import document_values, is_table
from labelspace.corpus.policy import DocumentPolicy, is_missing
from labelspace.corpus.targets import UNLABELLED
from labelspace.errors import ColumnError, InputError, LabelSpaceWarning
from labelspace.labels import LabelSpace
from labelspace.training.rows import Document

PAIR_COLUMNS = ("text", "text_pair")
_WORDS = re.compile(r"[^\W\d_]+")
NUMPYS_WORDS = ("nan", "None", b"nan", b"None")


@final
@dataclass(frozen=True)
class Supervision:
    """The rows that have a label, and what the labels are."""

    space: LabelSpace
    """The labels."""

    meaningful: bool
    """Whether the labels say something: False where only `y` names them, and where nothing but names was written that
    are codes or stand for pairs, which are not about them."""

    documents: list[Document]
    """Labelled texts, or pairs of them."""

    everything: list[Document]
    """The same, and those without a label between them."""

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
    given_space = space is not None
    given, y = y, list(document_values(y, text=None, what="y"))
    if space is None:
        _check_names(y, given)
        names = sorted({value.strip() for value in y if isinstance(value, str)} - {"", "-1"})
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
        meaningful=given_space and _says_something(space, pairs=is_pairs(documents)),
        documents=[documents[row] for row in rows],
        everything=documents,
        targets=targets[rows],
        unlabelled=len(documents) - len(rows),
    )


def _says_something(space: LabelSpace, *, pairs: bool) -> bool:
    """Whether a description or a sentence was written, or what fills the template is words and documents are texts."""
    if any(label.descriptions or label.verbalizer for label in space.labels):
        return True
    return not pairs and not are_codes([label.phrase or label.name for label in space.labels])


def are_codes(names: Sequence[str]) -> bool:
    """Whether most names say nothing: without a letter, a single Latin letter, or a stem that most have in common.

    Example:
        >>> are_codes(["0", "1"]), are_codes(["A", "B"]), are_codes(["LABEL_A", "LABEL_B"]), are_codes(["yes", "no"])
        (True, True, True, False)
        >>> are_codes(["type 1 diabetes", "type 2 diabetes", "asthma", "gout"]), are_codes(["Python", "Java", "C"])
        (False, False)
    """
    words = [
        [part for part in _WORDS.findall(name.casefold()) if len(part) > 1 or not part.isascii()] for name in names
    ]
    stems = Counter(" ".join(own) for own in words)
    shared = max((count for stem, count in stems.items() if stem), default=0)
    return 2 * max(stems[""], shared if shared > 1 else 0) > len(names)


def as_texts_or_pairs(X: Any, what: str = "X") -> list[Document]:
    """Return documents, or pairs where `X` has two texts in a row.

    Args:
        X: whatever `as_documents` takes; or a list of 2-tuples, an array of two columns, or a table that has the
            columns "text" and "text_pair".
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
        columns = _pair_columns(X)
        if not columns:
            try:
                return list(as_documents(X, what=what))
            except ColumnError as error:
                raise ColumnError(f"{error} The halves of pairs are called 'text' and 'text_pair'.") from error
        X = list(zip(*(as_documents_of(X, name) for name in columns), strict=True))
    elif isinstance(X, np.ndarray) and X.ndim == 2 and X.shape[1] == 2:
        X = [tuple(row) for row in X.tolist()]
    elif _objects_of_pairs(X) or is_stream(X):
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


def _pair_columns(table: Any) -> list[str]:
    """Return the two columns of a table that hold the halves of pairs; none where it holds plain texts.

    By name alone, the ones that Hugging Face gives them: two columns of any other name may be a text and its label.
    """
    columns = [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]
    return list(PAIR_COLUMNS) if set(PAIR_COLUMNS) <= set(columns) else []


def as_documents_of(X: Any, name: str) -> Sequence[object]:
    """Return the values of one column of a table, not yet checked."""
    return list(document_values(X, text=name, what="X"))


def is_pairs(X: Any) -> bool:
    """Whether a table holds pairs of texts, or a sequence starts with one."""
    if is_table(X):
        return bool(_pair_columns(X))
    if isinstance(X, np.ndarray) and X.ndim == 2:
        return X.shape[1] == 2
    return _objects_of_pairs(X) or (isinstance(X, (list, tuple)) and bool(X) and isinstance(X[0], (tuple, list)))


def is_stream(X: Any) -> bool:
    """Whether X can be read once only."""
    return not hasattr(X, "__len__") and hasattr(X, "__iter__") and not hasattr(X, "__fspath__")


def _objects_of_pairs(X: Any) -> bool:
    """Whether X is a Series of pandas or an array of one dimension that holds pairs as Python objects."""
    if getattr(X, "dtype", None) != np.dtype(object) or getattr(X, "ndim", None) != 1 or not len(X):
        return False
    return isinstance(next(iter(X)), (tuple, list))


def _check_names(y: Sequence[object], given: Any) -> None:
    """Raise InputError where y numbers the labels, and nothing says what they are called, or numpy made names."""
    if isinstance(given, np.ndarray) and given.dtype.kind in "US":
        made = next((value for value in y if value in NUMPYS_WORDS), None)
        if made is not None:
            raise InputError(
                f"y holds the text {made!r}, which numpy makes of a missing label in an array of text, and labels is "
                "None; pass an array with dtype=object, or say labels=[...]."
            )
    for row, value in enumerate(y):
        if isinstance(value, numbers.Real) and value != UNLABELLED and not is_missing(value):
            raise InputError(
                f"y[{row}] is the number {value!r}, and labels is None, so that nothing says what the labels are "
                "called; pass names in y, for example [names[number] for number in y]."
            )
