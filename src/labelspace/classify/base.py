"""The base of all classifiers: a head and a decision behind the scikit-learn interface, mostly on an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_number, plain
from labelspace.classify.anchors import LabelVectors, encode_label, encode_labels
from labelspace.classify.answers import Answers
from labelspace.classify.arguments import name_of_start
from labelspace.classify.decision import Decision
from labelspace.classify.editing import LabelChange
from labelspace.classify.encoding import own_vectors
from labelspace.classify.explanation import Explanation, explain_answer, nearest_descriptions
from labelspace.classify.saving import write
from labelspace.classify.scored_rows import scored_rows
from labelspace.classify.settings import whole_config
from labelspace.classify.state import SavedFit, State
from labelspace.config.saved import SavedConfig
from labelspace.corpus import Documents, Kind, as_texts_or_pairs
from labelspace.corpus.documents import check_kind
from labelspace.encoders import Encoder
from labelspace.errors import InputError
from labelspace.labels import Label, LabelSpace

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that renames or removes a label among the keys of a dictionary."""


class Classifier(ClassifierMixin, BaseEstimator, ABC):
    """Base of all classifiers: a head that scores and a decision that answers.

    Subclasses define `fit`, `add_label`, `explain`, `decision` and `state`. Fitted attributes are `head_` (turns
    documents into scores), `label_space_`, `classes_` (sorted label names) and `reads_` (texts or pairs of texts).
    """

    labels: Any

    head_: Any
    label_space_: LabelSpace
    classes_: NDArray[np.object_]
    reads_: Kind

    trains_encoder: ClassVar[bool] = False
    """Whether `fit` trains the encoder's weights."""

    takes_pairs: ClassVar[bool] = False
    """Whether `fit` takes pairs of texts, in which case two text columns are read as pairs."""

    tensors_file: ClassVar[str | None] = None
    """File name of the class's own tensors in a saved model."""

    card_of: ClassVar[Any]
    """A function that returns the model card of a `State`."""

    config_class: ClassVar[type[SavedConfig] | None] = None
    """Configuration class of the argument `config`; None if nothing is trained."""

    not_parameters: ClassVar[tuple[str, ...]] = ("labels", "encoder", "checkpoint", "callbacks")
    """Constructor arguments that are not saved as parameters."""

    @abstractmethod
    def decision(self) -> Decision:
        """Return the decision rule, from the current parameters."""

    def read(self, X: Any) -> Documents:
        """Check and convert documents; `Documents` are returned as they are.

        Raises:
            InputError: an entry is not a document, or the model was fitted on texts and these are pairs, or vice versa.
        """
        check_is_fitted(self)
        documents = as_texts_or_pairs(X, pair_columns=self.takes_pairs)
        if len(documents):
            check_kind(documents.kind, self.reads_)
        return documents

    def answers(self, X: Any) -> Answers:
        """Return names, scores, probabilities and uncertainty, from one run of the encoder.

        Args:
            X: documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset, or `corpus.Documents`.

        Returns:
            The answers, with columns in the order of the label space.
        """
        documents = self.read(X)
        decision = self.decision()
        return decision.answers(self.label_space_.names, *self.head_.judge(documents, self.label_space_))

    def predict(
        self, X: Any, *, return_scores: bool = False
    ) -> NDArray[np.object_] | tuple[NDArray[np.object_], NDArray[np.float32]]:
        """Return the name of each document's likeliest label, None below the threshold or `min_probability`.

        Args:
            X: documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset.
            return_scores: True also returns the score of every label, in the order of `classes_`.

        Returns:
            [text] names, or the pair (names, scores [text label]).
        """
        answers = self.answers(X)
        return (answers.names, answers.scores[:, self._class_columns()]) if return_scores else answers.names

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the score of each document for each label, [text label]; for two labels their difference, [text].

        As in scikit-learn, columns follow the sorted `classes_`, not the label file, and with two labels the result is
        the second score minus the first. `predict(X, return_scores=True)` returns both.
        """
        scores = self.answers(X).scores[:, self._class_columns()]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the softmax of scores / temperature, [text label]; its argmax is the label of `predict`.

        Columns follow `classes_`. Probabilities are shares among the given labels: they say which label, not whether
        any fits. For "none of these" set the threshold, which applies to the cosine itself.
        """
        return self.answers(X).probabilities[:, self._class_columns()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled documents, as in scikit-learn.

        Args:
            X: documents.
            y: label names; documents without one (None, NaN, -1 or "") are left out.
            sample_weight: [text], weight of each document.

        Raises:
            InputError: y and X differ in length, or y names no label.
        """
        found = scored_rows(self.predict(X), y, self.classes_, sample_weight)
        return float(accuracy_score(found.truth, found.answers, sample_weight=found.weights))

    def scores(self, texts: Sequence[Any], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space, the fitted one or any other; see `classify.scorer.Scorer`."""
        check_is_fitted(self)
        return self.head_.judge(texts, space).scores

    @abstractmethod
    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text."""

    @abstractmethod
    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.
        """

    def rename_label(self, old: str, new: str) -> LabelChange:
        """Rename a label of a fitted model; its texts and all scores stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.rename(old, new)
        new = space.names[self.label_space_.index(old)]  # with white space stripped
        self._edit(space, lambda known: {new if name == old else name: its for name, its in known.items()})
        return LabelChange(retrain=False, reason="a name is only what is shown; its texts stay as they were.")

    def remove_label(self, name: str) -> LabelChange:
        """Remove a label from a fitted model; the other labels' scores stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.remove(name)
        self._edit(space, lambda known: {kept: its for kept, its in known.items() if kept != name})
        return LabelChange(retrain=False, reason="the remaining labels were told apart from each other already.")

    def save(self, folder: str | Path) -> Path:
        """Save the model as a folder that `labelspace.load` and `SentenceTransformer` open.

        An existing folder stays until the new one is complete. Scores after `load` are bit-identical on this machine.

        Raises:
            OutputError: the folder cannot be written; an existing one stays as it was.
        """
        state, name = self.state(), type(self).__name__
        return write(state, self.card_of(state), Path(folder), name=name, tensors_file=self.tensors_file)

    @abstractmethod
    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state."""

    @classmethod
    def _of(cls, head: Any, space: LabelSpace, fit: dict[str, Any] | None = None, **parameters: Any) -> Self:
        """Return a fitted classifier of texts with this head."""
        made: Any = cls
        model = made(space, **parameters)
        model.head_, model.reads_ = head, Kind.TEXTS
        if fit is not None:
            model.fit_result_ = SavedFit(fit)
        model._set_labels(space)
        return model

    def _edit(self, space: LabelSpace, change: Change) -> None:  # noqa: ARG002
        """Rename or remove a label in everything keyed by label name."""
        self._set_labels(space)

    def _set_labels(self, space: LabelSpace, *, keep_parameter: bool = False) -> None:
        self.label_space_ = space
        self.classes_ = np.array(sorted(space.names), dtype=object)
        if not keep_parameter:
            # The caller edited the labels, so the next fit uses the edited ones.
            self.labels = space

    def _class_columns(self) -> NDArray[np.intp]:
        """Columns of the label space in the order of `classes_`."""
        return np.array([self.label_space_.index(name) for name in self.classes_], dtype=np.intp)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags


class BiEncoderClassifier(Classifier):
    """Base of the classifiers on an encoder.

    Fitted attributes are also `encoder_` and `label_vectors_` (encoded label texts).

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.classify import BiEncoderClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> isinstance(clf, BiEncoderClassifier), clf.classes_.tolist()
        (True, ['politics', 'sports'])
    """

    encoder: Any

    encoder_: Encoder
    started_from_: str
    label_vectors_: dict[str, LabelVectors]

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Explain the label of one text.

        Args:
            text: one text, or a pair of texts if the model was fitted on pairs.
            top: number of labels to show.
            nearest: number of descriptions to quote for the winner and the runner-up, nearest by the encoder's vectors;
                none if the model does not read descriptions.

        Returns:
            Scores, margin and nearest descriptions; `print` shows them as text.
        """
        check_is_fitted(self)
        pair = isinstance(text, tuple) and len(text) == 2
        pairs = self.reads_ is Kind.PAIRS
        if not isinstance(text, str) and not (pair and pairs):
            what = "one pair of texts, a tuple" if pairs else "one text"
            raise InputError(f"explain takes {what}. Got {type(text).__name__} instead; loop over several.")
        check_number("top", top, least=1, whole=True)
        check_number("nearest", nearest, least=0, whole=True)
        documents = self.read([text])
        reads = nearest > 0 and self.head_.reads_descriptions
        return explain_answer(
            text if isinstance(text, str) else " | ".join(text),
            self.answers(documents),
            space=self.label_space_,
            decision=self.decision(),
            top=top,
            nearest=nearest_descriptions(
                own_vectors(self.encoder_, documents), self.label_space_, self.label_vectors_, most=nearest
            )
            if reads
            else None,
        )

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        check_is_fitted(self)
        given, fit = self.get_params(deep=False), getattr(self, "fit_result_", None)
        if self.config_class is not None:
            given["config"] = whole_config(self, self.config_class)
        return State(
            encoder=self.encoder_,
            started_from=self.started_from_,
            space=self.label_space_,
            label_vectors=self.label_vectors_,
            parameters={key: plain(value) for key, value in given.items() if key not in self.not_parameters},
            fit=None if fit is None else fit.to_dict(),
        )

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state.

        Raises:
            ConfigError: a parameter is invalid.
            ModelFolderError: the labels are not the learnt ones.
        """
        made: Any = cls
        model = made(state.space, **state.parameters)
        model.encoder_, model.started_from_ = state.encoder, state.started_from
        model.label_vectors_, model.reads_ = state.label_vectors, Kind.TEXTS
        if state.fit is not None:
            model.fit_result_ = SavedFit(state.fit)
        model._set_labels(state.space)
        return model

    def _finish(self, encoder: Encoder, space: LabelSpace, reads: Kind = Kind.TEXTS) -> Self:
        vectors = encode_labels(encoder, space)  # first, so that Ctrl-C here leaves no mixture of two fits
        self.encoder_, self.started_from_ = encoder, name_of_start(self.encoder, encoder)
        self.label_vectors_, self.reads_ = vectors, reads
        self._set_labels(space, keep_parameter=True)
        return self

    def _edit(self, space: LabelSpace, change: Change) -> None:
        self.label_vectors_ = change(self.label_vectors_)
        super()._edit(space, change)

    def _encode_new(self, label: Label) -> LabelSpace:
        """Add a label to the space and encode its texts."""
        space = self.label_space_.add(label)
        encoded = encode_label(self.encoder_, label, space.verbalizers[space.index(label.name)])
        self.label_vectors_ = {**self.label_vectors_, label.name: encoded}
        self._set_labels(space)
        return space
