"""What every fitted classifier does with documents, without scikit-learn, whose import takes most of a second."""

import os
from abc import ABC
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_number
from labelspace.classify.answers import AnswerBlock, Answers
from labelspace.classify.decision import Decision
from labelspace.classify.distinct import at_once, in_windows
from labelspace.classify.head import Judged, Matrix
from labelspace.classify.none_of_these import NoneLimit
from labelspace.corpus import Documents, Kind, as_texts_or_pairs
from labelspace.corpus.documents import check_kind
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace


class Told(NamedTuple):
    """A temperature from documents, in place of the parameter."""

    given: float | None
    """The parameter `temperature` then, if there is one."""

    temperature: float
    """What divides the scores."""

    by: dict[str, Any] | None = None
    """The likely `accuracy` (`low`, `expected`, `high`) that it was chosen by, the number of `documents`, and that of
    `labelled` ones among them; None if that is not known, or was with other labels."""


class Fitted(ABC):
    """A head that scores and a decision that answers.

    Attributes are `head_` (turns documents into scores), `label_space_`, `classes_` (sorted label names), `reads_`
    (texts or pairs of texts) and `none_` (the limit for "none of these", None without one).
    """

    label_space_: LabelSpace
    classes_: NDArray[Any]
    head_: Any
    reads_: Kind
    none_: NoneLimit | None = None
    min_probability: float | None
    """Only where `decision` is that of this class."""

    calibrated_: Told | None = None
    """The temperature that documents told; None: they did not."""

    takes_pairs: ClassVar[bool] = False
    """Whether `fit` takes pairs of texts, in which case two text columns are read as pairs."""

    @property
    def class_name(self) -> str:
        """Name of the classifier's class, for messages."""
        return type(self).__name__

    def decision(self) -> Decision:
        """Return the decision rule, from the current parameters: the temperature and the lowest probability."""
        return Decision(temperature=self.temperature_, min_probability=self.min_probability, none=self.none_)

    @property
    def temperature_(self) -> float:
        """What divides the scores: as `evaluate.calibrate`, a consensus or held-out rows told, or else the parameter.

        A new fit takes back what was told; while the parameter has another value, the parameter holds.
        """
        given: Any = getattr(self, "temperature", None)
        told = self.told()
        return given if told is None else told.temperature

    @temperature_.setter
    def temperature_(self, value: float) -> None:
        self.tell(value)

    def told(self) -> Told | None:
        """Return the temperature that documents told; None if there is none, or the parameter has another value now."""
        told = self.calibrated_
        return told if told is not None and told.given == getattr(self, "temperature", None) else None

    def tell(self, temperature: float, by: dict[str, Any] | None = None) -> None:
        """Put a temperature in place of the parameter; see `Told`.

        Raises:
            ConfigError: it is not above 0.
        """
        check_number("temperature", temperature, above=0)
        self.calibrated_ = Told(getattr(self, "temperature", None), temperature, by)

    def read(self, X: Any) -> Documents:
        """Check and convert documents; `Documents` are returned as they are.

        Raises:
            InputError: an entry is not a document, or the model was fitted on texts and these are pairs, or vice versa.
        """
        check_fitted(self)
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
        return decision.answers(self.label_space_.names, *self.judge(documents, self.label_space_))

    def answer_blocks(self, X: Any) -> Iterator[AnswerBlock]:
        """Yield what `answers` returns in blocks, none of which holds the scores of all documents.

        A block holds different documents that the encoder reads together, with thousands of labels a part of them;
        without documents there is one empty block.

        Args:
            X: as for `answers`.
        """
        documents = self.read(X)
        decision, space = self.decision(), self.label_space_
        if not len(documents):
            none = np.empty(0, dtype=np.intp)
            yield AnswerBlock(none, none, self.answers(documents))
        size = at_once(len(space))
        for rows, window, which in in_windows(documents, len(space)):
            judged = self.judge(Documents(window, documents.kind), space)
            for start in range(0, len(window), size):
                part = judged.rows(slice(start, start + size))
                own = slice(*np.searchsorted(which, [start, start + size]))  # `which` ascends
                yield AnswerBlock(rows[own], which[own] - start, decision.answers(space.names, *part))

    def scores(self, texts: Sequence[Any], space: LabelSpace) -> Matrix:
        """Score texts against a label space, the fitted one or any other; see `classify.scorer.Scorer`."""
        check_fitted(self)
        if not isinstance(space, LabelSpace):
            raise ConfigError(
                f"space must be a LabelSpace. Got {type(space).__name__}; LabelSpace.from_names makes one."
            )
        return self.judge(texts, space).scores

    def judge(self, documents: Sequence[Any], space: LabelSpace) -> Judged:
        """Return what the head says about texts or pairs of texts, long ones as the model reads them."""
        return self.head_.judge(documents, space)


def answerer(model: Any) -> Any:
    """Return the model that answers documents: of a consensus the one that it made, else the model itself."""
    return getattr(model, "model_", model)


def check_fitted(model: Any) -> None:
    """Let scikit-learn refuse a model that is not fitted; a fitted one does not import it.

    Raises:
        ConfigError: it is a path.
        NotFittedError: `fit` has not been called.
    """
    if isinstance(model, str | os.PathLike):
        raise ConfigError(f"model must be a fitted classifier. Got a path; open it: labelspace.load({str(model)!r}).")
    if not hasattr(model, "label_space_"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(model)
