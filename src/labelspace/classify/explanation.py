"""Explanation of a label: scores, margin and the nearest descriptions."""

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from labelspace.classify.anchors import LabelVectors, Matrix, cosines
from labelspace.classify.answers import Answers
from labelspace.classify.decision import Decision
from labelspace.labels import LabelSpace


@final
@dataclass(frozen=True, kw_only=True)
class LabelScore:
    """One label in an explanation."""

    label: str
    """Name of the label."""

    score: float
    """Cosine of text and label, -1 to 1; the logit if the model has logits."""

    probability: float
    """Softmax of scores / temperature."""

    nearest: tuple[tuple[str, float], ...]
    """Descriptions of the label nearest to the text, with their cosines; only for winner and runner-up, and only if the
    model reads descriptions."""

    words: tuple[tuple[str, float], ...] = ()
    """Words of the text that speak most for the label, with what each adds to the logit; only for winner and
    runner-up, and only if the model reads words alone."""


@final
@dataclass(frozen=True, kw_only=True)
class Explanation:
    """The explanation of a label; `print` shows it as text."""

    text: str
    """The text."""

    label: str | None
    """The answer of `predict`; None below `threshold` or `min_probability`, or above the limit of uncertainty."""

    margin: float
    """Score of the winner minus that of the runner-up; near 0 is a toss-up."""

    top: tuple[LabelScore, ...]
    """The likeliest labels, the winner first."""

    threshold: float | None
    """Lowest cosine at which a label is predicted; None: always."""

    min_probability: float | None
    """Lowest probability at which a label is predicted; None: always."""

    too_uncertain: bool
    """Whether the answer is None because the uncertainty is above the limit."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        shown = self.text if len(self.text) <= 200 else self.text[:197] + "..."
        verdict = self.label
        if verdict is None:
            verdict = f"none of these ({self._why()})"
        lines = [shown, f"  -> {verdict}   margin {self.margin:.3f}"]
        for entry in self.top:
            lines.append(f"  {entry.score:6.3f}  p={entry.probability:.3f}  {entry.label}")
            lines.extend(f"            {cosine:.3f}  {text}" for text, cosine in (*entry.nearest, *entry.words))
        return "\n".join(lines)

    def _why(self) -> str:
        if self.too_uncertain:
            return "too uncertain"
        return f"below {self.threshold if self.threshold is not None else self.min_probability:g}"


Quotes = Callable[[str], tuple[tuple[str, float], ...]]
"""From a label's name to what is quoted for it, each with a number."""


def explain_answer(
    text: str,
    answers: Answers,
    *,
    space: LabelSpace,
    decision: Decision,
    top: int,
    nearest: Quotes | None = None,
    words: Quotes | None = None,
) -> Explanation:
    """Build an explanation from computed answers.

    Args:
        text: the text.
        answers: the answers to this one document.
        space: the labels.
        decision: the rule that made the answers.
        top: number of labels to show.
        nearest: returns a label's descriptions nearest to the text, with their cosines; None: quote none.
        words: returns the words that speak most for a label, with what they add; None: quote none.
    """
    scores, probabilities = answers.scores[0], answers.probabilities[0]
    # Ties go to the first by name, as in predict.
    order = sorted(range(len(scores)), key=lambda column: (-scores[column], space.names[column]))
    entries = [
        LabelScore(
            label=space.names[column],
            score=float(scores[column]),
            probability=float(probabilities[column]),
            nearest=nearest(space.names[column]) if nearest is not None and place < 2 else (),
            words=words(space.names[column]) if words is not None and place < 2 else (),
        )
        for place, column in enumerate(order[:top])
    ]
    return Explanation(
        text=text,
        label=answers.names[0],
        margin=float(scores[order[0]] - scores[order[1]]),
        top=tuple(entries),
        threshold=decision.threshold,
        min_probability=decision.min_probability,
        too_uncertain=bool(decision.too_uncertain(answers)[0]),
    )


def nearest_descriptions(vector: Matrix, space: LabelSpace, vectors: dict[str, LabelVectors], *, most: int) -> Quotes:
    """Return a function from a label's name to its descriptions nearest to a document's vector [1 dim]."""

    def of(name: str) -> tuple[tuple[str, float], ...]:
        descriptions = space.labels[space.index(name)].descriptions
        if not descriptions:
            return ()
        near = cosines(vector, vectors[name].descriptions)[0]
        return tuple((descriptions[row], float(near[row])) for row in np.argsort(-near, kind="stable")[:most])

    return of
