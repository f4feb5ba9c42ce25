"""The head of LaCon's cross-entropy baselines: one logit per label."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.by_label_embeddings import lacon_vectors
from labelspace.classify.encoding import Matrix, windowed
from labelspace.classify.head import Judged, columns_of
from labelspace.classify.saved.modules import module_tensors
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.training.features import answers
from labelspace.training.lacon import LaConHead
from labelspace.training.rows import Document, tokenize

WITHOUT_VECTORS = ("leam", "lsan")
"""Heads that score words and labels jointly and make no document vector."""


@final
@dataclass(frozen=True)
class ByLogits:
    """The head of a `LaConClassifier` trained by cross-entropy."""

    encoder: Encoder
    """Encoder of documents."""

    module: LaConHead
    """The trained head on top of the encoder."""

    columns: dict[str, int]
    """Column of each label in the module, by name."""

    reads_descriptions = False

    @property
    def makes_vectors(self) -> bool:
        """Whether each document has one vector, read by a linear layer."""
        return self.module.shape.head not in WITHOUT_VECTORS

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return logits, [text label].

        Raises:
            InputError: a label has no logit.
        """
        columns = columns_of(
            self.columns,
            space,
            who="a model trained by cross-entropy",
            cure="Fit it with that label, or use objective='lacon'.",
        )
        return Judged(windowed(documents, len(space), lambda window: self._logits(window)[:, columns]), None)

    def vectors(self, documents: Any) -> Matrix:
        """Return unit vectors of documents, [text dim]."""
        return lacon_vectors(self.encoder, self.module, documents)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the weights."""
        return module_tensors(self.module)

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> "ByLogits":
        """Return a head with a label renamed or removed."""
        return replace(self, columns=change(self.columns))

    def _logits(self, documents: list[Document]) -> Matrix:
        """Return the logits of texts, [text label], in the order of the module."""
        shape, rows = self.module.shape, tokenize(self.encoder, documents)
        return answers(self.encoder, rows, self.module.logits, words=shape.words, width=shape.labels)
