"""The head of a classifier: what turns documents into scores, once fitted."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import Documents
from labelspace.errors import InputError
from labelspace.labels import LabelSpace

Matrix = NDArray[np.float32]
Column = TypeVar("Column")


class Judged(NamedTuple):
    """What a head makes of some documents."""

    scores: Matrix
    """[text label], in the order of the label space."""

    uncertainty: NDArray[np.float32] | None
    """[text]; None where the head measures none."""


class Head(Protocol):
    """Turns documents into scores against labels.

    A head holds its encoder and what was learnt on it, and nothing of it is changed in place: a change of labels makes
    another head.
    """

    reads_descriptions: bool
    """Whether what a label's descriptions say is a reason for the answer."""

    makes_vectors: bool
    """Whether each document has one vector that it is judged by."""

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Score texts or pairs of texts against a label space, the fitted one or another."""
        ...

    def vectors(self, documents: Documents) -> Matrix:
        """Return the vectors that documents are judged by, [text dim]; only where `makes_vectors`."""
        ...

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays that the scores depend on beside the encoder's weights, by name."""
        ...


@runtime_checkable
class ComparesLabels(Protocol):
    """A head that compares what it makes of a document with one vector per label."""

    label_word: str
    """What the vector of a label is, for a caption."""

    learnt_labels: bool
    """Whether these vectors were learnt from rows, and not encoded."""

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return what documents are compared with, [label dim]."""
        ...


def columns_of(
    known: Mapping[str, Column], space: LabelSpace, *, who: str = "the model", cure: str = "Fit it with that label."
) -> list[Column]:
    """Return a head's column of each label of a space.

    Args:
        known: the columns by label name.
        space: the labels asked for.
        who: has no logit for a label, in the message.
        cure: what to do about it.

    Raises:
        InputError: a label that is not known.
    """
    for name in space.names:
        if name not in known:
            raise InputError(f"{who} has no logit for {name!r}; it knows {', '.join(known)}. {cure}")
    return [known[name] for name in space.names]
