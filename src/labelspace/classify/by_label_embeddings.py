"""LaCon's head: the cosine between a document's vector and learnt label embeddings."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from labelspace.classify.anchors import OUTSIDE, LabelVectors, cosines, encode_label
from labelspace.classify.encoding import Matrix, vectors_of, windowed
from labelspace.classify.head import Judged
from labelspace.classify.saved.modules import module_tensors
from labelspace.encoders import Encoder
from labelspace.labels import Label, LabelSpace
from labelspace.training.features import Features, answers
from labelspace.training.lacon import LaConHead
from labelspace.training.rows import Document, tokenize

ANCHOR = "descriptions"
"""Anchor of a label without training rows: the mean of its descriptions, or its verbalizer."""


@final
@dataclass(frozen=True)
class ByEmbeddings:
    """The head that compares a document's vector with one embedding per label."""

    encoder: Encoder
    """Encoder of documents, and of labels added after training."""

    module: LaConHead | None
    """The trained head on top of the encoder; None if no row was labelled: the encoder's own vectors are compared."""

    embeddings: dict[str, Matrix]
    """Label embeddings by label name, each [dim], unit length."""

    reads_descriptions: bool
    """Whether the embeddings started from descriptions."""

    makes_vectors = True

    @property
    def learnt_labels(self) -> bool:
        """Whether the embeddings were trained on labelled rows."""
        return self.module is not None

    @property
    def label_word(self) -> str:
        """What the embeddings are, in words."""
        return "label embeddings" if self.learnt_labels else "means of the descriptions"

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return the cosine of every document with every label, [text label].

        Learnt embeddings are found by label name. A label added after training is placed by its descriptions, or by its
        verbalizer.
        """
        labels = self.label_vectors(space)
        return Judged(windowed(documents, len(labels), lambda window: cosines(self.vectors(window), labels)), None)

    def vectors(self, documents: Any) -> Matrix:
        """Return the unit vectors of documents, [text dim], to compare with label embeddings."""
        return (
            vectors_of(self.encoder, documents)
            if self.module is None
            else lacon_vectors(self.encoder, self.module, documents)
        )

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return the unit vectors of labels, [label dim], each encoded alone."""
        return np.stack(
            [
                self.embeddings[label.name] if label.name in self.embeddings else self._place(label, verbalizer)
                for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
            ]
        )

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the embeddings, in order, and the head's weights."""
        found: dict[str, NDArray[np.generic]] = {
            f"embeddings.{place}": values for place, values in enumerate(self.embeddings.values())
        }
        return found | (module_tensors(self.module) if self.module is not None else {})

    def added(self, space: LabelSpace, names: tuple[str, ...]) -> "ByEmbeddings":
        """Return a head with these labels of a space added, each placed by its texts."""
        placed = {
            label.name: self._place(label, verbalizer)
            for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
            if label.name in names
        }
        return replace(self, embeddings={**self.embeddings, **placed})

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> "ByEmbeddings":
        """Return a head with a label renamed or removed."""
        return replace(self, embeddings=change(self.embeddings))

    def _place(self, label: Label, verbalizer: str) -> Matrix:
        """Return the embedding of a label added after training."""
        if self.module is None:
            return encode_label(self.encoder, label, verbalizer).anchor(ANCHOR)
        mean = self.vectors(label.descriptions or (verbalizer,)).mean(axis=0, dtype=np.float64)
        return (mean / max(float(np.linalg.norm(mean)), 1e-12)).astype(np.float32)


def untaught(encoder: Encoder, vectors: dict[str, LabelVectors]) -> ByEmbeddings:
    """Return the head of a model without labelled rows: each label is placed by its texts."""
    embeddings = {name: each.anchor(ANCHOR) for name, each in vectors.items() if name != OUTSIDE}
    return ByEmbeddings(encoder, None, embeddings, True)


def taught(encoder: Encoder, module: LaConHead, names: tuple[str, ...], *, reads_descriptions: bool) -> ByEmbeddings:
    """Return the head of a trained module, with the names of its labels in order."""
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
