"""The one object that goes from a model to everyone: what it makes of some documents."""

from dataclasses import dataclass
from typing import Any, Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray


@final
@dataclass(frozen=True, eq=False)
class Answers:
    """What a classifier finds out about some documents in one run of its encoder.

    The columns of `scores` and `probabilities` are in the order of the label space, as `labels` names them.
    scikit-learn's methods (`predict_proba`, `decision_function`) have theirs in the order of `classes_`, by name.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> found = clf.answers(["the match", "the vote"])
        >>> found.labels, found.scores.shape, found.uncertainty
        (('sports', 'politics'), (2, 2), None)
        >>> (found.names == clf.predict(["the match", "the vote"])).all()
        np.True_
    """

    names: NDArray[np.object_]
    """[text] label names; None where no label is named."""

    scores: NDArray[np.float32]
    """[text label], higher is likelier: cosines, or logits."""

    probabilities: NDArray[np.float64]
    """[text label], the softmax of the scores over the temperature."""

    uncertainty: NDArray[np.float32] | None
    """[text]; None where the model measures none."""

    labels: tuple[str, ...]
    """[label] the name of each column."""

    likeliest: NDArray[np.intp]
    """[text] the column of the likeliest label, also where it is not named; of equals the first by name."""

    def __len__(self) -> int:
        return len(self.scores)

    @property
    def columns(self) -> NDArray[np.intp]:
        """[text] the column of the label that is named, -1 where none is."""
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
    """A model that answers documents; evaluation, streaming and figures know no more of it."""

    def answers(self, X: Any) -> Answers:
        """Return what the model makes of documents."""
        ...
