"""Labels as vectors: what a document is compared with.

Every label is encoded on its own, so that neither another label's presence nor the order of labels
moves a score by one bit (in bfloat16 a vector depends on the batch it shares).
"""

from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.encoders import Encoder
from labelspace.encoders.encoder import WINDOW
from labelspace.labels import Label, LabelSpace

Matrix = NDArray[np.float32]
GRID = 2.0**24


@final
@dataclass(frozen=True)
class LabelVectors:
    """The texts of one label, encoded."""

    verbalizer: Matrix
    """[dim], unit length."""

    descriptions: Matrix
    """[desc dim], unit length; no rows for a label without descriptions."""

    def anchor(self, kind: str) -> Matrix:
        """Return the vector that documents are compared with, [dim], unit length.

        Args:
            kind: `"verbalizer"` (the paper), `"descriptions"` (the mean of the descriptions' vectors) or
                `"both"` (halfway between the two). Without descriptions the verbalizer stands alone.
        """
        if kind == "verbalizer" or not len(self.descriptions):
            return self.verbalizer
        mean = _unit(self.descriptions.mean(axis=0, dtype=np.float64))
        if kind == "both":
            mean = _unit(mean + self.verbalizer)
        return mean.astype(np.float32)


def encode_label(encoder: Encoder, label: Label, verbalizer: str) -> LabelVectors:
    """Encode one label's verbalizer and descriptions."""
    return LabelVectors(
        verbalizer=encoder.encode([verbalizer], role="label")[0],
        descriptions=encoder.encode(label.descriptions, role="text"),
    )


def encode_labels(encoder: Encoder, space: LabelSpace) -> dict[str, LabelVectors]:
    """Encode every label of a space, each on its own, by name."""
    return {
        label.name: encode_label(encoder, label, verbalizer)
        for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
    }


def anchor_matrix(vectors: dict[str, LabelVectors], space: LabelSpace, kind: str) -> Matrix:
    """Stack the anchors in the order of the space, [label dim]."""
    return np.stack([vectors[name].anchor(kind) for name in space.names])


def cosines(texts: Matrix, anchors: Matrix) -> Matrix:
    """Cosine of every text with every anchor, [text label].

    The product is taken in float64 and rounded once, to multiples of 2**-24: how a processor blocks a matrix
    product depends on its width, and in float32 that would show. The grid keeps cosines near 0 from differing by so
    little that their softmax could not tell. Only a window of texts is held in float64.
    """
    found = np.empty((len(texts), len(anchors)), dtype=np.float32)
    wide = anchors.astype(np.float64).T
    for start in range(0, len(texts), WINDOW):
        product = texts[start : start + WINDOW].astype(np.float64) @ wide
        # In place: with ten thousand labels the product is larger than the texts.
        product *= GRID
        np.rint(product, out=product)
        product /= GRID
        found[start : start + WINDOW] = product
    return found


def _unit(vector: NDArray[np.float64]) -> NDArray[np.float64]:
    return vector / max(float(np.linalg.norm(vector)), 1e-12)
