"""`ZeroShotClassifier`: the untrained encoder, the baseline for every trained model."""

from typing import Any, Self, final

from labelspace.classify.arguments import as_encoder, check_targets
from labelspace.classify.by_anchors import AnchoredClassifier
from labelspace.config import DecisionConfig
from labelspace.encoders import DEFAULT_ENCODER


@final
class ZeroShotClassifier(AnchoredClassifier):
    """Classifies by the cosine between document and label, without any training.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names.
        encoder: a name from `labelspace encoders`, any sentence-transformers name or folder, an Encoder, or a
            dictionary of its arguments.
        anchor: what represents a label: `"verbalizer"`, `"descriptions"` (mean of their vectors) or `"both"`.
        temperature: divides the cosines in `predict_proba`, above 0.
        threshold: lowest cosine, -1 to 1, at which `predict` returns a label; None: always.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> clf.predict_proba(["the match was won late"]).shape
        (1, 2)

    Reference:
        "Description-only supervision", section 3, "Inference".
    """

    def __init__(
        self,
        labels: Any,
        encoder: Any = DEFAULT_ENCODER,
        *,
        anchor: str = DecisionConfig.anchor,
        temperature: float = DecisionConfig.temperature,
        threshold: float | None = None,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.anchor = anchor
        self.temperature = temperature
        self.threshold = threshold

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Encode the labels. X and y are not used; pipelines pass them.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: the encoder cannot be opened.
            InputError: `y` holds an unknown label name, or differs from `X` in length.
        """
        space = self._check_parameters()
        check_targets(X, y, space)
        return self._finish(as_encoder(self.encoder), space)
