"""Why a text got its label: scores, margin, and the descriptions it lies nearest to."""

from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np

from labelspace.classify.anchors import LabelVectors, Matrix, cosines
from labelspace.classify.answers import Answers
from labelspace.labels import LabelSpace


@final
@dataclass(frozen=True, kw_only=True)
class LabelScore:
    """One label's part in an explanation."""

    label: str
    """Its name."""

    score: float
    """Cosine of text and label, -1 to 1; of a model with a softmax classifier the label's logit."""

    probability: float
    """Softmax of the scores over the temperature."""

    nearest: tuple[tuple[str, float], ...]
    """Its descriptions nearest to the text, with their cosines; only for the winner and the runner-up, and none where
    the model does not look at descriptions."""


@final
@dataclass(frozen=True, kw_only=True)
class Explanation:
    """Why a text got its label. `print` it, or take it apart."""

    text: str
    """The text."""

    label: str | None
    """What `predict` answers; None below `threshold` or `min_probability`, or where the text is too uncertain."""

    margin: float
    """Score of the winner less that of the runner-up; near 0 is a toss-up."""

    top: tuple[LabelScore, ...]
    """The likeliest labels, first the winner."""

    threshold: float | None
    """The lowest cosine at which a label is named; None: at any."""

    min_probability: float | None
    """The lowest probability at which a label is named; None: at any."""

    too_uncertain: bool
    """Whether the uncertainty is above the limit that was set, and the answer None for that."""

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
    """Put an explanation together from what a classifier has computed.

    Args:
        text: the text.
        answers: to this one document.
        vector: its vector, [1 dim], that descriptions are compared with; None: they are no reason for the answer.
        space: the labels.
        vectors: the labels' encoded texts.
        threshold: lowest cosine of a label that is named.
        min_probability: lowest probability of one.
        too_uncertain: whether it is None for another reason, a limit of uncertainty.
        top: how many labels to name.
        nearest: how many descriptions to quote of the winner and the runner-up.
    """
    scores, probabilities = answers.scores[0], answers.probabilities[0]
    # Among equals the first by name wins, as in predict.
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
