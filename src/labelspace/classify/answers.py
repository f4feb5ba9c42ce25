"""`Answers`: the result of a classifier for some documents, used by every consumer."""

from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """The result of a classifier for some documents, from one run of its encoder.

    The columns of `scores` and `probabilities` follow the label space; `labels` names them. scikit-learn's methods
    (`predict_proba`, `decision_function`) use the order of `classes_`, sorted by name.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = clf.answers(["the match", "the vote"])
        >>> found.labels, found.scores.shape, found.uncertainty
        (('sports', 'politics'), (2, 2), None)
        >>> bool((found.names == clf.predict(["the match", "the vote"])).all())
        True
    """

    names: NDArray[np.object_]
    """[text] predicted label names; None for an abstention."""

    scores: NDArray[np.float32]
    """[text label] cosines or logits; higher is likelier."""

    probabilities: NDArray[np.float64]
    """[text label] the softmax of scores / temperature."""

    uncertainty: NDArray[np.float32] | None
    """[text] uncertainty; None if the model does not measure it."""

    labels: tuple[str, ...]
    """[label] the name of each column."""

    likeliest: NDArray[np.intp]
    """[text] column of the likeliest label, also for abstentions; ties go to the first by name."""

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def columns(self) -> NDArray[np.intp]:
        """[text] column of the predicted label, -1 for an abstention."""
        named = np.array([name is not None for name in self.names], dtype=bool)
        return np.where(named, self.likeliest, -1)

    @property
    def score(self) -> NDArray[np.float32]:
        """[text] the score of the likeliest label."""
        return self.scores[np.arange(len(self)), self.likeliest]

    @property
    def confidence(self) -> NDArray[np.float64]:
        """[text] the probability of the likeliest label."""
        return self.probabilities[np.arange(len(self)), self.likeliest]


@runtime_checkable
class Answering(Protocol):
    """A model that answers documents: all that evaluation, streaming and figures require."""

    def answers(self, X: Any) -> Answers:
        """Return the answers to documents."""
        ...
