"""How the documents are labelled now: the untrained classifier's answers, from the vectors that were kept."""

from typing import Any, final

import numpy as np

from labelspace.classify import Answers, Classifier, ZeroShotClassifier
from labelspace.classify.explanation import explain_answer, nearest_descriptions
from labelspace.classify.head import Judged
from labelspace.classify.none_of_these import FEWEST, left_out
from labelspace.labels import LabelSpace
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.studio.documents import StudioPool

SHOWN = 5
"""Nearest, and most doubtful, documents of each label."""


@final
class Answered:
    """The documents of a pool under one version of the labels.

    Args:
        known: the texts of labels.
        pool: encoded documents.
        space: the labels.
        version: the version of the label file.
        none: whether documents that fit no label get none; the limit is chosen on the pool.
    """

    def __init__(self, known: KnownTexts, pool: StudioPool, space: LabelSpace, version: int, *, none: bool) -> None:
        self.space, self.version, self.pool = space, version, pool
        self.model: ZeroShotClassifier = known.model(space)
        judged = self.model.head_.judge_vectors(pool.vectors, space)
        self.answers: Answers = answers_of(self.model, judged, space, none=none and len(pool.texts) >= FEWEST)
        self.decision = self.model.decision()
        self.doubt = self.decision.doubt(self.answers, "entropy")
        self.doubtful = np.argsort(-self.doubt, kind="stable")
        """Rows, the most doubtful first."""

    def to_dict(self) -> dict[str, Any]:
        """Return columns, doubts and what each label has, ready for JSON."""
        columns, score = self.answers.columns, self.answers.score
        second = np.argsort(-self.answers.scores, axis=1, kind="stable")[:, 1]
        top = max(float(self.doubt.max()), 1e-9)
        labels = []
        for column, name in enumerate(self.space.names):
            own = np.flatnonzero(columns == column)
            labels.append(
                {
                    "name": name,
                    "count": len(own),
                    "share": len(own) / len(columns),
                    "nearest": own[np.argsort(-score[own], kind="stable")][:SHOWN].tolist(),
                    "doubtful": own[np.argsort(-self.doubt[own], kind="stable")][:SHOWN].tolist(),
                }
            )
        return {
            "version": self.version,
            "columns": columns.tolist(),
            "likeliest": self.answers.likeliest.tolist(),
            "second": second.tolist(),
            "score": score.round(3).tolist(),
            "doubt": (self.doubt / top).round(3).tolist(),
            "order": self.doubtful.tolist(),
            "none": int((columns < 0).sum()),
            "limit": None if self.model.none_ is None else str(self.model.none_),
            "labels": labels,
        }

    def explain(self, row: int) -> dict[str, Any]:
        """Return scores, margin and the descriptions that pulled a document, ready for JSON."""
        vector = self.pool.vectors[row : row + 1]
        judged = self.model.head_.judge_vectors(vector, self.space)
        answers = self.decision.answers(self.space.names, *judged)
        quotes = nearest_descriptions(lambda _: vector, self.space, self.model.label_vectors_, most=2)
        return explain_answer(
            self.pool.texts[row], answers, space=self.space, decision=self.decision, top=3, nearest=quotes
        ).to_dict()


def answers_of(model: Classifier, judged: Judged, space: LabelSpace, *, none: bool) -> Answers:
    """Return the answers of a model to the pool, on which its limit for none of these is chosen first, if `none`."""
    if none:
        found = model.decision().answers(space.names, *judged)
        near = judged.scores if judged.near is None else judged.near
        model.none_ = left_out(near, found.likeliest, space, found.columns < 0)
    return model.decision().answers(space.names, *judged)
