"""A saved model of words that only answers. It needs no scikit-learn, whose import takes longer than 50,000 answers."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np

from labelspace.classify.by_words import ByWords
from labelspace.classify.explanation import Explanation, check_asked, explain_answer
from labelspace.classify.fitted import Fitted
from labelspace.classify.head import check_learnt
from labelspace.classify.none_of_these import NoneLimit
from labelspace.classify.saved.state import State
from labelspace.corpus import Kind
from labelspace.labels import LabelSpace

TENSORS_FILE = "words.safetensors"


@final
@dataclass(eq=False)
class OpenedWords(Fitted):
    """A `WordsClassifier` as the command line opens it: `answers` and `explain` are the same, `fit` is missing."""

    head_: ByWords
    label_space_: LabelSpace
    temperature: float
    min_probability: float | None
    none_: NoneLimit | None = None

    reads_ = Kind.TEXTS
    tensors_file = TENSORS_FILE
    trains_encoder = False

    def __post_init__(self) -> None:
        self.classes_ = np.array(sorted(self.label_space_.names), dtype=object)

    @property
    def class_name(self) -> str:
        """Name of the class that made the model."""
        return "WordsClassifier"

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the model of a state; see `WordsClassifier.from_state`."""
        parameters = state.parameters
        return cls(head_of(state), state.space, parameters["temperature"], parameters["min_probability"])

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text by its words; see `WordsClassifier.explain`."""
        return explain_by_words(self, text, top=top, nearest=nearest)


def head_of(state: State) -> ByWords:
    """Return the head of a saved model of words.

    Raises:
        ModelFolderError: the label file names a label that the model has not learnt.
    """
    head = ByWords.from_tensors(state.tensors, tuple(state.facts["words"]["labels"]))
    check_learnt(head.columns, state.space, state.place)
    return head


def explain_by_words(model: Any, text: str | tuple[str, str], *, top: int, nearest: int) -> Explanation:
    """Explain the label of one text by its words.

    Args:
        model: a fitted `WordsClassifier`, or an `OpenedWords`.
        text: one text.
        top: number of labels to show.
        nearest: number of words to quote for the winner and the runner-up.
    """
    shown = check_asked(text, top, nearest)
    return explain_answer(
        shown,
        model.answers([shown]),
        space=model.label_space_,
        decision=model.decision(),
        top=top,
        words=lambda name: model.head_.spoken(shown, name, most=nearest),
    )
