"""Whether drafts of descriptions help, without a label, and which labels need them most.

One half of the documents decides which drafts stay, one after another: a draft stays if the estimated accuracy of the
untrained encoder rises with it. As many neutral texts, which say nothing about any label, go through the same choice as
a control. The figures come from the other half. No draft stays unless the estimate rises there, and more than with the
neutral texts.
"""

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from labelspace.checks import as_seed, check_choice
from labelspace.classify.anchors import OUTSIDE, LabelVectors, Matrix, anchor_matrix, cosines, less_what_it_is_not
from labelspace.classify.arguments import as_encoder
from labelspace.config import DecisionConfig
from labelspace.consensus.signals import Range, Signals, ranges, signals
from labelspace.consensus.without import lie_outside
from labelspace.encoders import DEFAULT_ENCODER
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate.quality import FEWEST
from labelspace.labels import LabelSpace
from labelspace.labels.drafts import KEEPS, Confused, Draft, with_drafts
from labelspace.notebook import Report
from labelspace.progress import progress_bar
from labelspace.seeds import child_seed
from labelspace.text_table import text_table

DOCUMENTS = 4_000
"""Maximum number of documents looked at."""

LEAST = 2 * FEWEST
"""Fewest documents, for two halves."""

CLOSE = 0.2
"""Share of the documents, those with the smallest margins, that tell which labels are confused."""

SHOWN = 4
"""Documents between two labels that a language model is shown."""

NEUTRAL = (
    "This is a text that somebody wrote and somebody else may read.",
    "The words stand one after another, in the usual order.",
    "It has a beginning, a middle and an end, like other texts.",
    "A few sentences, made of words, letters and punctuation marks.",
    "This entry is one of many entries of the same kind.",
    "The text is of ordinary length and in an ordinary form.",
    "Somebody typed these lines and then saved them.",
    "It can be read from the first word to the last one.",
    "There is a sentence here, and there may be another one after it.",
    "The passage is set in plain letters and takes up some space.",
    "What is written here follows the rules of spelling and grammar.",
    "This is an example of something that was put into words.",
)
"""Texts that say nothing about any label."""


@final
@dataclass(frozen=True)
class Figure:
    """What the estimate says with some descriptions."""

    accuracy: Range
    """Likely accuracy of the untrained encoder."""

    macro_f1: Range
    """Likely macro-F1."""

    added: int = 0
    """Number of texts added to the label file."""


@final
@dataclass(frozen=True, kw_only=True)
class DraftChoice(Report):
    """Which drafts stay, and what the estimate says about them. `print` it, or read its fields."""

    kept: tuple[Draft, ...]
    """Drafts that stay, in order."""

    dropped: tuple[Draft, ...]
    """The others."""

    documents: int
    """Number of documents that the figures come from."""

    before: Figure
    """Without drafts."""

    chosen: Figure
    """With the drafts that were chosen. They stay if the accuracy is higher than before and than the control's."""

    control: Figure
    """With as many neutral texts that went through the same choice."""

    def to_text(self) -> str:
        """Return a report."""
        named = (("label file", self.before), ("with drafts", self.chosen), ("with neutral texts", self.control))
        rows = [["", "texts added", "estimated accuracy", "estimated macro-F1"]]
        rows += [[name, str(one.added), str(one.accuracy), str(one.macro_f1)] for name, one in named]
        lines = [
            text_table(rows, left=(0,), rules=(1,)),
            "",
            f"estimated without a label, for the untrained encoder, on {self.documents:,} documents of the pool",
        ]
        rises = self.chosen.accuracy.expected > self.before.accuracy.expected
        if self.chosen.added and rises and self.chosen.accuracy.expected <= self.control.accuracy.expected:
            lines.append("neutral texts raise the estimate as much, so its rise says nothing about the drafts")
        elif self.chosen.added and not rises:
            lines.append("the estimate does not rise on documents that took no part in the choice of the drafts")
        return "\n".join(lines)


