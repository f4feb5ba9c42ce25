"""From scores to answers: softmax, ties, threshold, and limits of doubt and of closeness."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, final, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.answers import Answers
from labelspace.classify.cuts import Cuts
from labelspace.classify.distinct import tiles
from labelspace.classify.none_of_these import NoneLimit
from labelspace.classify.several import joined_names
from labelspace.config import DecisionConfig
from labelspace.training.abstention import Limit, entropy

RANKINGS = ("auto", "uncertainty", "entropy")
"""Measures of doubt."""


@runtime_checkable
class MeasuresDoubt(Protocol):
    """A classifier that measures the doubt of its answers."""

    def ranking(self, by: str = "auto") -> str:
        """Return the measure of doubt, `"uncertainty"` or `"entropy"`."""
        ...

    def doubt(self, answers: Answers, by: str = "auto") -> NDArray[np.float64]:
        """Return the doubt of each document, [text]."""
        ...


@final
@dataclass(frozen=True, kw_only=True)
class Decision:
    """The rule that turns scores into answers.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.2, 0.3]], dtype=np.float32)
        >>> Decision(temperature=0.1, threshold=0.5).answers(("sports", "money"), scores).names
        array(['sports', None], dtype=object)
    """

    temperature: float = 1.0
    """Divides the scores before the softmax, above 0."""

    threshold: float | None = None
    """Lowest cosine at which a label is predicted, -1 to 1; None: always predict one."""

    min_probability: float | None = None
    """Lowest probability at which a label is predicted, 0 to 1; None: always predict one."""

    limit: Limit | None = None
    """Highest doubt at which a label is predicted; None: always predict one."""

    none: NoneLimit | None = None
    """Lowest closeness at which a label is predicted; None: always predict one."""
    cuts: Cuts | None = None
    """The cut of each label, where a text may have several; None: each text has one."""

    def __post_init__(self) -> None:
        # Checks the values.
        DecisionConfig(temperature=self.temperature, threshold=self.threshold, min_probability=self.min_probability)

    def answers(
        self,
        labels: Sequence[str],
        scores: NDArray[np.float32],
        uncertainty: NDArray[np.float32] | None = None,
        near: NDArray[np.float32] | None = None,
        outside: NDArray[np.float32] | None = None,
    ) -> Answers:
        """Return the answers for some scores.

        Args:
            labels: [label] names.
            scores: [text label].
            uncertainty: [text], if the model measures it.
            near: [text label], how near documents are to labels; None: as the scores say.
            outside: [text], how near documents are to what lies outside of all labels, if that is known.
        """
        if self.cuts is not None:
            return _several(self.cuts, labels, scores, uncertainty)
        by_name = np.argsort(np.array(labels, dtype=object), kind="stable")
        # Ties go to the first by name, so that the order of the label file has no effect. They are rare, and to bring
        # thousands of columns into the order of names takes longer than to look for them.
        likeliest = scores.argmax(axis=1)
        tied = np.flatnonzero(np.count_nonzero(scores == scores.max(axis=1, keepdims=True), axis=1) != 1)
        likeliest[tied] = by_name[scores[tied][:, by_name].argmax(axis=1)]
        probabilities = self._probabilities(scores, by_name)
        names = np.array(labels, dtype=object)[likeliest]
        if self.threshold is not None:
            # Compared in float32, as after loading.
            names[scores.max(axis=1) < float(self.threshold)] = None
        if self.min_probability is not None:
            names[probabilities.max(axis=1) < float(self.min_probability)] = None
        near = scores if near is None else near
        closeness, kept = None, tuple(labels)
        if self.none is not None:
            closeness = self.none.closeness(kept, near, likeliest)
        beyond = None if outside is None else outside > near[np.arange(len(near)), likeliest]
        answers = Answers(names, scores, probabilities, uncertainty, kept, likeliest, closeness, beyond)
        for refused in (self.too_uncertain(answers), self.too_far(answers), beyond):
            if refused is not None:
                names[refused] = None
        return answers

    def doubt(self, answers: Answers, by: str) -> NDArray[np.float64]:
        """Return the doubt of each document, [text].

        Args:
            answers: the answers to the documents.
            by: `"uncertainty"`, or `"entropy"` of the probabilities.
        """
        if by == "uncertainty":
            return np.asarray(answers.uncertainty, dtype=np.float64)
        by_name = np.argsort(np.array(answers.labels, dtype=object), kind="stable")
        return entropy(answers.scores.take(by_name, axis=1), self.temperature)

    def too_uncertain(self, answers: Answers) -> NDArray[np.bool_]:
        """Return whether each document is above the limit of doubt, [text]."""
        if self.limit is None:
            return np.zeros(len(answers), dtype=bool)
        return self.doubt(answers, self.limit.by) > self.limit.value

    def too_far(self, answers: Answers) -> NDArray[np.bool_]:
        """Return whether each document is below the limit of closeness, [text]."""
        if self.none is None or answers.closeness is None:
            return np.zeros(len(answers), dtype=bool)
        return answers.closeness < self.none.value

    def _probabilities(self, scores: NDArray[np.float32], by_name: NDArray[np.intp]) -> NDArray[np.float64]:
        # float64 keeps cosines apart that differ in the last bit, so that both rank the same label first.
        found = np.empty(scores.shape)
        for rows in tiles(*scores.shape):
            powers = found[rows]
            np.divide(scores[rows], self.temperature, out=powers, dtype=np.float64)
            powers -= powers.max(axis=1, keepdims=True)
            np.exp(powers, out=powers)
            # Sum in the order of names, so that the order of columns does not change the last bit; `take` lays each row
            # out by itself, so that neither do the other rows.
            powers /= powers.take(by_name, axis=1).sum(axis=1, keepdims=True)
        return found


def _several(
    cuts: Cuts, labels: Sequence[str], scores: NDArray[np.float32], uncertainty: NDArray[np.float32] | None
) -> Answers:
    """Return answers in which a text has each label whose score reaches its cut."""
    margins = cuts.margins(labels, scores)
    chosen = cuts.chosen(margins)
    by_name = np.argsort(np.array(labels, dtype=object), kind="stable")
    return Answers(
        joined_names(labels, chosen),
        scores,
        cuts.probabilities(margins),
        uncertainty,
        tuple(labels),
        by_name[margins[:, by_name].argmax(axis=1)],
        chosen=chosen,
        margins=margins,
    )
