"""Options on the fly: labels of a request that the model was not fitted on."""

from collections import OrderedDict
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.anchors import LabelVectors
from labelspace.classify.answers import Answers
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.decision import Decision
from labelspace.config import DecisionConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace

Matrix = NDArray[np.float32]


@final
class Options:
    """Options that a model was not fitted on: their vectors, and what its encoder says of texts.

    Vectors of options that were used least recently are forgotten.

    Each text is encoded alone, so that its vector does not depend on what else was asked.
    """

    def __init__(self, encoder: Encoder, temperature: float, most: int) -> None:
        self.encoder, self.temperature, self.most = encoder, temperature, most
        self._kept: OrderedDict[tuple[str, str], Matrix] = OrderedDict()

    @classmethod
    def of(cls, classifier: Any, most: int) -> "Options | None":
        """Return the options of a classifier; None if it compares documents with nothing but what it learned."""
        if not isinstance(classifier.head_, ByAnchors):
            return None
        # Not the classifier's own temperature, which may have been set for the answers to its own labels.
        return cls(classifier.encoder_, DecisionConfig.temperature, most)

    def __len__(self) -> int:
        return len(self._kept)

    def vector(self, text: str, role: str) -> Matrix:
        """Return the vector of a text as a document (`"text"`) or as a verbalizer (`"label"`), [dim]."""
        key = (role, text)
        if key not in self._kept:
            self._kept[key] = self.encoder.encode([text], role=role)[0]
            if len(self._kept) > self.most:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    def labels(self, space: LabelSpace) -> dict[str, LabelVectors]:
        """Return the vectors of each label of a space, by name."""
        none = np.zeros((0, self.encoder.dimension), dtype=np.float32)
        return {
            label.name: LabelVectors(
                verbalizer=self.vector(verbalizer, "label"),
                descriptions=np.stack([self.vector(text, "text") for text in label.descriptions])
                if label.descriptions
                else none,
            )
            for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
        }

    def answers(self, texts: Matrix, space: LabelSpace) -> Answers:
        """Return the answers of vectors [text dim], the same as those of `ZeroShotClassifier(anchor="both")`."""
        head = ByAnchors(self.encoder, space, self.labels(space), "both")
        return Decision(temperature=self.temperature).answers(space.names, head.judge_vectors(texts, space).scores)
