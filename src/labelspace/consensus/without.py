"""What each description does on a pool: the answers, and what agrees with them, without it.

Documents are encoded once. Without a description only the anchor of its label moves, so the answers of a document
change only from or to that label: one cosine for each document and description.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.anchors import OUTSIDE, LabelVectors, Matrix, anchor_matrix, cosines, less_what_it_is_not
from labelspace.consensus.agreement import Columns, kappa, near_agreement
from labelspace.consensus.signals import Signals, signals_of_graph
from labelspace.consensus.sureness import FEWEST
from labelspace.errors import InputError
from labelspace.geometry.neighbours import Graph
from labelspace.labels import LabelSpace

ANCHOR = "descriptions"
"""What represents a label: the mean of its descriptions, the default of every classifier."""


@final
@dataclass(frozen=True, kw_only=True)
class Without:
    """A description, and the answers without it."""

    label: int
    """Column of its label."""

    place: int
    """Its place among the label's descriptions."""

    wins: int
    """Documents of the label that lie nearer to it than to the label's other descriptions."""

    near: Columns
    """Rows of the documents that are nearer to it than to any other description, of all labels."""

    answers: Columns
    """[text], columns without it."""

    words: float
    """Change of the agreement with words that learnt the answers with it."""

    neighbours: float
    """Change of the agreement of near documents."""


def lie_outside(scores: Matrix, vectors: Matrix, known: dict[str, LabelVectors]) -> NDArray[np.bool_]:
    """Return which documents get None because they are nearer to the space's `outside` than to any label, [text].

    Args:
        scores: [text label] cosines, less what a label is not.
        vectors: [text dim], the documents.
        known: encoded label texts; without those of `OUTSIDE` no document is outside.
    """
    if OUTSIDE not in known:
        return np.zeros(len(scores), dtype=bool)
    return cosines(vectors, known[OUTSIDE].descriptions).max(axis=1) > scores.max(axis=1)


@final
class Descriptions:
    """The descriptions of a space on a pool of documents, but for those that lie outside of all labels.

    Args:
        texts: the documents.
        vectors: [text dim], the documents.
        space: the labels.
        known: encoded label texts by label name.
        graph: the documents' neighbours.
        seed: seed of the model of words.

    Raises:
        InputError: some documents lie outside, and fewer than 50 are left.
    """

    def __init__(
        self,
        texts: Sequence[str],
        vectors: Matrix,
        space: LabelSpace,
        known: dict[str, LabelVectors],
        graph: Graph,
        *,
        seed: int,
    ) -> None:
        labels = [known[name] for name in space.names]
        scores = less_what_it_is_not(cosines(vectors, anchor_matrix(known, space, ANCHOR)), vectors, labels)
        outside = lie_outside(scores, vectors, known)
        self.outside = int(outside.sum())
        """Number of documents that are left out."""
        if self.outside:
            rows = np.flatnonzero(~outside)
            if len(rows) < FEWEST:
                raise InputError(
                    f"{self.outside} of {len(texts)} documents lie outside of all labels, and the other {len(rows)} "
                    f"are too few; give {FEWEST} documents of the labels or more."
                )
            texts, vectors, scores = [texts[row] for row in rows.tolist()], vectors[rows], scores[rows]
            graph = Graph(vectors, neighbours=graph.count, seed=seed)
        self.texts, self.space, self.graph, self.seed = list(texts), space, graph, seed
        self._vectors, self._known = vectors, known
        self.scores = scores
        """[text label], cosines, less what a label is not."""
        self.answers: Columns = self.scores.argmax(axis=1)
        self.signals = self.signals_of(self.answers)

    def signals_of(self, answers: Columns) -> Signals:
        """Return the signals of some answers; words learn them anew, which takes some seconds."""
        return signals_of_graph(answers, self.texts, self.space, self.graph, seed=self.seed)

    def each(self) -> Iterator[Without]:
        """Yield every description, in the order of the labels."""
        all_of_them = np.concatenate([self._known[name].descriptions for name in self.space.names])
        nearest_of_all, first = cosines(self._vectors, all_of_them).argmax(axis=1), 0
        rows, others = np.arange(len(self.scores)), self.scores.copy()
        others[rows, self.answers] = -np.inf
        runner_up = others.argmax(axis=1)
        for label, name in enumerate(self.space.names):
            known = self._known[name]
            if not len(known.descriptions):
                continue
            own = np.flatnonzero(self.answers == label)
            nearest = cosines(self._vectors[own], known.descriptions).argmax(axis=1)
            wins = np.bincount(nearest, minlength=len(known.descriptions))
            second = np.where(self.answers == label, runner_up, self.answers)
            best = self.scores[rows, second]
            less = [
                LabelVectors(known.verbalizer, np.delete(known.descriptions, place, axis=0)).anchor(ANCHOR)
                for place in range(len(known.descriptions))
            ]
            scores = less_what_it_is_not(cosines(self._vectors, np.stack(less)), self._vectors, [known] * len(less))
            for place, column in enumerate(scores.T):
                stays = (column > best) | ((column == best) & (label < second))
                near = np.flatnonzero(nearest_of_all == first + place)
                yield self._without(label, place, int(wins[place]), near, np.where(stays, label, second))
            first += len(less)

    def _without(self, label: int, place: int, wins: int, near: Columns, answers: Columns) -> Without:
        labels, now = len(self.space), self.signals
        agreement, _ = near_agreement(answers, self.graph, labels)
        return Without(
            label=label,
            place=place,
            wins=wins,
            near=near,
            answers=answers,
            words=kappa(answers, now.by_words, labels) - now.words,
            neighbours=agreement - (now.neighbours or 0.0),
        )
