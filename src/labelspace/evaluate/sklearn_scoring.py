"""A scikit-learn scorer for classifiers that abstain, and for rows without a label.

scikit-learn's own scorers fail when they sort None among label names, and treat a missing label as a label. This scorer
counts an abstention as wrong, except on texts that are said to fit no label, and leaves out rows without a label. As
everywhere in `evaluate`, macro and weighted figures are over the labels that occur in y, so an abstention lowers recall
but not precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np
from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from labelspace.checks import check_choice
from labelspace.classify.scored_rows import ScoredRows, scored_rows
from labelspace.corpus.in_memory import document_values
from labelspace.corpus.targets import is_unlabelled
from labelspace.errors import ConfigError

OF_LABELS = ("precision", "recall", "f1")
METRICS = ("accuracy", "balanced_accuracy", *(f"{one}_{mean}" for one in OF_LABELS for mean in ("macro", "weighted")))
"""Metric names, as in scikit-learn."""

FITS_NONE = "\0"
"""Stands for no label; it cannot be the name of one."""


def abstaining_scorer(metric: str | Callable[..., float] = "accuracy", *, none: bool = False) -> Callable[..., float]:
    """Make a scorer for `GridSearchCV`, `cross_val_score` and similar tools.

    Without `scoring` these tools use the estimator's `score`, which equals this scorer with `"accuracy"`.

    Args:
        metric: `"accuracy"`, `"balanced_accuracy"`, or `"precision"`, `"recall"` or `"f1"` with `"_macro"` or
            `"_weighted"`; or a function of true names and answers, higher is better, where the answer "" is an
            abstention.
        none: whether the rows without a label fit no label, rather than being unlabelled. Then an abstention is right
            there, and "none of these" is one of the classes of the figures.

    Returns:
        A function of estimator, documents, label names (missing: None, NaN, -1 or "") and, optionally,
        `sample_weight`.

    Raises:
        ConfigError: an unknown metric.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert", threshold=1.0).fit()
        >>> clf.predict(["the match"]).tolist(), abstaining_scorer("f1_macro")(clf, ["the match"], ["sports"])
        ([None], 0.0)
        >>> abstaining_scorer(none=True)(clf, ["the match", "the soup"], ["sports", None])
        0.5

    See also:
        evaluate: the same metrics and more, for a fitted classifier.
    """
    if isinstance(metric, str):
        check_choice("metric", metric, METRICS)
    elif not callable(metric):
        raise ConfigError(
            f"metric must be a name or a function of names. Got {type(metric).__name__} instead; take one of "
            f"{', '.join(METRICS)}."
        )
    return _AbstainingScorer(metric, none)


# A class rather than a closure, because scikit-learn prints the scorer and pickles it for other processes.
@final
@dataclass(frozen=True)
class _AbstainingScorer:
    metric: str | Callable[..., float]
    none: bool

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        predicted = estimator.predict(X)
        if np.ndim(predicted) == 2:
            raise ConfigError("this scorer is for one label a text; with several labels use scikit-learn's own.")
        truth, answers, weights = self._rows(predicted, y, estimator.classes_, sample_weight)
        more: dict[str, Any] = {} if weights is None else {"sample_weight": weights}
        if not isinstance(self.metric, str):
            return float(self.metric(truth, answers, **more))
        if self.metric == "accuracy":
            return float(accuracy_score(truth, answers, **more))
        metric = "recall_macro" if self.metric == "balanced_accuracy" else self.metric
        name, _, mean = metric.partition("_")
        more |= {"labels": sorted(set(truth)), "zero_division": 0}
        found: Any = precision_recall_fscore_support(truth, answers, average=mean, **more)
        return float(found[OF_LABELS.index(name)])

    def _rows(self, predicted: Any, y: Any, classes: Any, sample_weight: Any) -> ScoredRows:
        if not self.none:
            return scored_rows(predicted, y, classes, sample_weight)
        known, values = set(classes), document_values(y, text_column=None, what="y")
        marked = [FITS_NONE if is_unlabelled(name) and name not in known else name for name in values]
        found = scored_rows(predicted, marked, [*classes, FITS_NONE], sample_weight)
        # As of abstentions, whose name is "".
        return found._replace(truth=["" if name == FITS_NONE else name for name in found.truth])
