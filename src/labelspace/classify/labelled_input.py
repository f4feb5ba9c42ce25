"""Conversion of `fit` input to documents and targets, for classifiers that learn from labelled rows."""

import numbers
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import Documents, Kind, as_targets, as_texts_or_pairs
from labelspace.corpus.given import kind_of_input
from labelspace.corpus.in_memory import document_values, is_table, kind_of
from labelspace.corpus.policy import is_missing
from labelspace.corpus.targets import UNLABELLED, composed, is_unlabelled
from labelspace.corpus.wording import shown
from labelspace.errors import InputError, warn
from labelspace.labels import LabelSpace

_WORDS = re.compile(r"[^\W\d_]+")
NUMPYS_WORDS = ("nan", "None", b"nan", b"None")


@final
@dataclass(frozen=True)
class Supervision:
    """The labelled rows and their label space."""

    space: LabelSpace
    """The labels."""

    meaningful: bool
    """Whether the labels carry meaning: False if only `y` names them, or if they have only names and these are codes or
    label pairs of texts."""

    documents: Documents
    """The labelled documents."""

    targets: NDArray[np.intp]
    """[text], column of each document's label."""

    unlabelled: int
    """Number of rows without a label."""

    @property
    def only(self) -> str | None:
        """The label that all rows have; None if they have several."""
        found = np.unique(self.targets)
        return self.space.names[found[0]] if len(found) == 1 else None

    def nothing_to_tell_apart(self) -> InputError:
        """Return the error where a single label has rows, and rows are all that is learnt from."""
        return InputError(
            f"all {len(self.targets)} labelled rows have the label {self.only!r}, so there is nothing to tell apart; "
            "label rows of another one too."
        )


@final
@dataclass(frozen=True)
class Given:
    """The checked input of `fit`."""

    documents: Any
    """`Documents`; or, if y is None, unread input: a file, a stream, a `Pool`, texts in memory or None."""

    supervision: Supervision | None
    """None if no row has a label."""


def look_at(space: LabelSpace | None, X: Any, y: Any) -> Given:
    """Check documents and labels against each other.

    Args:
        space: the labels; None: the names in y, sorted.
        X: documents or pairs.
        y: label names; None, NaN, -1 or "" for a row without a label; None: no row has a label.

    Raises:
        InputError: documents or labels are invalid.

    Warns:
        LabelSpaceWarning: a document has rows with different labels, or a column of labels is not read.
    """
    if y is None:
        _warn_of_unread_labels(X)
        # A stream or a file may be long, so it is left unread; only a sample of it is held later.
        return Given(as_texts_or_pairs(X) if kind_of_input(X) is Kind.PAIRS else X, None)
    if X is None:
        raise InputError("y names labels, and X is None. Pass the documents they belong to.")
    documents = as_texts_or_pairs(X)
    given_space = space is not None
    given, y = y, list(document_values(y, text_column=None, what="y"))
    if space is None:
        _check_names(y, given)
        names = sorted({composed(value) for value in y if isinstance(value, str)} - {"", "-1"})
        if len(names) < 2:
            raise InputError(
                f"y must name two labels at least, as text, where labels is None. Got {len(names)} instead; pass "
                "labels, or label names in y."
            )
        space = LabelSpace.from_names(names)
    targets = np.array(as_targets(y, space.names, n_documents=len(documents)), dtype=np.intp)
    rows = np.flatnonzero(targets >= 0)
    if not len(rows):
        return Given(documents, None)
    labelled, targets = documents.take(rows), targets[rows]
    _warn_of_disputed(labelled, targets, space)
    return Given(
        documents,
        Supervision(
            space,
            meaningful=given_space and _says_something(space, pairs=documents.kind is Kind.PAIRS),
            documents=labelled,
            targets=targets,
            unlabelled=len(documents) - len(rows),
        ),
    )


def _warn_of_unread_labels(X: Any) -> None:
    """Warn if a table has a column of labels, and y is None: then the column is not read."""
    columns: list[str] = []
    if is_table(X):
        columns = list(X.columns if kind_of(X).endswith(".DataFrame") else X.column_names)
    found = next((name for name in ("label", "labels") if name in columns), None)
    if found is not None and "text" in columns:
        warn(f"X has a column {found!r}, which is not read as labels; to learn from it, pass y=X[{found!r}].")


def _warn_of_disputed(documents: Documents, targets: NDArray[np.intp], space: LabelSpace) -> None:
    """Warn if the same document has rows with different labels, as two coders leave them."""
    first: dict[Any, int] = {}
    disputed: dict[Any, set[int]] = {}
    for document, target in zip(documents.rows, targets.tolist(), strict=True):
        before = first.setdefault(document, target)
        if before != target:
            disputed.setdefault(document, {before}).add(target)
    if disputed:
        document, own = next(iter(disputed.items()))
        names = ", ".join(sorted(space.names[target] for target in own))
        warn(
            f"{len(disputed)} of the {len(first)} labelled documents have rows with different labels, such as "
            f"{shown(document)} ({names}); each row counts. If coders disagreed, decide for one label."
        )


def _says_something(space: LabelSpace, *, pairs: bool) -> bool:
    """Return whether there is a description or verbalizer, or names that are words for single texts."""
    if any(label.descriptions or label.verbalizer for label in space.labels):
        return True
    return not pairs and not are_codes([label.phrase or label.name for label in space.labels])


def are_codes(names: Sequence[str]) -> bool:
    """Return whether most names are codes: no letter, a single Latin letter, or a stem that most names share.

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


def _check_names(y: Sequence[object], given: Any) -> None:
    """Raise InputError if y holds other values than names, or names that numpy made of missing labels."""
    made_by_numpy = isinstance(given, np.ndarray) and given.dtype.kind in "US"
    if made_by_numpy:
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
                "called; pass names in y, for example [names[number] if number >= 0 else None for number in y]."
            )
        if not isinstance(value, str) and not is_unlabelled(value):
            raise InputError(f"y[{row}] is {shown(value)} of type {type(value).__name__}; pass label names, as text.")
    minus_one = sum(isinstance(value, str) and value.strip() == "-1" for value in y)
    if minus_one and not made_by_numpy:
        warn(f"y holds the text '-1' {minus_one} times, which is read as no label; if it is a label, say labels=[...].")
