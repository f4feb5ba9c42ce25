"""Explanation of a label: scores, margin and the nearest descriptions."""

from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from labelspace.classify.anchors import LabelVectors, Matrix, cosines
from labelspace.classify.answers import Answers
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
            lines.extend(f"            {cosine:.3f}  {text}" for text, cosine in entry.nearest)
        return "\n".join(lines)

    def _why(self) -> str:
        if self.too_uncertain:
            return "too uncertain"
        return f"below {self.threshold if self.threshold is not None else self.min_probability:g}"


def explain_answer(
    text: str,
    answers: Answers,
    *,
    vector: Matrix | None,
    space: LabelSpace,
    vectors: dict[str, LabelVectors],
    threshold: float | None,
    min_probability: float | None,
    too_uncertain: bool,
    top: int,
    nearest: int,
) -> Explanation:
    """Build an explanation from computed answers.

    Args:
        text: the text.
        answers: the answers to this one document.
        vector: vector of the document, [1 dim], to compare with descriptions; None: quote no descriptions.
        space: the labels.
        vectors: encoded label texts by label name.
        threshold: lowest cosine at which a label is predicted.
        min_probability: lowest probability at which a label is predicted.
        too_uncertain: whether the document is above the limit of uncertainty.
        top: number of labels to show.
        nearest: number of descriptions to quote for the winner and the runner-up.
    """
    scores, probabilities = answers.scores[0], answers.probabilities[0]
    # Ties go to the first by name, as in predict.
    order = sorted(range(len(scores)), key=lambda column: (-scores[column], space.names[column]))
    entries = []
    for place, column in enumerate(order[:top]):
        label = space.labels[column]
        quotes: tuple[tuple[str, float], ...] = ()
        if place < 2 and label.descriptions and vector is not None:
            near = cosines(vector, vectors[label.name].descriptions)[0]
            best = np.argsort(-near, kind="stable")[:nearest]
            quotes = tuple((label.descriptions[row], float(near[row])) for row in best)
        entries.append(
            LabelScore(
                label=label.name,
                score=float(scores[column]),
                probability=float(probabilities[column]),
                nearest=quotes,
            )
        )
    return Explanation(
        text=text,
        label=answers.names[0],
        margin=float(scores[order[0]] - scores[order[1]]),
        top=tuple(entries),
        threshold=threshold,
        min_probability=min_probability,
        too_uncertain=too_uncertain,
    )
