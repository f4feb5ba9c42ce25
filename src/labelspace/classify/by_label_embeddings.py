"""LaCon's head: label embeddings that were learnt, and the cosine of each with what the head makes of a document."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from labelspace.classify.anchors import LabelVectors, cosines, encode_label
from labelspace.classify.encoding import Matrix, plain, windowed
from labelspace.classify.head import Judged
from labelspace.classify.state import module_tensors
from labelspace.encoders import Encoder
from labelspace.labels import Label, LabelSpace
from labelspace.training.features import Features, answers
from labelspace.training.lacon import LaConHead
from labelspace.training.rows import Document, tokenize

ANCHOR = "descriptions"
"""Where a label stands that no row has moved: at the mean of its descriptions, or at its verbalizer."""


@final
@dataclass(frozen=True)
class ByEmbeddings:
    """The head that compares what it makes of a document with one embedding per label."""

    encoder: Encoder
    """Encodes documents, and labels that training never saw."""

    module: LaConHead | None
    """What stands on the encoder; None where no row was labelled, and the encoder's own vectors are compared."""

    embeddings: dict[str, Matrix]
    """By label name: [dim], unit length."""

    reads_descriptions: bool
    """Whether the embeddings started from descriptions."""

    makes_vectors = True

    @property
    def learnt_labels(self) -> bool:
        """Whether rows have moved the labels."""
        return self.module is not None

    @property
    def label_word(self) -> str:
        """What an embedding is."""
        return "label embeddings" if self.learnt_labels else "means of the descriptions"

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return the cosine of every document with every label, [text label].

        A label keeps by its name what was learnt of it. One that training never saw stands where its descriptions
        are, or its verbalizer.
        """
        labels = self.label_vectors(space)
        return Judged(windowed(documents, len(labels), lambda window: cosines(self.vectors(window), labels)), None)

    def vectors(self, documents: Any) -> Matrix:
        """Return unit vectors of documents, [text dim], that label embeddings are compared with."""
        return (
            plain(self.encoder, documents)
            if self.module is None
            else lacon_vectors(self.encoder, self.module, documents)
        )

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return unit vectors of labels, [label dim], each made on its own."""
        return np.stack(
            [
                self.embeddings[label.name] if label.name in self.embeddings else self._place(label, verbalizer)
                for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
            ]
        )

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the embeddings in their order, and the head's weights."""
        found: dict[str, NDArray[np.generic]] = {
            f"embeddings.{place}": values for place, values in enumerate(self.embeddings.values())
        }
        return found | (module_tensors(self.module) if self.module is not None else {})

    def added(self, space: LabelSpace, names: tuple[str, ...]) -> "ByEmbeddings":
        """Return a head that has these labels of a space too, each placed by its texts."""
        placed = {
            label.name: self._place(label, verbalizer)
            for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
            if label.name in names
        }
        return replace(self, embeddings={**self.embeddings, **placed})

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> "ByEmbeddings":
        """Return a head in which a label is renamed or removed."""
        return replace(self, embeddings=change(self.embeddings))

    def _place(self, label: Label, verbalizer: str) -> Matrix:
        """Where a label stands that training never saw."""
        if self.module is None:
            return encode_label(self.encoder, label, verbalizer).anchor(ANCHOR)
        mean = self.vectors(label.descriptions or (verbalizer,)).mean(axis=0, dtype=np.float64)
        return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)


def untaught(encoder: Encoder, vectors: dict[str, LabelVectors]) -> ByEmbeddings:
    """Return the head of a model that saw no labelled row: its labels stand where their texts are."""
    return ByEmbeddings(encoder, None, {name: each.anchor(ANCHOR) for name, each in vectors.items()}, True)


def taught(encoder: Encoder, module: LaConHead, names: tuple[str, ...], *, reads_descriptions: bool) -> ByEmbeddings:
    """Return the head of a trained module whose labels are these, in this order."""
    labels = module.labels
    assert labels is not None
    vectors = F.normalize(labels().detach(), dim=1).cpu().numpy()
    return ByEmbeddings(
        encoder, module, {name: vectors[column] for column, name in enumerate(names)}, reads_descriptions
    )


def lacon_vectors(encoder: Encoder, module: LaConHead, documents: list[Document]) -> Matrix:
    """Return unit vectors of texts or pairs by a trained module, [text dim]."""

    def project(features: Features) -> Tensor:
        return F.normalize(module.vectors(features), dim=-1)

    rows = tokenize(encoder, documents)
    return answers(encoder, rows, project, words=module.shape.words, width=module.shape.dim)
