"""The base of all classifiers: a head and a decision behind the scikit-learn interface, mostly on an encoder."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import as_python, check_number
from labelspace.classify.answers import AnswerBlock, Answers, gathered
from labelspace.classify.editing import LabelChange
from labelspace.classify.explanation import Explanation
from labelspace.classify.fitted import Fitted
from labelspace.classify.none_of_these import coverage_of, left_out
from labelspace.classify.saved.saving import write
from labelspace.classify.saved.state import SavedFit, State
from labelspace.classify.scored_rows import scored_rows, scored_sets
from labelspace.classify.settings import hinting, whole_config
from labelspace.config.saved import SavedConfig
from labelspace.corpus import Documents, Kind
from labelspace.errors import ConfigError, InputError
from labelspace.labels import Label, LabelSpace

Change = Callable[[dict[str, Any]], dict[str, Any]]
"""A function that renames or removes a label among the keys of a dictionary."""


class Answering(ClassifierMixin, BaseEstimator, ABC):
    """Base of everything that answers documents: what scikit-learn calls, made from `answers` alone."""

    label_space_: LabelSpace
    classes_: NDArray[np.object_]

    @abstractmethod
    def answers(self, X: Any) -> Answers:
        """Return names, scores, probabilities and uncertainty of documents."""

    @abstractmethod
    def answer_blocks(self, X: Any) -> Iterator[AnswerBlock]:
        """Yield what `answers` returns in blocks, none of which holds the scores of all documents."""

    @overload
    def predict(self, X: Any, *, return_scores: Literal[False] = False) -> NDArray[Any]: ...
    @overload
    def predict(self, X: Any, *, return_scores: Literal[True]) -> tuple[NDArray[Any], NDArray[np.float32]]: ...
    def predict(
        self, X: Any, *, return_scores: bool = False
    ) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.float32]]:
        """Return the name of each document's likeliest label, None below the threshold or `min_probability`.

        Names alone take no memory for the scores of all documents. Where a text may have several labels, return an
        indicator matrix, [text label], 1 for each label that reaches its cut, columns in the order of `classes_`.

        Args:
            X: documents: list, numpy, pandas, polars, Arrow, Hugging Face dataset.
            return_scores: True also returns the score of every label, in the order of `classes_`.

        Returns:
            [text] names or the indicator matrix, or the pair of that and the scores [text label].
        """
        check_is_fitted(self)
        if not return_scores and not self.label_space_.several:
            (names,) = gathered(self.answer_blocks(X), lambda block: (block.names,))
            return names
        answers = self.answers(X)
        found = answers.names if answers.chosen is None else answers.chosen[:, self._class_columns()].astype(int)
        return (found, answers.scores[:, self._class_columns()]) if return_scores else found

    def predict_top(self, X: Any, k: int = 5) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
        """Return the likeliest labels of each document, also of those for which `predict` returns None.

        Scores of a few documents at a time are held, so that it suits thousands of labels.

        Args:
            X: documents.
            k: number of labels, 1 or more; all, if there are fewer.

        Returns:
            Names and probabilities, both [text k], the likeliest first; ties go to the first by name. Probabilities
            are those of `predict_proba`.

        Raises:
            ConfigError: `k` is no whole number from 1 on.

        Example:
            >>> from labelspace import ZeroShotClassifier
            >>> clf = ZeroShotClassifier(["sports", "politics", "money"], encoder="tests/data/tiny-bert").fit()
            >>> names, probabilities = clf.predict_top(["the match"], k=2)
            >>> names.shape, bool(probabilities[0, 0] >= probabilities[0, 1])
            ((1, 2), True)
        """
        check_is_fitted(self)
        check_number("k", k, least=1, whole=True)
        names = np.array(self.label_space_.names, dtype=object)

        def take(block: Answers) -> tuple[NDArray[np.object_], NDArray[np.float64]]:
            columns = block.top(min(k, len(names)))
            return names[columns], np.take_along_axis(block.probabilities, columns, axis=1)

        found, sure = gathered(self.answer_blocks(X), take)
        return found, sure

    def most_uncertain(self, X: Any, top: int | None = None) -> NDArray[np.intp]:
        """Return document indices, the most uncertain first: the documents to label next.

        The first is the one whose likeliest label is the least probable (least confidence; Lewis and Gale, 1994). Where
        a text may have several labels, it is the one that has a label nearest to its cut. Limits, such as one for "none
        of these", have no part in it.

        Args:
            X: documents; of one that is repeated, the first counts.
            top: maximum number of indices; None: all.

        Returns:
            [text] indices, or [top].

        Raises:
            ConfigError: `top` is no whole number from 1 on.

        Example:
            >>> from labelspace import ZeroShotClassifier
            >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
            >>> texts = ["the match", "the vote", "the match"]
            >>> first = clf.most_uncertain(texts, 1)[0]
            >>> bool(clf.predict_proba(texts).max(axis=1).argmin() == first)
            True
        """
        return self._most_uncertain(X, top, lambda answers: answers.least_confidence)

    def _most_uncertain(
        self, X: Any, top: int | None, doubt: Callable[[Answers], NDArray[np.float64]]
    ) -> NDArray[np.intp]:
        check_is_fitted(self)
        if top is not None:
            check_number("top", top, least=1, whole=True)
        rows, doubts = [np.empty(0, dtype=np.intp)], [np.empty(0)]
        for block in self.answer_blocks(X):
            _, first = np.unique(block.which, return_index=True)
            rows.append(block.rows[first])
            doubts.append(doubt(block.answers))
        places, found = np.concatenate(rows), np.concatenate(doubts)
        return places[np.lexsort((places, -found))][:top]

    def decision_function(self, X: Any) -> NDArray[Any]:
        """Return the score of each document for each label, [text label]; for two labels their difference, [text].

        As in scikit-learn, columns follow the sorted `classes_`, not the label file, and with two labels the result is
        the second score minus the first. `predict(X, return_scores=True)` returns both. Where a text may have several
        labels, it is how far each score is above its label's cut, [text label], for two labels too.
        """
        answers = self.answers(X)
        if answers.margins is not None:
            return answers.margins[:, self._class_columns()]
        scores = answers.scores[:, self._class_columns()]
        return scores[:, 1] - scores[:, 0] if scores.shape[1] == 2 else scores

    def predict_proba(self, X: Any) -> NDArray[np.float64]:
        """Return the softmax of scores / temperature, [text label]; its argmax is the label of `predict`.

        Columns follow `classes_`. Probabilities are shares among the given labels: they say which label, not whether
        any fits. For "none of these" call `set_none` with unlabelled documents, or set a threshold on the cosine. Where
        a text may have several labels, each has a probability of its own, 0.5 or more exactly where it is predicted.
        """
        return self.answers(X).probabilities[:, self._class_columns()]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the labelled documents, as in scikit-learn.

        Where a text may have several labels, a document counts as right if all of its labels are.

        Args:
            X: documents.
            y: label names; documents without one (None, NaN, -1 or "") are left out. Where a text may have several
                labels, an indicator matrix, or lists of names; None is left out.
            sample_weight: [text], weight of each document.

        Raises:
            InputError: y and X differ in length, or y names no label.
        """
        check_is_fitted(self)
        if self.label_space_.several:
            return scored_sets(self.predict(X), y, self.classes_, sample_weight)
        from sklearn.metrics import accuracy_score

        found = scored_rows(self.predict(X), y, self.classes_, sample_weight)
        return float(accuracy_score(found.truth, found.answers, sample_weight=found.weights))

    def _class_columns(self) -> NDArray[np.intp]:
        """Columns of the label space in the order of `classes_`."""
        return np.array([self.label_space_.index(name) for name in self.classes_], dtype=np.intp)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.two_d_array = False
        tags.input_tags.one_d_array = True
        tags.input_tags.string = True
        tags.target_tags.required = False
        tags.classifier_tags.multi_label = bool(getattr(self, "several", False))
        return tags


