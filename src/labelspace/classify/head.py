"""The head of a fitted classifier, which turns documents into scores."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus import Documents
from labelspace.errors import InputError, ModelFolderError
from labelspace.labels import LabelSpace

Matrix = NDArray[np.float32]
Column = TypeVar("Column")


class Judged(NamedTuple):
    """The output of a head for some documents."""

    scores: Matrix
    """[text label], in the order of the label space."""

    uncertainty: NDArray[np.float32] | None
    """[text]; None if the head does not measure it."""

    near: Matrix | None = None
    """[text label], how near documents are to labels, where `scores` tells only which label is likeliest."""

    outside: Matrix | None = None
    """[text], how near documents are to what lies outside of all labels; None if nothing is said of it."""

    def rows(self, part: slice) -> "Judged":
        """Return the output for some of the documents."""
        others = (None if each is None else each[part] for each in self[1:])
        return Judged(self.scores[part], *others)


class Head(Protocol):
    """Turns documents into scores against labels.

    A head holds its encoder and the weights trained on top of it. It is immutable: a change of labels returns a new
    head.
    """

    reads_descriptions: bool
    """Whether label descriptions influence the answer."""

    makes_vectors: bool
    """Whether the scores come from one vector per document."""

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Score texts or pairs of texts against a label space, the fitted one or another."""
        ...

    def vectors(self, documents: Documents) -> Matrix:
        """Return the document vectors that scores come from, [text dim]; only if `makes_vectors`."""
        ...

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return all arrays that the scores depend on besides the encoder's weights, by name."""
        ...


@runtime_checkable
class ComparesLabels(Protocol):
    """A head that compares each document with one vector per label."""

    label_word: str
    """What the label vectors are, for a caption."""

    learnt_labels: bool
    """Whether the label vectors were learnt from rows rather than encoded."""

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return the label vectors, [label dim]."""
        ...


def check_learnt(known: Mapping[str, Any], space: LabelSpace, place: object) -> None:
    """Refuse the labels of a saved model's label file that it has not learnt.

    Raises:
        ModelFolderError: there is one.
    """
    unknown = [name for name in space.names if name not in known]
    if unknown:
        raise ModelFolderError(
            f"{place} has learnt {', '.join(known)}, and its label file names {unknown[0]!r}; names are changed with "
            "rename_label."
        )


def columns_of(
    known: Mapping[str, Column], space: LabelSpace, *, who: str = "the model", cure: str = "Fit it with that label."
) -> list[Column]:
    """Return the head's column of each label of a space.

    Args:
        known: columns by label name.
        space: the labels to look up.
        who: subject of the error message.
        cure: advice at the end of the error message.

    Raises:
        InputError: a label has no column.
    """
    for name in space.names:
        if name not in known:
            raise InputError(f"{who} has no logit for {name!r}; it knows {', '.join(known)}. {cure}")
    return [known[name] for name in space.names]
