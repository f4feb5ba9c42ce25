"""Abstention: the doubt of each document, and limits above which the answer is None."""

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_choice, check_number
from labelspace.classify.answers import Answers
from labelspace.classify.bi_encoder import BiEncoderClassifier
from labelspace.classify.by_gaussians import ByGaussians
from labelspace.classify.decision import RANKINGS
from labelspace.corpus import Documents, as_targets
from labelspace.errors import ConfigError, InputError, warn
from labelspace.training.abstention import coverage_limit, fewest_rows, least_answers, risk_limit
from labelspace.training.uncertainty import HeldOut, Limit

FEW_ROWS = 30
"""With fewer held-out rows, the share answered on new documents is uncertain by five points or more: one standard error
at a share of 0.9."""


class AbstainingClassifier(BiEncoderClassifier):
    """A classifier that can abstain from uncertain documents.

    Fitted attributes are `temperature_`, `limit_` and `held_out_`: doubt and errors on the held-out rows.
    """

    head_: ByGaussians
    limit_: Limit | None
    held_out_: HeldOut

    def most_uncertain(self, X: Any, top: int | None = None, *, by: str = "auto") -> NDArray[np.intp]:
        """Return document indices, the most uncertain first: the documents to label next.

        Args:
            X: documents; of one that is repeated, the first counts.
            top: maximum number of indices; None: all.
            by: as in `set_coverage`.

        Raises:
            ConfigError: an argument is out of range, or `by="uncertainty"` for a model fitted with `uncertain=False`.
        """
        check_is_fitted(self)
        by = self.ranking(by)
        return self._most_uncertain(X, top, lambda answers: self.doubt(answers, by))

    def doubt(self, answers: Answers, by: str = "auto") -> NDArray[np.float64]:
        """Return the doubt of each document, [text].

        Args:
            answers: the answers to the documents.
            by: as in `set_coverage`.
        """
        return self.decision().doubt(answers, self.ranking(by))

    def ranking(self, by: str = "auto") -> str:
        """Return the measure of doubt: `"uncertainty"` or `"entropy"`.

        Args:
            by: as in `set_coverage`; the held-out rows decide `"auto"`.

        Raises:
            ConfigError: an unknown measure, or the model measures no uncertainty.
        """
        check_is_fitted(self)
        check_choice("by", by, RANKINGS)
        if by == "uncertainty" and self.head_.module.log_variance is None:
            raise ConfigError("a model fitted with uncertain=False measures no uncertainty; take by='entropy'.")
        return self.held_out_.better_ranking() if by == "auto" else by

    def set_coverage(self, coverage: float, X: Any = None, *, by: str = "auto") -> Self:
        """Make `predict` answer this share of the documents, the surest, and return None for the others.

        Args:
            coverage: share to answer, above 0; 1 answers all.
            X: unlabelled documents, of which this share is answered, fewer only where `min_probability` or a limit for
                "none of these" leaves fewer; None: the rows that `fit` held out, which do not tell what these leave.
                Of new documents like the rows held out, this share or more is answered on average; of new ones
                like X, somewhat less if X holds few.
            by: measure of doubt: `"uncertainty"`, `"entropy"` (of the probabilities), or `"auto"`: the one that finds
                the wrong answers on the held-out rows better, `"entropy"` if none was wrong.

        Returns:
            The classifier, with `limit_` set.

        Warns:
            LabelSpaceWarning: X is None, and too few rows were held out (fewer than 30, or than a high share needs) or
                another limit is set; or other limits leave fewer documents than this share.

        Raises:
            ConfigError: an argument is out of range.
            InputError: no row was held out, and X is None; or other limits leave no document.
        """
        check_is_fitted(self)
        check_number("coverage", coverage, above=0, most=1)
        by = self.ranking(by)
        if coverage == 1:
            self.limit_ = None
            return self
        if X is not None:
            return self._cover(coverage, self.read(X), by)
        doubt = self._held_out_doubt(by)
        if self._has_other_limits():
            warn(
                "the rows that fit held out do not tell which of them min_probability or the limit for 'none of these' "
                f"leaves without a label, so less than {coverage:g} may be answered; pass documents."
            )
        if least_answers(coverage, len(doubt) + 1) > len(doubt) >= FEW_ROWS:
            warn(
                f"{len(doubt)} rows held out can promise a coverage of {len(doubt)}/{len(doubt) + 1} on average, which "
                f"is less than {coverage:g}; ask for less, or fit with a larger validation=."
            )
        if len(doubt) < FEW_ROWS:
            warn(
                f"fit held out {len(doubt)} rows, too few for a coverage of {coverage:g}: the share answered of others "
                "may be far from it. Fit with a larger validation=, or in Python pass set_coverage "
                f"{FEW_ROWS} documents or more."
            )
        self.limit_ = Limit(by, coverage_limit(doubt, coverage, to_come=True))
        return self

    def _cover(self, coverage: float, documents: Documents, by: str) -> Self:
        """Answer this share of documents, the surest of those that other limits leave."""
        if not len(documents):
            raise InputError("X holds no document; pass one or more, or None for the rows that fit held out.")
        answers = self._answers_of_other_limits(documents)
        doubt = self.doubt(answers, by)[answers.columns >= 0]
        wanted = least_answers(coverage, len(documents))
        if not len(doubt):
            raise InputError(
                f"min_probability or the limit for 'none of these' leaves all {len(documents)} documents without a "
                "label; lower it, or pass documents that fit the labels."
            )
        if len(doubt) < wanted:
            warn(
                f"min_probability or the limit for 'none of these' leaves {len(doubt) / len(documents):.1%} of the "
                f"documents with a label, less than the coverage of {coverage:g}; lower it."
            )
        value = coverage_limit(doubt, min(1.0, wanted / len(doubt)))
        if (doubt > value).any():
            # Halfway to the next: at a document itself the last bit would decide, which depends on its batch.
            value = float(value + doubt[doubt > value].min()) / 2
        self.limit_ = Limit(by, value)
        return self

    def set_risk(
        self, risk: float, X: Any = None, y: Any = None, *, confidence: float = 0.95, by: str = "auto"
    ) -> Self:
        """Make `predict` answer as often as possible with at most this share of its answers wrong.

        The bound holds with the given confidence for documents drawn like those it is set on, see
        `training.abstention.risk_limit`. Set `min_probability` and a limit for "none of these" before: the bound is
        about the answers that they leave. With `by="auto"`, the held-out rows also chose between two measures, so both
        share the chance of error and more rows are needed; to avoid that, name the measure or pass other rows. Each row
        counts as drawn by itself, so pass copies of a text once, unless new documents repeat as often. The temperature
        is fitted on the held-out rows too; the bound does not account for this one number.

        Args:
            risk: share of wrong answers among those given, between 0 and 1.
            X: labelled documents that `fit` has not seen; None: the rows that it held out.
            y: labels of X.
            confidence: probability that the bound holds, between 0 and 1.
            by: as in `set_coverage`.

        Returns:
            The classifier, with `limit_` set.

        Raises:
            ConfigError: an argument is out of range.
            InputError: no row was held out and X is None, or no limit reaches this risk: too few rows, or too many
                errors among the surest.
        """
        check_is_fitted(self)
        check_number("risk", risk, above=0, below=1)
        check_number("confidence", confidence, above=0, below=1)
        # Auto compares two measures, unless the model has only one.
        measures = 2 if by == "auto" and X is None and self.head_.module.log_variance is not None else 1
        by = self.ranking(by)
        if X is None and y is not None:
            raise InputError("y holds labels, and X is None. Pass the documents they belong to, or leave y out too.")
        if X is None:
            if self._has_other_limits():
                raise ConfigError(
                    "the rows that fit held out do not tell which of them min_probability or the limit for 'none of "
                    "these' leaves without a label, so no risk can be promised on them; pass labelled X and y, or take "
                    "these limits away."
                )
            doubt, wrong = self._held_out_doubt(by), self.held_out_.wrong
        else:
            documents = self.read(X)
            if y is None:
                raise InputError("set_risk needs the labels of X. Got y=None; pass them, or leave X out too.")
            targets = np.array(as_targets(y, self.label_space_.names, n_documents=len(documents)), dtype=np.intp)
            rows = np.flatnonzero(targets >= 0)
            if not len(rows):
                raise InputError(f"set_risk needs labelled rows, and y names no label. Got {len(documents)} rows.")
            answers = self._answers_of_other_limits(documents.take(rows))
            doubt, wrong = self.doubt(answers, by), answers.likeliest != targets[rows]
            named = answers.columns >= 0  # the promise is about answers, and other limits refuse some
            doubt, wrong = doubt[named], wrong[named]
            if not len(doubt):
                raise InputError(
                    f"min_probability or the limit for 'none of these' leaves all {len(rows)} labelled documents "
                    "without a label, so there is no answer to promise anything of; lower it."
                )
        limit = risk_limit(doubt, wrong, risk, confidence=confidence, measures=measures)
        if limit is None:
            needed = fewest_rows(risk, confidence=confidence, measures=measures)
            why = "the surest are not right often enough, or too few"
            if len(wrong) < needed:
                why = f"{needed} would be needed even if all were right"
            raise InputError(
                f"a risk of {risk:g} cannot be promised with confidence {confidence:g}: of {len(wrong)} rows "
                f"{int(wrong.sum())} are wrong, and {why}. Ask for a higher risk, or hold out more rows."
            )
        self.limit_ = Limit(by, limit)
        return self

    def _has_other_limits(self) -> bool:
        return self.decision().min_probability is not None or self.none_ is not None

    def _answers_of_other_limits(self, documents: Documents) -> Answers:
        """Return the answers to documents as they are without the limit of doubt."""
        judged = self.judge(documents, self.label_space_)
        return replace(self.decision(), limit=None).answers(self.label_space_.names, *judged)

    def _held_out_doubt(self, by: str) -> NDArray[np.float64]:
        if not len(self.held_out_.wrong):
            raise InputError(
                "there is no record of rows held out to set a limit on: fit held none out, or a label was removed "
                "since. Fit with validation=0.1 (--set validation=0.1), or give set_risk or set_coverage documents."
            )
        return (self.held_out_.uncertainty if by == "uncertainty" else self.held_out_.entropy).astype(np.float64)
