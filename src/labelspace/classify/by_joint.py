"""The head that joins several fitted classifiers: what a consensus learnt, for new documents."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from labelspace.classify.anchors import cosines
from labelspace.classify.base import Classifier
from labelspace.classify.by_words import ByWords
from labelspace.classify.head import Judged, columns_of
from labelspace.corpus import Documents, Kind
from labelspace.geometry.neighbours import Graph, mean_of
from labelspace.labels import LabelSpace

Table = NDArray[np.float64]
Vectors = NDArray[np.float32]

TINY = 1e-9
FLOOR = float(np.log(1e-6))
"""Lowest log-probability of the view by words, so that one unknown word rules nothing out."""


@final
@dataclass(frozen=True)
class Seen:
    """What one classifier says about some documents."""

    logits: Table
    """[text label], scores divided by the temperature."""

    vectors: Vectors | None = field(default=None, repr=False)
    """[text dim], if it compares a vector of each document with vectors of the labels."""


def see(model: Classifier, documents: Any, space: LabelSpace, *, scale: float = 1.0) -> Seen:
    """Return what a classifier says about documents, from one run of its encoder.

    Args:
        model: a fitted classifier of these labels.
        documents: texts.
        space: the labels, in the order wanted.
        scale: what its logits are multiplied by.
    """
    head: Any = model.head_
    temperature = model.decision().temperature
    if head.makes_vectors and hasattr(head, "label_vectors"):
        vectors = head.vectors(Documents(documents, Kind.TEXTS))
        return Seen(cosines(vectors, head.label_vectors(space)).astype(np.float64) * (scale / temperature), vectors)
    return Seen(head.judge(documents, space).scores.astype(np.float64) * (scale / temperature))


def by_words(head: ByWords, texts: Sequence[str], space: LabelSpace) -> Table:
    """Return log-probabilities by words, [text label], none below one in a million."""
    return np.maximum(log_softmax(head.judge(texts, space).scores.astype(np.float64), axis=1), FLOOR)


@final
@dataclass(frozen=True)
class ByJoint:
    """The joined views: the mean of their log-probabilities, mixed with the neighbours', beside the words'."""

    members: tuple[Classifier, ...]
    """[view], fitted classifiers of the same labels."""

    scales: tuple[float, ...]
    """[view], what the logits of each are multiplied by."""

    shifts: Table
    """[view label], what is added to the log-probabilities of each."""

    space: LabelSpace
    """The labels, in the order of the columns of `shifts` and `smoothed`."""

    columns: dict[str, int]
    """Column of each label by its present name."""

    own: float = 1.0
    """Share of a document's own answer beside that of its neighbours."""

    near: int | None = None
    """The view whose space holds the neighbours; None: neighbours are not asked."""

    graph: Graph | None = None
    """The documents of the pool in that space."""

    smoothed: NDArray[np.float32] | None = None
    """[text label], probabilities of the documents of the pool."""

    words: ByWords | None = None
    """The view by words; None: words are not read."""

    reads_descriptions = False
    makes_vectors = False

    def judge(self, documents: Any, space: LabelSpace) -> Judged:
        """Return log-probabilities, [text label].

        Raises:
            InputError: a label is not one of those that the consensus was about.
        """
        columns = columns_of(self.columns, space, who="a consensus", cure="Fit it with that label.")
        texts = list(documents.rows) if isinstance(documents, Documents) else list(documents)
        seen = [see(one, texts, self.space, scale=by) for one, by in zip(self.members, self.scales, strict=True)]
        return Judged(self.join(seen, texts)[:, columns].astype(np.float32), None)

    def join(self, seen: Sequence[Seen], texts: Sequence[str]) -> Table:
        """Return log-probabilities, [text label], from what the views say."""
        each = [
            log_softmax(log_softmax(one.logits, axis=1) + by, axis=1) for one, by in zip(seen, self.shifts, strict=True)
        ]
        logits = np.mean(each, axis=0)
        if self.near is not None and self.graph is not None and self.smoothed is not None:
            vectors = seen[self.near].vectors
            assert vectors is not None
            near = mean_of(self.smoothed, self.graph.neighbours_of(vectors))
            logits = np.log(self.own * softmax(logits, axis=1) + (1 - self.own) * near + TINY)
        if self.words is not None:
            logits = logits + by_words(self.words, texts, self.space)
        return log_softmax(logits, axis=1)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return everything learnt that is not a member's own."""
        found: dict[str, NDArray[Any]] = {"shifts": self.shifts, "scales": np.array(self.scales)}
        if self.graph is not None and self.smoothed is not None:
            found |= {"graph": self.graph.vectors, "smoothed": self.smoothed}
        if self.words is not None:
            found |= {f"words.{name}": values for name, values in self.words.tensors().items()}
        return found

    def edited(self, change: Any) -> "ByJoint":
        """Return a head with a label renamed or removed."""
        return replace(self, columns=change(self.columns))
