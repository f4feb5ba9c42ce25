"""Label vectors, which documents are compared with.

Each label is encoded alone, so that scores do not depend on the other labels or their order, not even in the last bit
(in bfloat16 a vector depends on its batch).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.distinct import at_once, tiles
from labelspace.labels import Label, LabelSpace

Matrix = NDArray[np.float32]
OUTSIDE = ""
"""Key, beside the names of labels, of the texts about what lies outside of all of them."""

GRID = 2.0**24


class Encodes(Protocol):
    """The part of an encoder that labels need."""

    def encode(self, texts: Sequence[str], *, role: str = "text") -> Matrix:
        """Return the unit vectors of texts, [text dim]."""
        ...

    def encode_apart(self, groups: Sequence[Sequence[str]], *, role: str = "text") -> list[Matrix]:
        """Return the unit vectors of groups of texts, each group encoded alone."""
        ...


@final
@dataclass(frozen=True)
class LabelVectors:
    """The encoded texts of one label."""

    verbalizer: Matrix
    """[dim], unit length."""

    descriptions: Matrix
    """[desc dim], unit length; no rows for a label without descriptions."""

    excludes: Matrix | None = None
    """[text dim], unit length, of what the label is not; None if nothing is said about it."""

    def anchor(self, kind: str) -> Matrix:
        """Return the vector that documents are compared with, [dim], unit length.

        Args:
            kind: `"verbalizer"` (the paper), `"descriptions"` (the mean of the descriptions' vectors) or
                `"both"` (halfway between the two). Without descriptions it is always the verbalizer.
        """
        if kind == "verbalizer" or not len(self.descriptions):
            return self.verbalizer
        return self._halfway if kind == "both" else self._mean.astype(np.float32)

    # Kept, because every window of documents asks for the anchors of all labels.
    @cached_property
    def _mean(self) -> NDArray[np.float64]:
        return _unit(self.descriptions.mean(axis=0, dtype=np.float64))

    @cached_property
    def _halfway(self) -> Matrix:
        return _unit(self._mean + self.verbalizer).astype(np.float32)


def encode_label(encoder: Encodes, label: Label, verbalizer: str) -> LabelVectors:
    """Encode one label's verbalizer and descriptions."""
    return _encoded(encoder, [label], [verbalizer])[0]


def encode_labels(encoder: Encodes, space: LabelSpace) -> dict[str, LabelVectors]:
    """Encode every label of a space alone; return the vectors by name, and those of `space.outside` by `OUTSIDE`."""
    found = dict(zip(space.names, _encoded(encoder, space.labels, space.verbalizers), strict=True))
    if space.outside:
        texts = encoder.encode(space.outside, role="text")
        found[OUTSIDE] = LabelVectors(verbalizer=texts[0], descriptions=texts)
    return found


def _encoded(encoder: Encodes, labels: Sequence[Label], verbalizers: Sequence[str]) -> list[LabelVectors]:
    sentences = encoder.encode_apart([[verbalizer] for verbalizer in verbalizers], role="label")
    descriptions = encoder.encode_apart([label.descriptions for label in labels], role="text")
    excludes = encoder.encode_apart([label.excludes for label in labels], role="text")
    return [
        LabelVectors(verbalizer=sentence[0], descriptions=own, excludes=other if len(other) else None)
        for sentence, own, other in zip(sentences, descriptions, excludes, strict=True)
    ]


def anchor_matrix(vectors: dict[str, LabelVectors], space: LabelSpace, kind: str) -> Matrix:
    """Stack the anchors in the order of the space, [label dim]."""
    return np.stack([vectors[name].anchor(kind) for name in space.names])


def cosines(texts: Matrix, anchors: Matrix) -> Matrix:
    """Cosine of every text with every anchor, [text label].

    The product is computed in float64 and rounded to multiples of 2**-24. In float32 its last bits would depend on the
    width of the matrix, because processors split the product differently. The grid also prevents cosines near 0 from
    differing by less than their softmax can resolve. Only a window of texts is held in float64.
    """
    found = np.empty((len(texts), len(anchors)), dtype=np.float32)
    wide, size = anchors.astype(np.float64).T, at_once(len(anchors))
    for start in range(0, len(texts), size):
        product = texts[start : start + size].astype(np.float64) @ wide
        # In place, because with ten thousand labels the product is larger than the texts.
        for rows in tiles(len(product), len(anchors)):
            part = product[rows]
            part *= GRID
            np.rint(part, out=part)
            part /= GRID
        found[start : start + size] = product
    return found


def less_what_it_is_not(scores: Matrix, texts: Matrix, vectors: Sequence[LabelVectors]) -> Matrix:
    """Lower the cosine of a label where a text is nearer to what the label is not, by as much as it is nearer.

    Args:
        scores: [text label] cosines.
        texts: [text dim] vectors.
        vectors: [label] the labels' vectors.

    Example:
        >>> space = np.eye(3, dtype=np.float32)
        >>> label = LabelVectors(space[0], space[:0], excludes=space[1:2])
        >>> text = np.array([[0.6, 0.8, 0]], dtype=np.float32)
        >>> less_what_it_is_not(cosines(text, space[:1]), text, [label]).round(2)
        array([[0.4]], dtype=float32)
    """
    lowered = scores
    for column, label in enumerate(vectors):
        if label.excludes is not None:
            lowered = scores.copy() if lowered is scores else lowered
            other = cosines(texts, label.excludes).max(axis=1)
            lowered[:, column] -= np.maximum(other - scores[:, column], 0)
    return lowered


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
