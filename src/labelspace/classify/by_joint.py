"""The head that joins several fitted classifiers: what a consensus learnt, for new documents."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_softmax, softmax

from labelspace.classify.anchors import cosines
from labelspace.classify.base import Classifier
from labelspace.classify.by_anchors import ByAnchors
from labelspace.classify.by_label_embeddings import ByEmbeddings
from labelspace.classify.by_words import ByWords
from labelspace.classify.head import Judged, columns_of
from labelspace.classify.long_texts import in_full
from labelspace.corpus import Documents, Kind
from labelspace.geometry.neighbours import Graph, mean_of
from labelspace.labels import LabelSpace
from labelspace.progress import Progress, silent

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
    """[text dim], if it compares a vector of each document, cut to the encoder's limit, with vectors of the labels."""

    outside: Table | None = field(default=None, repr=False)
    """[text], the logit of what lies outside of all labels, if it knows something of it."""


def see(model: Classifier, documents: Any, space: LabelSpace, *, scale: float = 1.0, report: Progress = silent) -> Seen:
    """Return what a classifier says about documents, from one run of its encoder.

    Args:
        model: a fitted classifier of these labels.
        documents: texts.
        space: the labels, in the order wanted.
        scale: what its logits are multiplied by.
        report: called with the number of documents done; of a head other than that by anchors only when all are.
    """
    found, vectors = judged(model, documents, space, report)
    factor = scale / model.decision().temperature
    outside = None if found.outside is None else found.outside.astype(np.float64) * factor
    return Seen(found.scores.astype(np.float64) * factor, vectors, outside)


def judged(
    model: Classifier, documents: Any, space: LabelSpace, report: Progress = silent
) -> tuple[Judged, Vectors | None]:
    """Return the output of a classifier's head, and the vectors that it came from, as in `see`."""
    head: Any = model.head_
    if isinstance(head, ByAnchors):
        vectors = head.vectors(Documents(documents, Kind.TEXTS), report)
        found = head.judge_vectors(vectors, space)
    elif isinstance(head, ByEmbeddings):
        vectors = head.vectors(Documents(documents, Kind.TEXTS))
        found = Judged(cosines(vectors, head.label_vectors(space)), None)
    else:
        vectors, found = None, head.judge(documents, space)
    found = in_full(model, documents, space, found)
    if not isinstance(head, ByAnchors):
        report(len(documents), len(documents))
    return found, vectors


def by_words(head: ByWords, texts: Sequence[str], space: LabelSpace) -> Table:
    """Return log-probabilities by words, [text label], none below one in a million."""
    return np.maximum(log_softmax(head.judge(texts, space).scores.astype(np.float64), axis=1), FLOOR)


@final
@dataclass(frozen=True)
class ByJoint:
    """The joined views: the mean of their log-probabilities and the words', mixed with the neighbours'."""

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

    held: Table
    """[step label], what is added after the words and after the neighbours."""

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
        texts = list(documents.rows) if isinstance(documents, Documents) else list(documents)
        return self.judge_seen(self.see(texts), texts, space)

    def see(self, texts: Sequence[str]) -> list[Seen]:
        """Return what the views say."""
        return [see(one, texts, self.space, scale=by) for one, by in zip(self.members, self.scales, strict=True)]

    def judge_seen(self, seen: Sequence[Seen], texts: Sequence[str], space: LabelSpace) -> Judged:
        """Return what `judge` does, from what the views say."""
        columns = columns_of(self.columns, space, who="a consensus", cure="Fit it with that label.")
        near = np.mean([one.logits for one in seen], axis=0)[:, columns].astype(np.float32)
        known = [one.outside for one in seen if one.outside is not None]
        outside = np.mean(known, axis=0).astype(np.float32) if len(known) == len(seen) else None
        return Judged(self.join(seen, texts)[:, columns].astype(np.float32), None, near, outside)

    def join(self, seen: Sequence[Seen], texts: Sequence[str]) -> Table:
        """Return log-probabilities, [text label], from what the views say."""
        each = [
            log_softmax(log_softmax(one.logits, axis=1) + by, axis=1) for one, by in zip(seen, self.shifts, strict=True)
        ]
        logits = np.mean(each, axis=0)
        if self.words is not None:
            logits = logits + by_words(self.words, texts, self.space) + self.held[0]
        if self.near is not None and self.graph is not None and self.smoothed is not None:
            vectors = seen[self.near].vectors
            assert vectors is not None
            near = mean_of(self.smoothed, self.graph.neighbours_of(vectors))
            logits = np.log(self.own * softmax(logits, axis=1) + (1 - self.own) * near + TINY) + self.held[1]
        return log_softmax(logits, axis=1)

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return everything learnt that is not a member's own."""
        found: dict[str, NDArray[Any]] = {"shifts": self.shifts, "held": self.held, "scales": np.array(self.scales)}
        if self.graph is not None and self.smoothed is not None:
            found |= {"graph": self.graph.vectors, "smoothed": self.smoothed}
        if self.words is not None:
            found |= {f"words.{name}": values for name, values in self.words.tensors().items()}
        return found

    def edited(self, change: Any) -> "ByJoint":
        """Return a head with a label renamed or removed."""
        return replace(self, columns=change(self.columns))
