"""`Answers`: the result of a classifier for some documents, used by every consumer."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray

_STEPS = 2**26
"""Steps of a rounded margin: a quarter of the last digit of a cosine."""


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
    """[text] predicted label names; None for an abstention. Several names of a text are joined by `|`."""

    scores: NDArray[np.float32]
    """[text label] cosines or logits; higher is likelier."""

    probabilities: NDArray[np.float64]
    """[text label] the softmax of scores / temperature; with several labels, how likely each one applies."""

    uncertainty: NDArray[np.float32] | None
    """[text] uncertainty; None if the model does not measure it."""

    labels: tuple[str, ...]
    """[label] the name of each column."""

    likeliest: NDArray[np.intp]
    """[text] column of the likeliest label, also for abstentions; ties go to the first by name."""

    closeness: NDArray[np.float64] | None = None
    """[text] standard deviations that the score of the likeliest label lies above what a pool's documents of other
    labels have with it; None without a limit for "none of these"."""

    outside: NDArray[np.bool_] | None = None
    """[text] whether a document is nearer to what the label file says lies outside than to its likeliest label; None if
    it says nothing."""
    chosen: NDArray[np.bool_] | None = None
    """[text label] which labels are predicted, if a text may have several; None: each text has one."""

    margins: NDArray[np.float64] | None = None
    """[text label] how far each score is above its label's cut, if a text may have several; None: each text has one."""

    def __len__(self) -> int:
        return len(self.scores)

    def __getitem__(self, rows: slice) -> "Answers":
        """Return the answers to some of the documents."""
        whole = {field.name: getattr(self, field.name) for field in fields(self)}
        parts: dict[str, Any] = {key: it[rows] if isinstance(it, np.ndarray) else it for key, it in whole.items()}
        return Answers(**parts)

    @property
    def columns(self) -> NDArray[np.intp]:
        """[text] column of the predicted label, of several the likeliest; -1 for an abstention."""
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

    @property
    def least_confidence(self) -> NDArray[np.float64]:
        """[text] minus the confidence: highest where a model is least sure (Lewis and Gale, 1994). Where a text may
        have several labels, minus the distance of the nearest score to its label's cut."""
        if self.margins is None:
            return -self.confidence
        # A cut often lies midway between two scores; rounded, both are as far from it on every processor.
        return -np.rint(np.abs(self.margins).min(axis=1) * _STEPS) / _STEPS

    def top(self, count: int) -> NDArray[np.intp]:
        """Return the columns of the likeliest labels, [text count], the likeliest first; ties go to the first by name.

        Args:
            count: number of labels, at most as many as there are.
        """
        ranks = self.scores if self.margins is None else self.margins
        by_name = np.argsort(np.argsort(np.array(self.labels, dtype=object), kind="stable"))
        # The last of them is found without sorting thousands of labels; more than `count` may tie with it.
        least = np.partition(ranks, -count, axis=1)[:, -count]
        found = np.empty((len(ranks), count), dtype=np.intp)
        for row, (own, last) in enumerate(zip(ranks, least, strict=True)):
            columns = np.flatnonzero(own >= last)
            found[row] = columns[np.lexsort((by_name[columns], -own[columns]))][:count]
        return found


class AnswerBlock(NamedTuple):
    """The answers to some different documents, and the rows where these stand."""

    rows: NDArray[np.intp]
    """[row], rows of the input."""

    which: NDArray[np.intp]
    """[row], the place of each row's document among `answers`."""

    answers: Answers
    """The answers."""


def gathered(
    blocks: Iterable[AnswerBlock], take: Callable[[Answers], Iterable[NDArray[Any]]]
) -> Iterator[NDArray[Any]]:
    """Yield arrays in the order of the documents, from what `take` returns of each block: arrays, [text ...].

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> blocks = clf.answer_blocks(["the match", "the vote", "the match"])
        >>> [values.shape for values in gathered(blocks, lambda found: (found.names, found.top(1)))]
        [(3,), (3, 1)]
    """
    rows, parts = list[NDArray[np.intp]](), list[list[NDArray[Any]]]()
    for block in blocks:
        rows.append(block.rows)
        parts.append([values[block.which] for values in take(block.answers)])
    back = np.argsort(np.concatenate(rows))
    for values in zip(*parts, strict=True):
        yield np.concatenate(values)[back]
