"""Checked documents: texts, or pairs of texts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, final, overload

from labelspace.errors import InputError

Document = str | tuple[str, str]
"""A text, or a pair of texts."""


class Kind(StrEnum):
    """Kind of documents; the value is the wording in messages."""

    TEXTS = "texts"
    PAIRS = "pairs of texts"


@final
@dataclass(frozen=True)
class Documents(Sequence[Document]):
    """Documents that have been checked, with their kind, so that nobody checks them again.

    Example:
        >>> found = Documents([("a man sleeps", "a man is awake")], Kind.PAIRS)
        >>> len(found), found[0][1], found[:0].kind
        (1, 'a man is awake', <Kind.PAIRS: 'pairs of texts'>)
    """

    rows: list[Any]
    """[text] the documents: a list of str, or a list of 2-tuples of str."""

    kind: Kind
    """Texts or pairs; texts if there are no documents."""

    def __len__(self) -> int:
        return len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Document: ...
    @overload
    def __getitem__(self, index: slice) -> "Documents": ...
    def __getitem__(self, index: int | slice) -> "Document | Documents":
        return Documents(self.rows[index], self.kind) if isinstance(index, slice) else self.rows[index]

    def take(self, rows: Iterable[int]) -> "Documents":
        """Return the documents at some rows, in the order given."""
        return Documents([self.rows[row] for row in rows], self.kind)

    def first_of_each(self) -> list[int]:
        """Return the rows at which a document stands for the first time.

        Example:
            >>> Documents(["a", "b", "a"], Kind.TEXTS).first_of_each()
            [0, 1]
        """
        found: dict[Any, int] = {}
        for row, document in enumerate(self.rows):
            found.setdefault(document, row)
        return list(found.values())


def check_kind(came: Kind, fitted: Kind) -> None:
    """Refuse pairs if a model was fitted on texts, and texts if it was fitted on pairs.

    Raises:
        InputError: the kinds differ.
    """
    if came != fitted:
        raise InputError(f"the model was fitted on {fitted}. Got {came} instead; pass {fitted}.")