class Classifier(Fitted, Answering):
    """Base of all classifiers, with the attributes of `Fitted` once they are fitted.

    Subclasses define `fit`, `add_label`, `explain` and `decision`, and extend `state`.
    """

    labels: Any

    trains_encoder: ClassVar[bool] = False
    """Whether `fit` trains the encoder's weights."""

    tensors_file: ClassVar[str | None] = None
    """File name of the class's own tensors in a saved model."""

    card_of: ClassVar[Any]
    """A function that returns the model card of a `State`."""

    config_class: ClassVar[type[SavedConfig] | None] = None
    """Configuration class of the argument `config`; None if nothing is trained."""

    not_parameters: ClassVar[tuple[str, ...]] = ("labels", "encoder", "checkpoint", "callbacks", "verbose")
    """Constructor arguments that are not saved as parameters."""

    def __init_subclass__(cls, **named: Any) -> None:
        super().__init_subclass__(**named)
        if "__init__" in vars(cls):
            cls.__init__ = hinting(cls.__init__)

    if TYPE_CHECKING:

        def fit(self, *arguments: Any, **named: Any) -> Self:
            """Fit: which documents and labels it takes, each class says."""
            ...

    def takes_temperature(self) -> bool:
        """Return whether documents may set the temperature: false where labelled rows or logits leave none to set."""
        return "temperature" in self.get_params(deep=False)

    def set_coverage(self, coverage: float, X: Any) -> Self:
        """Make `predict` label this share of documents like these, the closest ones, and return None for the others.

        How close a document is: its score with its likeliest label, standardised over these documents.

        Args:
            coverage: share to label, above 0; 1 takes a limit away.
            X: unlabelled documents, like those to predict.

        Returns:
            The classifier, with `none_` set.

        Raises:
            ConfigError: `coverage` is out of range.
            InputError: there is no document.
        """
        check_is_fitted(self)
        check_number("coverage", coverage, above=0, most=1)
        with self._without_limit():
            limit = coverage_of(coverage, *self._near(X)) if coverage < 1 else None
        self.none_ = limit
        return self

    def set_none(self, X: Any) -> Self:
        """Make `predict` return None for documents that fit none of the labels, as unlabelled documents tell.

        Each document's label is hidden, and about half of the documents are then below the limit.

        Args:
            X: 50 unlabelled documents or more, like those to predict. They may hold documents that fit no label.

        Returns:
            The classifier, with `none_` set; `print(clf.none_)` tells the limit, and the share of X below it.

        Raises:
            InputError: there are fewer than 50 documents.

        Example:
            >>> from labelspace import ZeroShotClassifier
            >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
            >>> pool = [f"the {what} {row}" for what in ("match", "vote") for row in range(30)]
            >>> clf = clf.set_none(pool)
            >>> clf.none_.way, clf.none_.documents
            ('left-out', 60)
        """
        check_is_fitted(self)
        with self._without_limit():
            limit = left_out(*self._near(X))
        self.none_ = limit
        return self

    @contextmanager
    def _without_limit(self) -> Iterator[None]:
        """Take the limit away, so that it has no say in the next one; it is back afterwards."""
        before, self.none_ = self.none_, None
        try:
            yield
        finally:
            self.none_ = before

    def _near(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.intp], LabelSpace, NDArray[np.bool_]]:
        """Return how near documents are to the labels, [text label], which is likeliest, and which get none anyway.

        A repeated document counts once.
        """
        documents = self.read(X)
        if self.label_space_.several:
            raise ConfigError(
                "where a text may have several labels or none, their cuts decide; fit with a pool sets them."
            )
        if not len(documents):
            raise InputError("X holds no document; pass unlabelled documents like those to predict.")
        judged = self.judge(Documents(list(dict.fromkeys(documents)), documents.kind), self.label_space_)
        found = self.decision().answers(self.label_space_.names, *judged)
        near = judged.scores if judged.near is None else judged.near
        return near, found.likeliest, self.label_space_, found.columns < 0

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
        """Save the model as a folder that `labelspace.load` opens, and `SentenceTransformer` if it has one encoder.

        An existing folder stays until the new one is complete. Scores after `load` are bit-identical on this machine.

        Raises:
            OutputError: the folder cannot be written; an existing one stays as it was.
        """
        with self._in_place_of(folder):
            state, name = self.state(), type(self).__name__
            none = {} if self.none_ is None else {"none": self.none_.to_dict()}
            told = self.told() if self.takes_temperature() else None
            temperature = {} if told is None else {"temperature": as_python(told.temperature)}
            by = {} if told is None else {"temperature_by": told.by}
            state = replace(state, facts={**state.facts, **none, **temperature, **by})
            card = self.card_of(replace(state, parameters={**state.parameters, **temperature}))
            return write(state, card, Path(folder), name=name, tensors_file=self.tensors_file)

    def push_to_hub(
        self, name: str, *, private: bool = False, token: str | None = None, message: str = "A model of labelspace"
    ) -> str:
        """Save the model as a repository of the hub, which `labelspace.load` opens by its name.

        What `save` writes is sent as one commit, in place of an older model. The card and `labelspace.json` name the
        encoder and the files that the model was fitted on, as they were given.

        Args:
            name: `owner/name`; it is made if the hub has none.
            private: True makes it private, and refuses one that is public.
            token: a token of the hub that may write; None: the one of `hf auth login`, or `HF_TOKEN`.
            message: the commit's message.

        Returns:
            The hash of the commit, which `load` takes as `revision`.

        Raises:
            ConfigError: the name, the token or the message has the wrong form.
            OutputError: the hub cannot be reached or refuses, or the repository holds something else.

        Example:
            >>> from labelspace import ZeroShotClassifier
            >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
            >>> clf.push_to_hub("sports-or-politics")
            Traceback (most recent call last):
            ...
            labelspace.errors.ConfigError: a model on the hub is named 'owner/name'. Got 'sports-or-politics' instead.
        """
        from labelspace.classify.saved.pushing import push

        with self._in_place_of(name):
            return push(self.save, name, private=private, token=token, message=message)

    def _in_place_of(self, place: str | Path) -> AbstractContextManager[None]:  # noqa: ARG002
        """Return what has to hold while the model is saved at this place."""
        return nullcontext()

    def state(self) -> State:
        """Return the fitted model as plain values and arrays; `from_state` is the inverse."""
        check_is_fitted(self)
        given, fit = self.get_params(deep=False), getattr(self, "fit_result_", None)
        if self.config_class is not None:
            given["config"] = whole_config(self, self.config_class)
        return State(
            space=self.label_space_,
            parameters={key: as_python(value) for key, value in given.items() if key not in self.not_parameters},
            fit=None if fit is None else _lasting(fit.to_dict()),
        )

    @classmethod
    @abstractmethod
    def from_state(cls, state: State) -> Self:
        """Return the fitted model of a state."""

    @classmethod
    def _of(cls, head: Any, space: LabelSpace, fit: dict[str, Any] | None = None, **parameters: Any) -> Self:
        """Return a fitted classifier of texts with this head."""
        model = cls._made(space, fit, parameters)
        model.head_ = head
        return model

    @classmethod
    def _made(cls, space: LabelSpace, fit: dict[str, Any] | None, parameters: dict[str, Any]) -> Self:
        """Return a classifier of texts with these labels and parameters, still without a head."""
        made: Any = cls
        model = made(space, **parameters)
        model.reads_ = Kind.TEXTS
        if fit is not None:
            model.fit_result_ = SavedFit(fit)
        model._set_labels(space)
        return model

    def _edit(self, space: LabelSpace, change: Change) -> None:
        """Rename or remove a label in everything keyed by label name."""
        if self.none_ is not None:
            self.none_ = self.none_.edited(change, space)
        if len(space) != len(self.label_space_):
            self._forget_measured()
        self._set_labels(space)

    def _forget_measured(self) -> None:
        """Forget what was measured with other labels."""
        if self.calibrated_ is not None:
            self.calibrated_ = self.calibrated_._replace(by=None)

    def _set_labels(self, space: LabelSpace, *, keep_parameter: bool = False) -> None:
        self.label_space_ = space
        self.classes_ = np.array(sorted(space.names), dtype=object)
        if not keep_parameter:
            # The caller edited the labels, so the next fit uses the edited ones.
            self.labels = space


def _lasting(fit: Any) -> Any:
    """Leave out of a fit how long its training took, so that the same fit is saved as the same bytes."""
    if not isinstance(fit, Mapping):
        return fit
    kept = {key: _lasting(value) for key, value in fit.items()}
    if isinstance(kept.get("looks"), list | tuple):  # a training curve
        kept.pop("seconds", None)
        kept["looks"] = [
            {key: value for key, value in look.items() if key != "seconds"} if isinstance(look, Mapping) else look
            for look in kept["looks"]
        ]
    return kept
