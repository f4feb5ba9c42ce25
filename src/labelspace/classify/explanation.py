"""Explanation of a label: scores, margin and the nearest descriptions."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import final

import numpy as np

from labelspace.checks import check_number
from labelspace.classify.anchors import LabelVectors, Matrix, cosines
from labelspace.classify.answers import Answers
from labelspace.classify.decision import Decision
from labelspace.classify.long_texts import Passage
from labelspace.corpus.policy import DocumentPolicy
from labelspace.errors import InputError
from labelspace.labels import LabelSpace
from labelspace.notebook import Plain, Shown
from labelspace.text_table import shortened

TOLD = 200
"""Letters of a text that are told."""


@final
@dataclass(frozen=True, kw_only=True)
class LabelScore:
    """One label in an explanation."""

    label: str
    """Name of the label."""

    score: float
    """Cosine of text and label, -1 to 1; the logit if the model has logits."""

    probability: float
    """Softmax of scores / temperature; with several labels, how likely this one applies."""

    nearest: tuple[tuple[str, float], ...]
    """Descriptions of the label nearest to the text, with their cosines; only for winner and runner-up, and only if the
    model reads descriptions."""

    words: tuple[tuple[str, float], ...] = ()
    """Words of the text that speak most for the label, with what each adds to the logit; only for winner and
    runner-up, and only if the model reads words alone."""

    cut: float | None = None
    """Score from which on the label is predicted, where a text may have several; None: each text has one."""


@final
@dataclass(frozen=True, kw_only=True)
class Explanation(Plain, Shown):
    """The explanation of a label; `print` shows it as text."""

    text: str
    """The text."""

    label: str | None
    """The answer of `predict`; None if the text fits none, see `threshold`, `min_probability`, `too_uncertain`,
    `closeness_limit` and `outside`. Several names are joined by `|`."""

    margin: float
    """Score of the winner minus that of the runner-up; near 0 is a toss-up. With several labels, the smallest distance
    of a score from its label's cut."""

    top: tuple[LabelScore, ...]
    """The likeliest labels, the winner first; of several labels at least all that are predicted."""

    threshold: float | None
    """Lowest cosine at which a label is predicted; None: always."""

    min_probability: float | None
    """Lowest probability at which a label is predicted; None: always."""

    too_uncertain: bool
    """Whether the answer is None because the uncertainty is above the limit."""

    closeness: float | None
    """How close the text is to its likeliest label, in standard deviations over a pool; None without a limit."""

    closeness_limit: float | None
    """Lowest closeness at which a label is predicted; None: always."""

    outside: bool
    """Whether the answer is None because the text is nearer to what lies outside of all labels."""
    passage: Passage | None = None
    """The window of a long text that speaks most for the winner; None if the text was read at once."""

    def __str__(self) -> str:
        verdict = self.label
        if verdict is None:
            verdict = f"none of these ({self._why()})"
        lines = [shortened(self.text, TOLD), f"  -> {verdict}   margin {self.margin:.3f}"]
        if self.closeness is not None and self.closeness_limit is not None:
            lines.append(f"  {self.closeness:6.2f}  closeness, the limit is {self.closeness_limit:.2f}")
        if self.passage is not None:
            lines.append(
                f"  window {self.passage.number} of {self.passage.of}: {shortened(self.passage.sentence, TOLD)}"
            )
        for entry in self.top:
            cut = "" if entry.cut is None else f"  cut {entry.cut:.3f}"
            lines.append(f"  {entry.score:6.3f}{cut}  p={entry.probability:.3f}  {entry.label}")
            lines.extend(f"            {cosine:.3f}  {text}" for text, cosine in (*entry.nearest, *entry.words))
        return "\n".join(lines)

    def _why(self) -> str:
        if self.too_uncertain:
            return "too uncertain"
        if self.outside:
            return "nearer to what lies outside"
        if self.closeness is not None and self.closeness_limit is not None and self.closeness < self.closeness_limit:
            return "too far from all labels"
        if self.top[0].cut is not None:
            return "below every cut"
        return f"below {self.threshold if self.threshold is not None else self.min_probability:g}"


Quotes = Callable[[str], tuple[tuple[str, float], ...]]
"""From a label's name to what is quoted for it, each with a number."""


def check_asked(text: str | tuple[str, str], top: object, nearest: object, *, pairs: bool = False) -> str:
    """Check the arguments of `explain`, and return the text to show, as a model reads it.

    Raises:
        InputError: `text` is not one text, or not one pair of texts where the model also reads pairs.
        ConfigError: `top` or `nearest` is no count.
    """
    pair = pairs and isinstance(text, tuple) and len(text) == 2
    if not isinstance(text, str) and not pair:
        what = "one pair of texts, a tuple" if pairs else "one text"
        raise InputError(f"explain takes {what}. Got {type(text).__name__} instead; loop over several.")
    check_number("top", top, least=1, whole=True)
    check_number("nearest", nearest, least=0, whole=True)
    return " | ".join(DocumentPolicy(lambda _: "the text").clean([text] if isinstance(text, str) else text))


def explain_answer(
    text: str,
    answers: Answers,
    *,
    space: LabelSpace,
    decision: Decision,
    top: int,
    nearest: Quotes | None = None,
    words: Quotes | None = None,
    passage: Passage | None = None,
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
        passage: the window that speaks most for the winner, if the text was read in windows.
    """
    scores, probabilities, cuts = answers.scores[0], answers.probabilities[0], decision.cuts
    ranks = scores if answers.margins is None else answers.margins[0]
    if answers.chosen is not None:
        top = max(top, int(answers.chosen.sum()))
    # Ties go to the first by name, as in predict.
    order = sorted(range(len(scores)), key=lambda column: (-ranks[column], space.names[column]))
    limits = {} if cuts is None else {name: cuts.as_score(name) for name in space.names}
    entries = [
        LabelScore(
            label=space.names[column],
            score=float(scores[column]),
            probability=float(probabilities[column]),
            nearest=nearest(space.names[column]) if nearest is not None and place < 2 else (),
            words=words(space.names[column]) if words is not None and place < 2 else (),
            cut=limits.get(space.names[column]),
        )
        for place, column in enumerate(order[:top])
    ]
    margin = np.abs(scores - np.array([*limits.values()])).min() if limits else scores[order[0]] - scores[order[1]]
    return Explanation(
        text=text,
        label=answers.names[0],
        margin=float(margin),
        top=tuple(entries),
        threshold=decision.threshold,
        min_probability=decision.min_probability,
        too_uncertain=bool(decision.too_uncertain(answers)[0]),
        closeness=None if answers.closeness is None else float(answers.closeness[0]),
        closeness_limit=None if decision.none is None else decision.none.value,
        outside=answers.outside is not None and bool(answers.outside[0]),
        passage=passage,
    )


def nearest_descriptions(
    vector: Callable[[str], Matrix], space: LabelSpace, vectors: dict[str, LabelVectors], *, most: int
) -> Quotes:
    """Return a function from a label's name to its descriptions nearest to a document.

    Args:
        vector: from a label's name to the vector of the document, or of its window that speaks for the label, [1 dim].
        space: the labels.
        vectors: their encoded texts.
        most: number of descriptions.
    """

    def of(name: str) -> tuple[tuple[str, float], ...]:
        descriptions = space.labels[space.index(name)].descriptions
        if not descriptions:
            return ()
        near = cosines(vector(name), vectors[name].descriptions)[0]
        return tuple((descriptions[row], float(near[row])) for row in np.argsort(-near, kind="stable")[:most])

    return of
