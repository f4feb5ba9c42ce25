"""The uncertainty classifier's head: each document is a Gaussian; its mean gives logits, its std the uncertainty."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.distinct import in_windows
from labelspace.classify.encoding import Matrix
from labelspace.classify.head import Judged, columns_of
from labelspace.classify.saved.modules import module_tensors
from labelspace.encoders import Encoder
from labelspace.heads import GaussianHead
from labelspace.labels import LabelSpace
from labelspace.training.uncertainty import Outputs, outputs_of_texts

NO_LOGIT = -1e6
"""Score of a label without training rows: its probability is 0 at any temperature, and the entropy stays finite."""


@final
@dataclass(frozen=True)
class ByGaussians:
    """The head of `UncertaintyClassifier`."""

    encoder: Encoder
    """The frozen encoder."""

    module: GaussianHead
    """The trained head on top of the encoder."""

    columns: dict[str, int | None]
    """Column of each label in the module, by name; None for a label without training rows."""

    reads_descriptions = False
    makes_vectors = True

    @property
    def taught(self) -> int:
        """Number of labels with a logit."""
        return sum(column is not None for column in self.columns.values())

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return logits and uncertainty; a label without training rows gets `NO_LOGIT`.

        Raises:
            InputError: the model was not fitted with one of the labels.
        """
        columns = dict(enumerate(columns_of(self.columns, space)))
        taught = {place: column for place, column in columns.items() if column is not None}
        scores = np.full((len(documents), len(columns)), NO_LOGIT, dtype=np.float32)
        uncertainty = np.empty(len(documents), dtype=np.float32)
        for rows, outputs in self._outputs(documents, len(space)):
            scores[rows[:, None], list(taught)] = outputs.logits[:, list(taught.values())]
            uncertainty[rows] = outputs.uncertainty
        return Judged(scores, uncertainty)

    def vectors(self, documents: Any) -> Matrix:
        """Return the mean of each document's Gaussian, [text dim]."""
        found = np.empty((len(documents), self.module.dim), dtype=np.float32)
        for rows, outputs in self._outputs(documents):
            found[rows] = outputs.means
        return found

    def uncertainty(self, documents: Any) -> NDArray[np.float32]:
        """Return the mean of each document's std over its coordinates, [text]."""
        found = np.empty(len(documents), dtype=np.float32)
        for rows, outputs in self._outputs(documents):
            found[rows] = outputs.uncertainty
        return found

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the weights."""
        return module_tensors(self.module)

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]]) -> "ByGaussians":
        """Return a head with a label renamed or removed."""
        return replace(self, columns=change(self.columns))

    def _outputs(self, texts: Any, labels: int = 1) -> Iterator[tuple[NDArray[np.intp], Outputs]]:
        """Yield the rows of each window and the module's outputs for them."""
        for rows, window, each in in_windows(texts, labels):
            outputs = outputs_of_texts(self.encoder, self.module, self.encoder.tokenize(window))
            yield rows, Outputs(*(part[each] for part in outputs))
