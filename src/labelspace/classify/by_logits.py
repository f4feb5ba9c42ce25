"""The head of LaCon's baselines by cross-entropy: a logit for each label."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.by_label_embeddings import lacon_vectors
from labelspace.classify.encoding import Matrix, windowed
from labelspace.classify.head import Judged, columns_of
from labelspace.classify.state import module_tensors
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.training.features import answers
from labelspace.training.lacon import LaConHead
from labelspace.training.rows import Document, tokenize

WITHOUT_VECTORS = ("leam", "lsan")
"""Heads that judge a document by its words and the labels at once, and make no vector of it."""


@final
@dataclass(frozen=True)
class ByLogits:
    """The head of `LaConClassifier` where it was trained by cross-entropy."""

    encoder: Encoder
    """Encodes documents."""

    module: LaConHead
    """What stands on it."""

    columns: dict[str, int]
    """Of the module, by label name."""

    reads_descriptions = False

    @property
    def makes_vectors(self) -> bool:
        """Whether a document has one vector that a linear layer reads."""
        return self.module.shape.head not in WITHOUT_VECTORS

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return logits, [text label].

        Raises:
            InputError: a label without a logit.
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
        """Return a head in which a label is renamed or removed."""
        return replace(self, columns=change(self.columns))

    def _logits(self, documents: list[Document]) -> Matrix:
        """Logits of texts, [text label], in the order of the module."""
        shape, rows = self.module.shape, tokenize(self.encoder, documents)
        return answers(self.encoder, rows, self.module.logits, words=shape.words, width=shape.labels)
