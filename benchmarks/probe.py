"""Linear probes: logistic regression on an encoder's own vectors."""

from collections.abc import Sequence
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

CHOICES = (1.0, 10.0, 100.0)
"""Candidates for C. On unit vectors MTEB's 1 regularises too strongly: with 100 rows it hardly beats the majority."""


def linear_probe(*, tuned: bool, choices: Sequence[float] = CHOICES) -> Any:
    """Return an unfitted probe: with MTEB's C, or with C chosen by cross-validation on the training rows."""
    head = LogisticRegression(max_iter=1000)
    if not tuned:
        return head
    # Not stratified, because some labels have only two rows.
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(head, {"C": list(choices)}, cv=folds, scoring="accuracy")
