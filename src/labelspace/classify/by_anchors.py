"""Classification by the cosine between a document and one anchor per label; only the encoder is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, Self, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice
from labelspace.classify.anchors import LabelVectors, anchor_matrix, cosines, encode_labels
from labelspace.classify.arguments import as_label, as_label_space
from labelspace.classify.base import BiEncoderClassifier
from labelspace.classify.cards import anchored_card
from labelspace.classify.decision import Decision
from labelspace.classify.editing import LabelChange, advice_after_adding
from labelspace.classify.encoding import Matrix, own_vectors, windowed
from labelspace.classify.head import Judged
from labelspace.classify.state import State
from labelspace.config import ANCHORS
from labelspace.corpus import Documents
from labelspace.encoders import Encoder
from labelspace.labels import Label, LabelSpace

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
        """Return the cosine of every document with every anchor, [text label]."""
        anchors = self.label_vectors(space)

        def work(window: list[str]) -> Matrix:
            return cosines(self.encoder.encode(window), anchors)

        return Judged(windowed(documents, len(anchors), work), None)

    def vectors(self, documents: Documents) -> Matrix:
        """Return the encoder's vectors, [text dim]."""
        return own_vectors(self.encoder, documents)

    def label_vectors(self, space: LabelSpace) -> Matrix:
        """Return the anchors, [label dim]; those of another space are encoded on the fly."""
        vectors = self.known if space == self.space else encode_labels(self.encoder, space)
        return anchor_matrix(vectors, space, self.anchor)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return the anchors."""
        return {"anchors": self.label_vectors(self.space)}


@runtime_checkable
class Anchored(Protocol):
    """A classifier with a parameter `anchor`, which says what represents a label."""

    anchor: Any


class AnchoredClassifier(BiEncoderClassifier):
    """Base of the two classifiers by anchors, which differ in what `fit` does with the encoder."""

    anchor: Any
    temperature: float
    threshold: float | None

    card_of = staticmethod(anchored_card)

    @property
    def head_(self) -> ByAnchors:
        """The head, made on each access because `anchor` may change after `fit`."""
        return ByAnchors(self.encoder_, self.label_space_, self.label_vectors_, self.anchor)

    def decision(self) -> Decision:
        """Return the decision rule: the temperature and the threshold on the cosine."""
        return Decision(temperature=self.temperature, threshold=self.threshold)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.
        """
        check_is_fitted(self)
        label = as_label(label)
        space = self._encode_new(label)
        return advice_after_adding(label.name, space, self.label_vectors_, self.anchor)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ConfigError: a parameter is invalid.
        """
        model = super().from_state(state)
        model._check_parameters()
        return model

    def _check_parameters(self) -> LabelSpace:
        check_choice("anchor", self.anchor, ANCHORS)
        self.decision()
        return as_label_space(self.labels)
