"""`ZeroShotClassifier`: the untrained encoder, the baseline for every trained model."""

from typing import Any, Self, final

from labelspace.classify.anchored import AnchoredClassifier
from labelspace.classify.arguments import as_encoder, check_targets, warn_of_alike
from labelspace.classify.several import material
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
        several: True: a text may have several labels, or none, as with `several: true` in the label file.
        labels_per_text: mean number of labels of a text, if it is known, for the cuts of several labels; None: the
            cuts come from the documents given to `fit`.
        long_texts: how texts longer than the encoder's limit are read: `"cut"` to it, or in `"windows"` whose best
            scores count for each label.

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
        several: bool = False,
        labels_per_text: float | None = None,
        long_texts: str = DecisionConfig.long_texts,
    ) -> None:
        self.labels = labels
        self.encoder = encoder
        self.anchor = anchor
        self.temperature = temperature
        self.threshold = threshold
        self.several = several
        self.labels_per_text = labels_per_text
        self.long_texts = long_texts

    def fit(self, X: Any = None, y: Any = None) -> Self:
        """Encode the labels, and set the cuts of several labels.

        Args:
            X: with several labels, unlabelled documents like those to predict, a path to a file of them, or a
                `corpus.Pool`: they set the cut of each label. Else it is not used; pipelines pass it.
            y: with several labels, the labels of X, which set the cuts then: an indicator matrix, or for each document
                a list of names; None: X is unlabelled. Else it is checked but not used.

        Raises:
            ConfigError: a parameter is invalid.
            LabelFileError: the labels are invalid.
            EncoderError: the encoder cannot be opened.
            InputError: `y` holds an unknown label name, or differs from `X` in length; with several labels, there are
                no documents, or too few.
        """
        space = self._check_parameters()
        if not space.several:
            check_targets(X, y, space)
        given = material(space, X, y, self.labels_per_text, seed=0) if space.several else None
        encoder = as_encoder(self.encoder)
        warn_of_alike(encoder, space, bare=self.anchor == "descriptions")
        return self._finish_with_cuts(encoder, space, given)
