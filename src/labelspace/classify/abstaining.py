"""Answering only where it is sure: the doubt of each document, and limits above which the answer is None."""

import warnings
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice, check_number
from labelspace.classify.answers import Answers
from labelspace.classify.base import BiEncoderClassifier
from labelspace.classify.by_gaussians import ByGaussians
from labelspace.classify.decision import RANKINGS
from labelspace.corpus import as_targets
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.training.abstention import coverage_limit, risk_limit
from labelspace.training.uncertainty import HeldOut, Limit

FEW_ROWS = 30
"""With fewer held-out rows, the share answered on new documents is uncertain by five points or more: one standard error
at a share of 0.9."""


@runtime_checkable
class MeasuresDoubt(Protocol):
    """A classifier that says how much in doubt it is, and can be made to answer only where it is sure."""

    def ranking(self, by: str = "auto") -> str:
        """Return what doubt is measured by, `"uncertainty"` or `"entropy"`."""
        ...

    def doubt(self, answers: Answers, by: str = "auto") -> NDArray[np.float64]:
        """Return how much in doubt each document is, [text]."""
        ...


class AbstainingClassifier(BiEncoderClassifier):
    """A classifier that measures its doubt.

    A fitted one holds `temperature_`, `limit_`, and `held_out_`: what it was unsure of and wrong about in rows that
    training has not seen.
    """

    head_: ByGaussians
    temperature_: float
    limit_: Limit | None
    held_out_: HeldOut

    def most_uncertain(self, X: Any, top: int | None = None, *, by: str = "auto") -> NDArray[np.intp]:
        """Return the places of documents, the most uncertain first: those whose label would teach the most.

        Args:
            X: documents.
            top: how many; None: all.
            by: as in `set_coverage`.

        Raises:
            ConfigError: an argument is out of its range, or the model was fitted with `uncertain=False` and is asked
                for uncertainty.
        """
        check_is_fitted(self)
        if top is not None:
            check_number("top", top, least=1, whole=True)
        by = self.ranking(by)
        return np.argsort(-self.doubt(self.answers(X), by), kind="stable")[:top]

    def doubt(self, answers: Answers, by: str = "auto") -> NDArray[np.float64]:
        """Return how much in doubt each document is, [text].

        Args:
            answers: to these documents.
            by: as in `set_coverage`.
        """
        return self.decision().doubt(answers, self.ranking(by))

    def ranking(self, by: str = "auto") -> str:
        """Return what doubt is measured by: `"uncertainty"` or `"entropy"`.

        Args:
            by: as in `set_coverage`; `"auto"` is looked up in the record of the held-out rows.

        Raises:
            ConfigError: another word, or the model measures no uncertainty.
        """
        check_is_fitted(self)
        check_choice("by", by, RANKINGS)
        if by == "uncertainty" and self.head_.module.log_variance is None:
            raise ConfigError("a model fitted with uncertain=False measures no uncertainty; take by='entropy'.")
        return self.held_out_.better_ranking() if by == "auto" else by

    def set_coverage(self, coverage: float, X: Any = None, *, by: str = "auto") -> Self:
        """Make `predict` name a label for this share of the documents, the surest, and answer None for the others.

        Args:
            coverage: share to answer, above 0; 1 answers all.
            X: documents, of which this share is answered; None: the rows that `fit` held out, and of documents like
                them it is on average this share or more. No label is needed.
            by: what doubt is measured by: `"uncertainty"`, `"entropy"` (of the probabilities), or `"auto"`: the one
                that finds the wrong answers of the held-out rows better, `"entropy"` where none was wrong.

        Returns:
            The classifier, with `limit_` set.

        Warns:
            LabelSpaceWarning: fewer than 30 rows were held out, and X is None.

        Raises:
            ConfigError: an argument is out of its range.
            InputError: no row was held out, and X is None.
        """
        check_is_fitted(self)
        check_number("coverage", coverage, above=0, most=1)
        by = self.ranking(by)
        if coverage == 1:
            self.limit_ = None
            return self
        documents = None if X is None else self.read(X)
        if documents is not None and not len(documents):
            raise InputError("X holds no document; pass one or more, or None for the rows that fit held out.")
        doubt = self._held_out_doubt(by) if documents is None else self.doubt(self.answers(documents), by)
        if X is None and len(doubt) < FEW_ROWS:
            warnings.warn(
                f"fit held out {len(doubt)} rows, on which a coverage of {coverage:g} stands badly: the share answered "
                f"of others may be far from it. Pass {FEW_ROWS} documents or more, or hold out more rows.",
                LabelSpaceWarning,
                stacklevel=2,
            )
        self.limit_ = Limit(by, coverage_limit(doubt, coverage, to_come=X is None))
        return self

    def set_risk(
        self, risk: float, X: Any = None, y: Any = None, *, confidence: float = 0.95, by: str = "auto"
    ) -> Self:
        """Make `predict` answer as often as it can while at most this share of its answers is wrong.

        The promise holds with the given confidence, for documents drawn as those it is made on: see
        `training.abstention.risk_limit`. On the held-out rows `by="auto"` has chosen between two measures by those
        very rows, so both share the chance of a broken promise, which asks for more rows; name the measure, or pass
        other rows, and they need not. The temperature of the entropy is fitted on the held-out rows too; of that one
        number the promise takes no account.

        Args:
            risk: share of wrong answers among those given, between 0 and 1.
            X: labelled documents that `fit` has not seen; None: the rows that it held out.
            y: their labels.
            confidence: of the promise, between 0 and 1.
            by: as in `set_coverage`.

        Returns:
            The classifier, with `limit_` set.

        Raises:
            ConfigError: an argument is out of its range.
            InputError: no row was held out and X is None, or the risk cannot be promised on so few rows or for so
                uncertain a model.
        """
        check_is_fitted(self)
        check_number("risk", risk, above=0, below=1)
        check_number("confidence", confidence, above=0, below=1)
        # The two that auto compares, unless there is but one.
        measures = 2 if by == "auto" and X is None and self.head_.module.log_variance is not None else 1
        by = self.ranking(by)
        if X is None and y is not None:
            raise InputError("y holds labels, and X is None. Pass the documents they belong to, or leave y out too.")
        if X is None:
            doubt, wrong = self._held_out_doubt(by), self.held_out_.wrong
        else:
            documents = self.read(X)
            if y is None:
                raise InputError("set_risk needs the labels of X. Got y=None; pass them, or leave X out too.")
            targets = np.array(as_targets(y, self.label_space_.names, n_documents=len(documents)), dtype=np.intp)
            rows = np.flatnonzero(targets >= 0)
            if not len(rows):
                raise InputError(f"set_risk needs labelled rows, and y names no label. Got {len(documents)} rows.")
            answers = self.answers(documents.take(rows))
            doubt, wrong = self.doubt(answers, by), answers.likeliest != targets[rows]
        limit = risk_limit(doubt, wrong, risk, confidence=confidence, measures=measures)
        if limit is None:
            raise InputError(
                f"a risk of {risk:g} cannot be promised with confidence {confidence:g}: of {len(wrong)} rows "
                f"{int(wrong.sum())} are wrong, and the surest are not right often enough, or too few. Ask for a "
                "higher risk, or hold out more rows."
            )
        self.limit_ = Limit(by, limit)
        return self

    def _held_out_doubt(self, by: str) -> NDArray[np.float64]:
        if not len(self.held_out_.wrong):
            raise InputError(
                "there is no record of rows held out to set a limit on: fit held none out, or a label was removed "
                "since. Pass documents, or fit with validation=0.1."
            )
        return (self.held_out_.uncertainty if by == "uncertainty" else self.held_out_.entropy).astype(np.float64)
