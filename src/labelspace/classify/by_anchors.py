"""The head that compares documents with one anchor per label by their cosine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_choice
from labelspace.classify.anchors import (
    OUTSIDE,
    LabelVectors,
    anchor_matrix,
    cosines,
    encode_labels,
    less_what_it_is_not,
)
from labelspace.classify.encoding import Matrix, own_vectors, windowed
from labelspace.classify.head import Judged
from labelspace.config import ANCHORS
from labelspace.corpus import Documents
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.progress import Progress, silent

WORDS = {
    "verbalizer": "verbalizers",
    "descriptions": "means of the descriptions",
    "both": "verbalizers and descriptions",
}


@final
@dataclass(frozen=True)
class ByAnchors:
    """The head that compares a document's vector with one anchor per label."""

    encoder: Encoder
    """Encoder of documents and labels."""

    space: LabelSpace
    """The labels of `known`."""

    known: dict[str, LabelVectors]
    """Encoded label texts by label name."""

    anchor: str
    """What represents a label: `"verbalizer"`, `"descriptions"` or `"both"`."""

    learnt_labels = False
    reads_descriptions = True
    makes_vectors = True

    def __post_init__(self) -> None:
        check_choice("anchor", self.anchor, ANCHORS)

    @property
    def label_word(self) -> str:
        """What the anchors are, in words."""
        return WORDS[self.anchor]

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return the cosine of every document with every anchor, [text label].

        It is lower where a document is nearer to what the label is not.
        """
        compare = self.comparison(space)
        width = len(space) + bool(space.outside)
        found = windowed(documents, width, lambda window: compare(self.encoder.encode(window)), labels=len(space))
        return _judged(found, space)

    def comparison(self, space: LabelSpace) -> Callable[[Matrix], Matrix]:
        """Return a function from vectors to their cosines with the labels, and in a last column with the outside."""
        known = self.known if space == self.space else encode_labels(self.encoder, space)
        anchors, labels = anchor_matrix(known, space, self.anchor), [known[name] for name in space.names]
        outside = known[OUTSIDE].descriptions if space.outside else None

        def compare(vectors: Matrix) -> Matrix:
            scores = less_what_it_is_not(cosines(vectors, anchors), vectors, labels)
            if outside is None:
                return scores
            return np.column_stack([scores, cosines(vectors, outside).max(axis=1)])

        return compare

    def judge_vectors(self, vectors: Matrix, space: LabelSpace) -> Judged:
        """Return what `judge` returns, of documents that were encoded before."""
        return _judged(self.comparison(space)(vectors), space)

    def vectors(self, documents: Documents, report: Progress = silent) -> Matrix:
        """Return the encoder's vectors, [text dim]; `report` is called with the number of documents done."""
        return own_vectors(self.encoder, documents, report)

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return the anchors, [label dim]; those of another space are encoded on the fly."""
        vectors = self.known if space == self.space else encode_labels(self.encoder, space)
        return anchor_matrix(vectors, space, self.anchor)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the anchors."""
        return {"anchors": self.label_vectors(self.space)}


def _judged(found: Matrix, space: LabelSpace) -> Judged:
    if not space.outside:
        return Judged(found, None)
    return Judged(np.ascontiguousarray(found[:, :-1]), None, outside=found[:, -1])


@runtime_checkable
class Anchored(Protocol):
    """A classifier with a parameter `anchor`, which says what represents a label."""

    anchor: Any