@final
class DraftJudge:
    """Judges drafts of descriptions on documents without labels, which are encoded once.

    Args:
        space: the labels, with the descriptions that are there.
        pool: [text] different documents like those to predict, 100 or more; not the test set. Those that lie outside
            of all labels, as the space's `outside` says, are left out.
        encoder: a name, a folder, an Encoder, or a dictionary of its arguments; it is used untrained.
        seed: seed of the halves and of the model of words.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        ConfigError: a text may have several labels.
        InputError: there are fewer than 100 documents.

    Example:
        >>> space = LabelSpace.from_dict({"labels": {"sports": ["A match."], "money": ["A bank."]}})
        >>> pool = [f"the {who} won {row}" for who in ("team", "bank", "player") for row in range(40)]
        >>> judge = DraftJudge(space, pool, "tests/data/tiny-bert")
        >>> choice = judge.choose([Draft("sports", "A team and its players win.")], keep="all")
        >>> len(choice.kept), choice.control.added
        (1, 1)
    """

    def __init__(
        self,
        space: LabelSpace,
        pool: Sequence[str],
        encoder: Any = DEFAULT_ENCODER,
        *,
        seed: int = 0,
        verbose: bool = False,
    ) -> None:
        if space.several:
            raise ConfigError("drafts are judged for one label a text, and with several: true a text may have several.")
        check_documents(len(pool))
        self.space, self.seed, self.verbose = space, as_seed(seed), verbose
        self._texts = list(pool)
        self._encoder = as_encoder(encoder)
        self._vectors = self._encoder.encode(self._texts)
        self._known: dict[str, Matrix] = {}
        self._verbalizers = {
            label.name: self._encoder.encode([verbalizer], role="label")[0]
            for label, verbalizer in zip(space, space.verbalizers, strict=True)
        }
        self._excludes = {label.name: self._encoder.encode(label.excludes) for label in space if label.excludes}
        self._leave_out_what_lies_outside()
        order = np.random.default_rng(child_seed(self.seed, "halves")).permutation(len(self._texts))
        self._halves = np.sort(order[::2]), np.sort(order[1::2])

    def _leave_out_what_lies_outside(self) -> None:
        if not self.space.outside:
            return
        texts = self._encoder.encode(self.space.outside)
        beyond = {OUTSIDE: LabelVectors(texts[0], texts)}
        rows = np.flatnonzero(~lie_outside(self._scores((), self._vectors), self._vectors, beyond))
        self._texts, self._vectors = [self._texts[row] for row in rows.tolist()], self._vectors[rows]
        check_documents(len(rows))

    def confused(self, most: int) -> list[Confused]:
        """Return the labels between which most documents lie, the most confused first.

        A document lies between its two nearest labels. Those fifth of the documents count whose two cosines differ
        least.

        Args:
            most: maximum number of pairs.
        """
        scores = self._scores((), self._vectors)
        order = np.argsort(-scores, axis=1, kind="stable")[:, :2]
        margins = np.take_along_axis(scores, order, axis=1)
        rows = np.argsort(margins[:, 0] - margins[:, 1], kind="stable")[: max(1, round(CLOSE * len(scores)))]
        between: dict[tuple[int, ...], list[int]] = defaultdict(list)
        for row in rows.tolist():
            between[tuple(sorted(order[row].tolist()))].append(row)
        names = self.space.names
        return [
            Confused((names[one], names[other]), count, tuple(self._texts[row] for row in between[one, other][:SHOWN]))
            for (one, other), count in Counter({pair: len(lie) for pair, lie in between.items()}).most_common(most)
        ]

    def choose(self, drafts: Sequence[Draft], *, keep: str = "better") -> DraftChoice:
        """Return which drafts stay.

        Args:
            drafts: drafts for labels of the space.
            keep: `"better"`: those with which the estimate rises; `"all"`: all, and the figures tell what that does.

        Raises:
            LabelFileError: a draft is for a label that the space lacks.
        """
        check_choice("keep", keep, KEEPS)
        for draft in drafts:
            self.space.index(draft.label)
        # Encoded together, because each batch costs.
        known = [text for texts in with_drafts(self.space, drafts).descriptions for text in texts]
        new = [text for text in dict.fromkeys((*known, *NEUTRAL)) if text not in self._known]
        self._known.update(zip(new, self._encoder.encode(new), strict=True))
        neutral = self._neutral(drafts)
        chosen, control = list(drafts), list(neutral)
        if keep == "better":
            with progress_bar("choosing drafts", verbose=self.verbose) as report:
                chosen = self._better(drafts, lambda done: report(done, 2 * len(drafts)))
                control = self._better(neutral, lambda done: report(len(drafts) + done, 2 * len(drafts)))
        before, after, beside = (self._figure(added, half=1) for added in ((), chosen, control))
        rises = after.accuracy.expected > max(before.accuracy.expected, beside.accuracy.expected)
        kept = tuple(chosen) if keep == "all" or rises else ()
        return DraftChoice(
            kept=kept,
            dropped=tuple(draft for draft in drafts if draft not in kept),
            documents=len(self._halves[1]),
            before=before,
            chosen=after,
            control=beside,
        )

    def _neutral(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Return neutral texts in place of drafts; those of a label differ."""
        taken: Counter[str] = Counter()
        found = []
        for draft in drafts:
            start = child_seed(self.seed, "neutral", draft.label) + taken[draft.label]
            found.append(Draft(draft.label, NEUTRAL[start % len(NEUTRAL)]))
            taken[draft.label] += 1
        return found

    def _better(self, drafts: Sequence[Draft], report: Any) -> list[Draft]:
        """Return the drafts that raise the estimate on the first half, each beside those that stayed before it."""
        kept: list[Draft] = []
        best = self._figure(kept, half=0).accuracy.expected
        for done, draft in enumerate(drafts, 1):
            value = self._figure([*kept, draft], half=0).accuracy.expected
            if value > best:
                kept, best = [*kept, draft], value
            report(done)
        return kept

    def _figure(self, drafts: Sequence[Draft], *, half: int) -> Figure:
        rows = self._halves[half]
        vectors = self._vectors[rows]
        answers = self._scores(drafts, vectors).argmax(axis=1)
        found = Signals(0.0, 0.0, answers, None)  # one label for all documents: nothing agrees beyond chance
        if len(np.unique(answers)) > 1:
            texts = [self._texts[row] for row in rows.tolist()]
            found = signals(answers, texts, self.space, vectors, seed=self.seed)
        return Figure(*ranges(found, len(self.space), len(rows), consensus=False), len(drafts))

    def _scores(self, drafts: Sequence[Draft], documents: Matrix) -> Matrix:
        """Return the cosines of documents with the labels and drafts, less what a label is not, [text label]."""
        space = with_drafts(self.space, drafts)
        texts = [text for each in space.descriptions for text in each]
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        none = np.empty((0, self._vectors.shape[1]), dtype=np.float32)
        vectors = {
            label.name: LabelVectors(
                self._verbalizers[label.name],
                np.stack([self._known[text] for text in label.descriptions]) if label.descriptions else none,
                self._excludes.get(label.name),
            )
            for label in space
        }
        scores = cosines(documents, anchor_matrix(vectors, space, DecisionConfig.anchor))
        return less_what_it_is_not(scores, documents, list(vectors.values()))


def check_documents(count: int) -> None:
    """Refuse a pool that is too small for two halves.

    Raises:
        InputError: it has fewer than 100 documents.
    """
    if count < LEAST:
        raise InputError(
            f"to judge drafts, a pool needs {LEAST} different documents or more. Got {count}; give more, or keep "
            "all drafts."
        )
