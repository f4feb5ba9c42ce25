"""Options on the fly: labels of a request that the model was not fitted on."""

from typing import Any, final

from labelspace.classify.anchors import Matrix
from labelspace.classify.answers import Answers
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.decision import Decision
from labelspace.config import DecisionConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.serve.label_texts import KnownTexts


@final
class Options:
    """Options that a model was not fitted on: what its encoder says of texts.

    Args:
        encoder: the model's encoder.
        most: number of texts of options whose vectors are kept.
    """

    def __init__(self, encoder: Encoder, most: int) -> None:
        self.encoder, self.known = encoder, KnownTexts(encoder, most)

    @classmethod
    def of(cls, classifier: Any, most: int) -> "Options | None":
        """Return the options of a classifier; None if it compares documents with nothing but what it learned."""
        return cls(classifier.encoder_, most) if isinstance(classifier.head_, ByAnchors) else None

    def answers(self, texts: Matrix, space: LabelSpace) -> Answers:
        """Return the answers of vectors [text dim], the same as those of `ZeroShotClassifier(anchor="both")`."""
        head = ByAnchors(self.encoder, space, self.known.label_vectors(space), "both")
        # Not the classifier's own temperature, which may have been set for the answers to its own labels.
        decision = Decision(temperature=DecisionConfig.temperature)
        return decision.answers(space.names, head.judge_vectors(texts, space).scores)
