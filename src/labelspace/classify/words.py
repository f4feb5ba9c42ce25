"""`WordsClassifier`: TF-IDF and a linear model, without an encoder."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_seed, check_number
from labelspace.classify.arguments import as_label, one_label_space, warn_of_unread
from labelspace.classify.base import Change, Classifier
from labelspace.classify.by_words import ByWords
from labelspace.classify.editing import LabelChange
from labelspace.classify.explanation import Explanation
from labelspace.classify.opened_words import TENSORS_FILE, explain_by_words, head_of
from labelspace.classify.saved.cards import words_card
from labelspace.classify.saved.state import State
from labelspace.classify.scored_rows import as_weights
from labelspace.corpus import Kind, as_documents, as_targets
from labelspace.errors import InputError
from labelspace.labels import Label, LabelSpace


@final
class WordsClassifier(Classifier):
    """Learns a weight for each word and label, without an encoder.

    It is the fast student of a consensus, and a baseline for labelled texts.

    Args:
        labels: a LabelSpace, a label file, a dictionary like one, or a list of names.
        C: inverse strength of the regularization, above 0.
        min_df: words in fewer texts are ignored.
        min_probability: lowest probability, 0 to 1, at which `predict` returns a label; None: always.
        temperature: divides the logits before the softmax, above 0.
        seed: random seed.

    Attributes:
        head_: the words and their weights.
        label_space_, classes_: the labels.

    Example:
        >>> texts = ["the team won", "a team lost", "the bank closed", "a bank opened"]
        >>> clf = WordsClassifier(["sports", "money"], min_df=1).fit(texts, ["sports", "sports", "money", "money"])
        >>> clf.predict(["my bank"]).tolist(), clf.explain("my bank").top[0].words[0][0]
        (['money'], 'bank')
    """

    tensors_file = TENSORS_FILE
    card_of = staticmethod(words_card)
    not_parameters = ("labels",)

    head_: ByWords

    def __init__(
        self,
        labels: Any,
        *,
        C: float = 3.0,
        min_df: int = 2,
        min_probability: float | None = None,
        temperature: float = 1.0,
        seed: int = 0,
    ) -> None:
        self.labels = labels
        self.C = C
        self.min_df = min_df
        self.min_probability = min_probability
        self.temperature = temperature
        self.seed = seed

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the words of each label.

        Args:
            X: documents.
            y: label names; documents without one (None, NaN, -1 or "") are left out.
            sample_weight: [text], how much each document counts, 0 or more.

        Raises:
            ConfigError: a parameter is invalid.
            InputError: X and y do not fit together, or no document has a label.
        """
        space = one_label_space(self.labels, type(self).__name__)
        warn_of_unread(space, type(self).__name__)
        check_number("C", self.C, above=0)
        check_number("min_df", self.min_df, least=1, whole=True)
        self.decision()
        documents = as_documents(X)
        targets = np.asarray(as_targets(y, space.names, n_documents=len(documents)), dtype=np.intp)
        given = as_weights(sample_weight, len(documents))
        weights = np.ones(len(documents)) if given is None else given
        used = np.flatnonzero((targets >= 0) & (weights > 0))
        if not len(used):
            raise InputError(f"y has no label for any of the {len(targets)} documents; there is nothing to learn from.")
        head = ByWords.learn(
            [documents[row] for row in used],
            targets[used],
            space.names,
            weights=weights[used],
            C=self.C,
            min_df=self.min_df,
            seed=as_seed(self.seed),
        )
        self.head_, self.reads_, self.none_, self.calibrated_ = head, Kind.TEXTS, None, None
        self._set_labels(space, keep_parameter=True)
        return self

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text by its words.

        Args:
            text: one text.
            top: number of labels to show.
            nearest: number of words to quote for the winner and the runner-up.

        Returns:
            Scores, margin and the words that speak most for a label; `print` shows them as text.
        """
        check_is_fitted(self)
        return explain_by_words(self, text, top=top, nearest=nearest)

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Refuse: the words of a new label are not known.

        Raises:
            InputError: always.
        """
        name = as_label(label).name
        raise InputError(
            f"a model of words cannot learn {name!r} from a description; fit again with it, or use a student that is "
            "an encoder."
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        state = super().state()
        facts = {"words": {"labels": list(self.head_.columns)}}
        return replace(state, facts=facts, tensors=self.head_.tensors())

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ModelFolderError: the label file names a label that the model has not learnt.
        """
        return cls._of(head_of(state), state.space, state.fit, **state.parameters)

    def _edit(self, space: LabelSpace, change: Change) -> None:
        self.head_ = self.head_.edited(change)
        super()._edit(space, change)

    fit_result_: Any
