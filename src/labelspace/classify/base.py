"""What every bi-encoder classifier does once it has an encoder and a label space."""

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice, check_keys, check_number
from labelspace.classify.anchors import LabelVectors, anchor_matrix, cosines, encode_label, encode_labels
from labelspace.classify.editing import LabelChange, advice_after_adding
from labelspace.classify.explanation import Explanation, explain_scores
from labelspace.classify.scored_rows import scored_rows
from labelspace.config import ANCHORS
from labelspace.corpus import as_documents, as_targets
from labelspace.encoders import Encoder
from labelspace.encoders.encoder import WINDOW
from labelspace.errors import ConfigError, InputError
from labelspace.labels import Label, LabelSpace

# Of the encoder that `fit` began with, where it had been trained before: a second one after `load` then fails, and does
# not begin elsewhere.
TRAINED = ", trained"


class Answers(NamedTuple):
    """What a classifier finds out about some documents in one go."""

    scores: NDArray[np.float32]
    """[text label], in the order of the label space."""

    uncertainty: NDArray[np.float32] | None
    """[text]; None where the classifier measures none."""


class BiEncoderClassifier(ClassifierMixin, BaseEstimator):
    """What all classifiers share: they predict by cosine between a document and one anchor per label.

    A subclass brings `fit`. A fitted one holds `encoder_`, `label_space_`, `label_vectors_` and `classes_` (the names,
    sorted).

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.classify import BiEncoderClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> isinstance(clf, BiEncoderClassifier), clf.classes_.tolist()
        (True, ['politics', 'sports'])
    """

    labels: Any
    encoder: Any
    anchor: str
    temperature: float
    threshold: float | None

    encoder_: Encoder
    started_from_: str
    label_space_: LabelSpace
    label_vectors_: dict[str, LabelVectors]
    classes_: NDArray[np.object_]

    measures_uncertainty = False
    pairs_ = False
    """True: the documents are pairs of texts."""
    _least_threshold = -1
    """Of a cosine; 0 where the threshold is a probability."""

    def predict(
        self, X: Any, *, return_scores: bool = False
    ) -> NDArray[np.object_] | tuple[NDArray[np.object_], NDArray[np.float32]]:
        """Return the name of each document's likeliest label, None below the threshold.

        Args:
            X: documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset.
            return_scores: True returns every label's score as well, in the order of `classes_`.

        Returns:
            [text] names, or the pair (names, scores [text label]).
        """
        answers = self._answers(self._documents(X))
        names = self._names(*answers)
        return (names, answers.scores[:, self._class_columns()]) if return_scores else names

    def learnt_tensors(self) -> dict[str, NDArray[np.generic]]:
        """Return what was learnt beside the encoder's weights, by name; nothing for a classifier by anchors."""
        return {}

    def decision_function(self, X: Any) -> NDArray[np.float32]:
        """Return the cosine of each document with each label, [text label], or of two labels the difference, [text].

        As scikit-learn has it: columns follow `classes_`, which is sorted, not the order of the label file, and of two
        labels it is the second's less the first's. `predict(X, return_scores=True)` has both.
        """
        scores = self._scores_of(X)[:, self._class_columns()]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the softmax of the cosines over the temperature, [text label]; its argmax is `predict`'s.

        Columns follow `classes_`.

        These are shares among the labels given: they say which label, not whether any. For "none of these" use
        the threshold, which looks at the cosine itself.
        """
        return self._probabilities(self._scores_of(X))[:, self._class_columns()]

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

    def scores(self, texts: Sequence[str], space: LabelSpace) -> NDArray[np.float32]:
        """Score texts against a label space, the fitted one or any other; see `classify.scorer.Scorer`."""
        check_is_fitted(self)
        check_choice("anchor", self.anchor, ANCHORS)
        known = space == self.label_space_
        vectors = self.label_vectors_ if known else encode_labels(self.encoder_, space)
        anchors = anchor_matrix(vectors, space, self.anchor)
        found = np.empty((len(texts), len(anchors)), dtype=np.float32)
        for rows, window, each in in_windows(texts):
            found[rows] = cosines(self.encoder_.encode(window), anchors)[each]
        return found

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
        if not isinstance(text, str) and not (pair and self.pairs_):
            what = "one pair of texts, a tuple" if self.pairs_ else "one text"
            raise InputError(f"explain takes {what}. Got {type(text).__name__} instead; loop over several.")
        check_number("top", top, least=1, whole=True)
        check_number("nearest", nearest, least=0, whole=True)
        documents = self._documents([text])
        answers = self._answers(documents)
        scores = answers.scores
        return explain_scores(
            text if isinstance(text, str) else " | ".join(text),
            self._encoded(documents)[0],
            scores=scores[0],
            probabilities=self._probabilities(scores)[0],
            answer=self._names(*answers)[0],
            space=self.label_space_,
            vectors=self.label_vectors_,
            threshold=self.threshold,
            too_uncertain=bool(self._too_uncertain(answers)[0]),
            top=top,
            nearest=nearest if self._looks_at_descriptions() else 0,
        )

    def add_label(self, label: Label | Mapping[str, Any]) -> LabelChange:
        """Add a label to a fitted model without training; the other labels' scores stay as they are.

        Args:
            label: a Label, or a mapping with the keys of a label file.

        Returns:
            Whether retraining is advised, and why.
        """
        check_is_fitted(self)
        if isinstance(label, Mapping):
            label = _label_from(label)
        space = self.label_space_.add(label)
        self.label_vectors_ = {
            **self.label_vectors_,
            label.name: encode_label(self.encoder_, label, space.verbalizers[space.index(label.name)]),
        }
        self._set_labels(space)
        return advice_after_adding(label.name, space, self.label_vectors_, self.anchor)

    def rename_label(self, old: str, new: str) -> LabelChange:
        """Rename a label of a fitted model; its texts, and so all scores, stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.rename(old, new)
        new = space.names[self.label_space_.index(old)]  # without white space around it
        self.label_vectors_ = {new if name == old else name: kept for name, kept in self.label_vectors_.items()}
        self._set_labels(space)
        return LabelChange(retrain=False, reason="a name is only what is shown; its texts stay as they were.")

    def remove_label(self, name: str) -> LabelChange:
        """Remove a label from a fitted model; the other labels' scores stay as they are."""
        check_is_fitted(self)
        space = self.label_space_.remove(name)
        self.label_vectors_ = {kept: vectors for kept, vectors in self.label_vectors_.items() if kept != name}
        self._set_labels(space)
        return LabelChange(retrain=False, reason="the remaining labels were told apart from each other already.")

    def save(self, folder: str | Path) -> Path:
        """Write the model as a folder that `labelspace.load` and `SentenceTransformer` open.

        The old folder stays until the new one is whole. Scores after `load` are the same to the bit on this machine.

        Raises:
            OutputError: the folder cannot be written; what was there stays.
        """
        from labelspace.classify.saving import save

        check_is_fitted(self)
        return save(self, Path(folder))

    def _scores_of(self, X: Any) -> NDArray[np.float32]:
        """Scores of documents as a caller gives them, [text label] in the order of the label space."""
        return self._answers(self._documents(X)).scores

    def _documents(self, X: Any) -> Sequence[str]:
        """Documents as a caller gives them, checked."""
        check_is_fitted(self)
        return as_documents(X)

    def _check_kind(self, *, pairs: bool) -> None:
        """Refuse pairs where texts are wanted, and texts where pairs are."""
        if pairs != self.pairs_:
            fitted, came = ("pairs of texts", "texts") if self.pairs_ else ("texts", "pairs of texts")
            raise InputError(f"the model was fitted on {fitted}. Got {came} instead; pass what it was fitted on.")

    def _answers(self, texts: Sequence[str]) -> Answers:
        """All that there is to know of checked documents, from one run of the encoder."""
        self._check_threshold()
        check_number("temperature", self.temperature, above=0)
        return Answers(self.scores(texts, self.label_space_), None)

    def _encoded(self, documents: Sequence[Any]) -> NDArray[np.float32]:
        """The encoder's own vectors of checked documents, [text dim]."""
        return self.encoder_.encode(documents)

    def _looks_at_descriptions(self) -> bool:
        """Whether what a label's descriptions say is a reason for the answer."""
        return True

    def _too_uncertain(self, answers: Answers) -> NDArray[np.bool_]:
        """For which documents the answer is None because of their uncertainty, [text]."""
        return np.zeros(len(answers.scores), dtype=bool)

    def _finish(self, encoder: Encoder, space: LabelSpace) -> Self:
        given = self.encoder
        vectors = encode_labels(encoder, space)  # first: Ctrl-C here must not leave half of another fit
        self.encoder_, self.started_from_ = encoder, encoder.name
        if isinstance(given, Encoder) and given.backbone.trained and not given.name.endswith(TRAINED):
            self.started_from_ = given.name + TRAINED
        self.label_vectors_ = vectors
        self._set_labels(space, keep_parameter=True)
        return self

    def _set_labels(self, space: LabelSpace, *, keep_parameter: bool = False) -> None:
        self.label_space_ = space
        self.classes_ = np.array(sorted(space.names), dtype=object)
        if not keep_parameter:
            # An edit is the caller's wish: the next fit shall know of it.
            self.labels = space

    def _class_columns(self) -> NDArray[np.intp]:
        """Columns of the label space in the order of `classes_`."""
        return np.array([self.label_space_.index(name) for name in self.classes_], dtype=np.intp)

    def _winners(self, scores: NDArray[np.float32]) -> NDArray[np.intp]:
        # Among equals the first of `classes_` wins, so that the order of the label file decides nothing.
        columns = self._class_columns()
        return columns[scores[:, columns].argmax(axis=1)] if len(scores) else np.empty(0, dtype=np.intp)

    def _names(
        self,
        scores: NDArray[np.float32],
        uncertainty: NDArray[np.float32] | None = None,  # noqa: ARG002  for the classifier that measures it
    ) -> NDArray[np.object_]:
        # An object array, because None is an answer too.
        names = np.array(self.label_space_.names, dtype=object)[self._winners(scores)]
        if self.threshold is not None and len(scores):
            names[scores.max(axis=1) < float(self.threshold)] = None  # as after loading: in float32
        return names

    def _probabilities(self, scores: NDArray[np.float32]) -> NDArray[np.float64]:
        # float64 keeps cosines that differ in the last bit apart, so that argmax agrees with predict.
        logits = scores.astype(np.float64) / self.temperature
        powers = np.exp(logits - logits.max(axis=1, keepdims=True))
        # Summed in the order of the names: an order of columns must not show, not even in the last bit.
        return powers / powers[:, self._class_columns()].sum(axis=1, keepdims=True)

    def _check_parameters(self) -> LabelSpace:
        check_choice("anchor", self.anchor, ANCHORS)
        check_number("temperature", self.temperature, above=0)
        self._check_threshold()
        return as_label_space(self.labels)

    def _check_threshold(self) -> None:
        """Refuse one that nothing, or all, would be below; it may have been set after `fit`."""
        if self.threshold is not None:
            check_number("threshold", self.threshold, least=self._least_threshold, most=1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        return tags


def in_windows(documents: Sequence[Any]) -> Iterator[tuple[NDArray[np.intp], list[Any], NDArray[np.intp]]]:
    """Yield the different documents, as many at a time as the encoder sorts together.

    Tokens, vectors and means of all of them would take many times the memory of the scores. A document that comes
    again is not encoded again: at another place of a batch its last bits would differ, and with them a tie would go
    one way on one processor and another way on the next.

    Args:
        documents: texts, or pairs of texts.

    Yields:
        Rows of the documents that these stand for; the different documents; for each row which of them it is.
    """
    first: dict[Any, int] = {}
    place = np.fromiter((first.setdefault(document, len(first)) for document in documents), np.intp, len(documents))
    different = list(first)
    rows = np.argsort(place, kind="stable")
    ends = np.searchsorted(place[rows], np.arange(WINDOW, len(different) + WINDOW, WINDOW))
    start = 0
    for number, end in enumerate(ends):
        at = number * WINDOW
        yield rows[start:end], different[at : at + WINDOW], place[rows[start:end]] - at
        start = end


def check_targets(X: Any, y: Any, space: LabelSpace) -> None:
    """Raise InputError unless `y`, from which nothing is learnt, fits the documents and the labels all the same."""
    if X is None or y is None:
        return
    if isinstance(X, (str, Path)) or not hasattr(X, "__len__"):
        raise InputError(
            f"y goes with documents in memory. Got X of type {type(X).__name__}; leave y out, it teaches nothing here."
        )
    as_targets(y, space.names, n_documents=len(X))


def as_label_space(labels: Any) -> LabelSpace:
    """Return a LabelSpace, made from a dictionary, a list of names or a label file where it is none yet.

    Raises:
        LabelFileError: the content cannot be a label space.
        ConfigError: the value is nothing of the kind.
    """
    if isinstance(labels, LabelSpace):
        return labels
    if isinstance(labels, (str, Path)):
        return LabelSpace.from_file(labels)
    if isinstance(labels, Mapping):
        return LabelSpace.from_dict(dict(labels))
    if isinstance(labels, Iterable):
        entries = list(labels)
        if all(isinstance(entry, Label) for entry in entries):
            return LabelSpace(entries)
        if all(isinstance(entry, str) for entry in entries):
            return LabelSpace.from_names(entries)
    raise ConfigError(
        "labels must be a LabelSpace, a label file, a dictionary like one, or a list of names. "
        f"Got {type(labels).__name__} instead."
    )


def as_encoder(encoder: Any) -> Encoder:
    """Return an Encoder, opened by name, folder or a dictionary of its arguments where it is none yet."""
    if isinstance(encoder, Encoder):
        return encoder
    name = encoder.get("name") if isinstance(encoder, Mapping) else encoder
    if isinstance(name, str) and name.endswith(TRAINED):
        raise ConfigError(
            f"the model was fitted from an Encoder that had been trained before ({name!r}), and no name leads to that; "
            "set encoder to the folder of one, for example of this model."
        )
    if isinstance(encoder, (str, Path)):
        return Encoder(encoder)
    if isinstance(encoder, Mapping):
        check_keys("Encoder", encoder, list(inspect.signature(Encoder).parameters))
        return Encoder(**encoder)
    raise ConfigError(
        "encoder must be a name, a folder, an Encoder or a dictionary of its arguments. "
        f"Got {type(encoder).__name__} instead."
    )


def _label_from(values: Mapping[str, Any]) -> Label:
    # Through a file-like dictionary, so that typos and empty texts get the same errors as in a label file.
    space = LabelSpace.from_dict({"labels": [dict(values), {"name": f"not {values.get('name')}"}]})
    return space.labels[0]
