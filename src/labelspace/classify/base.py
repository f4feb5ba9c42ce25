"""What all classifiers share: the scikit-learn face of an encoder, a head and a decision."""

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
from labelspace.classify.explanation import Explanation, explain_answer
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
"""Renames or removes a label among the keys of a dictionary."""


class BiEncoderClassifier(ClassifierMixin, BaseEstimator, ABC):
    """The scikit-learn face of all classifiers: an encoder, a head that scores, a decision that answers.

    A subclass brings `fit`, `add_label` and `decision`. A fitted one holds `encoder_`, `head_` (a `Head`: what turns
    documents into scores), `label_space_`, `label_vectors_` (the labels' encoded texts), `classes_` (their names,
    sorted) and `reads_` (texts or pairs of texts).

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.classify import BiEncoderClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> isinstance(clf, BiEncoderClassifier), clf.classes_.tolist()
        (True, ['politics', 'sports'])
    """

    labels: Any
    encoder: Any

    encoder_: Encoder
    head_: Any
    started_from_: str
    label_space_: LabelSpace
    label_vectors_: dict[str, LabelVectors]
    classes_: NDArray[np.object_]
    reads_: Kind

    trains_encoder: ClassVar[bool] = False
    """Whether `fit` moves the weights of the encoder."""

    takes_pairs: ClassVar[bool] = False
    """Whether `fit` takes pairs of texts; then two columns of texts are pairs."""

    tensors_file: ClassVar[str | None] = None
    """The file of a saved model with the class's own tensors."""

    card_of: ClassVar[Any]
    """A function that returns what the model card says of a `State`."""

    config_class: ClassVar[type[SavedConfig] | None] = None
    """The configuration that the argument `config` holds fields of; None where nothing is trained."""

    not_parameters: ClassVar[tuple[str, ...]] = ("labels", "encoder", "checkpoint", "callbacks")
    """Arguments of the constructor that do not stand among the parameters of a saved model."""

    @abstractmethod
    def decision(self) -> Decision:
        """Return how scores become answers, by the parameters as they are now."""

    def read(self, X: Any) -> Documents:
        """Look at documents as a caller gives them; what was looked at already is returned as it is.

        Raises:
            InputError: one of them is none, or they are pairs where the model was fitted on texts, or the other way.
        """
        check_is_fitted(self)
        documents = as_texts_or_pairs(X, pair_columns=self.takes_pairs)
        if len(documents):
            check_kind(documents.kind, self.reads_)
        return documents

    def answers(self, X: Any) -> Answers:
        """Return all that there is to know of documents, from one run of the encoder.

        Args:
            X: documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset, or `corpus.Documents`.

        Returns:
            Names, scores, probabilities and uncertainty; columns in the order of the label space.
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
            return_scores: True returns every label's score as well, in the order of `classes_`.

        Returns:
            [text] names, or the pair (names, scores [text label]).
        """
        answers = self.answers(X)
        return (answers.names, answers.scores[:, self._class_columns()]) if return_scores else answers.names

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the cosine of each document with each label, [text label], or of two labels the difference, [text].

        As scikit-learn has it: columns follow `classes_`, which is sorted, not the order of the label file, and of two
        labels it is the second's less the first's. `predict(X, return_scores=True)` has both.
        """
        scores = self.answers(X).scores[:, self._class_columns()]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the softmax of the cosines over the temperature, [text label]; its argmax is `predict`'s.

        Columns follow `classes_`.

        These are shares among the labels given: they say which label, not whether any. For "none of these" use
        the threshold, which looks at the cosine itself.
        """
        return self.answers(X).probabilities[:, self._class_columns()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy of the labelled documents, as scikit-learn's classifiers do.

        Args:
            X: documents.
            y: label names; documents without one (None, NaN, -1 or "") are left out.
            sample_weight: of each document.

        Raises:
            InputError: y has another length than X, or names no label at all.
        """
        found = scored_rows(self.predict(X), y, self.classes_, sample_weight)
        return float(accuracy_score(found.truth, found.answers, sample_weight=found.weights))

    def scores(self, texts: Sequence[Any], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space, the fitted one or any other; see `classify.scorer.Scorer`."""
        check_is_fitted(self)
        return self.head_.judge(texts, space).scores

    def explain(self, text: str | tuple[str, str], *, top: int = 3, nearest: int = 2) -> Explanation:
        """Say why a text gets its label.

        Args:
            text: one text; a pair of texts, where the model was fitted on pairs.
            top: how many labels to name.
            nearest: how many descriptions to quote of the winner and of the runner-up, by the encoder's vectors; none
                where the model does not look at descriptions.

        Returns:
            Scores, margin and nearest descriptions; print it, or take it apart.
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
        decision = self.decision()
        answers = self.answers(documents)
        reads = nearest > 0 and self.head_.reads_descriptions
        return explain_answer(
            text if isinstance(text, str) else " | ".join(text),
            answers,
            vector=own_vectors(self.encoder_, documents) if reads else None,
            space=self.label_space_,
            vectors=self.label_vectors_,
            threshold=decision.threshold,
            min_probability=decision.min_probability,
            too_uncertain=bool(decision.too_uncertain(answers)[0]),
            top=top,
            nearest=nearest,
        )

    @abstractmethod
    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.
        """

    def rename_label(self, old: str, new: str) -> LabelChange:
        """Rename a label of a fitted model; its texts, and so all scores, stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.rename(old, new)
        new = space.names[self.label_space_.index(old)]  # without white space around it
        self._edit(space, lambda known: {new if name == old else name: its for name, its in known.items()})
        return LabelChange(retrain=False, reason="a name is only what is shown; its texts stay as they were.")

    def remove_label(self, name: str) -> LabelChange:
        """Remove a label from a fitted model; the other labels' scores stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.remove(name)
        self._edit(space, lambda known: {kept: its for kept, its in known.items() if kept != name})
        return LabelChange(retrain=False, reason="the remaining labels were told apart from each other already.")

    def save(self, folder: str | Path) -> Path:
        """Write the model as a folder that `labelspace.load` and `SentenceTransformer` open.

        The old folder stays until the new one is whole. Scores after `load` are the same to the bit on this machine.

        Raises:
            OutputError: the folder cannot be written; what was there stays.
        """
        state, name = self.state(), type(self).__name__
        return write(state, self.card_of(state), Path(folder), name=name, tensors_file=self.tensors_file)

    def state(self) -> State:
        """Return everything that this fitted model is, as plain values and arrays; `from_state` is the way back."""
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
        """Return the fitted model that a state is of.

        Raises:
            ConfigError: a parameter makes no sense.
            ModelFolderError: the labels are not those that were learnt.
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
        vectors = encode_labels(encoder, space)  # first: Ctrl-C here must not leave half of another fit
        self.encoder_, self.started_from_ = encoder, name_of_start(self.encoder, encoder)
        self.label_vectors_, self.reads_ = vectors, reads
        self._set_labels(space, keep_parameter=True)
        return self

    def _edit(self, space: LabelSpace, change: Change) -> None:
        """Rename or remove a label in everything that is known by label name."""
        self.label_vectors_ = change(self.label_vectors_)
        self._set_labels(space)

    def _encode_new(self, label: Label) -> LabelSpace:
        """Take a label into the space, and encode its texts."""
        space = self.label_space_.add(label)
        encoded = encode_label(self.encoder_, label, space.verbalizers[space.index(label.name)])
        self.label_vectors_ = {**self.label_vectors_, label.name: encoded}
        self._set_labels(space)
        return space

    def _set_labels(self, space: LabelSpace, *, keep_parameter: bool = False) -> None:
        self.label_space_ = space
        self.classes_ = np.array(sorted(space.names), dtype=object)
        if not keep_parameter:
            # An edit is the caller's wish: the next fit shall know of it.
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
