"""A scorer for scikit-learn that knows classifiers which abstain, and rows without a label.

scikit-learn's own sort None among names, which fails, and take "no label" for a label. Here no answer is a wrong one,
and rows without a label are left out; as everywhere in `evaluate`, macro and weighted figures are those of the labels
that occur in y, so that not to answer costs recall and no precision.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

from sklearn.metrics import accuracy_score, precision_recall_fscore_support

from labelspace.checks import check_choice
from labelspace.classify.scored_rows import scored_rows
from labelspace.errors import ConfigError

OF_LABELS = ("precision", "recall", "f1")
METRICS = ("accuracy", "balanced_accuracy", *(f"{one}_{mean}" for one in OF_LABELS for mean in ("macro", "weighted")))
"""As scikit-learn calls its scorers."""


def abstaining_scorer(metric: str | Callable[..., float] = "accuracy") -> Callable[..., float]:
    """Make a scorer for `GridSearchCV`, `cross_val_score` and their kind.

    `score`, which they take where `scoring` is left out, is the scorer of the accuracy.

    Args:
        metric: `"accuracy"`, `"balanced_accuracy"`, or `"precision"`, `"recall"` or `"f1"` with `"_macro"` or
            `"_weighted"`; or a function of true names and answers, of which "" is none, that is higher for better ones.

    Returns:
        A function of estimator, documents, label names (None, NaN, -1 or "" where there is none) and, where they
        weigh differently, `sample_weight`.

    Raises:
        ConfigError: no such metric.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert", threshold=1.0).fit()
        >>> clf.predict(["the match"]).tolist(), abstaining_scorer("f1_macro")(clf, ["the match"], ["sports"])
        ([None], 0.0)

    See also:
        evaluate: the same numbers and more, of a fitted classifier.
    """
    if isinstance(metric, str):
        check_choice("metric", metric, METRICS)
    elif not callable(metric):
        raise ConfigError(
            f"metric must be a name or a function of names. Got {type(metric).__name__} instead; take one of "
            f"{', '.join(METRICS)}."
        )
    return _AbstainingScorer(metric)


# Not a function in a function: scikit-learn prints it, and hands it to other processes.
@final
@dataclass(frozen=True)
class _AbstainingScorer:
    metric: str | Callable[..., float]

    def __call__(self, estimator: Any, X: Any, y: Any, sample_weight: Any = None) -> float:
        truth, answers, weights = scored_rows(estimator.predict(X), y, estimator.classes_, sample_weight)
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
