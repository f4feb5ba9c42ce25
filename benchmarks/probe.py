"""Linear probes: logistic regression on an encoder's own vectors."""

from collections.abc import Sequence
from typing import Any

from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold

CHOICES = (1.0, 10.0, 100.0)
"""Of C: on vectors of unit length the 1 of MTEB is stiff, with a hundred rows hardly better than the largest label."""


def linear_probe(*, tuned: bool, choices: Sequence[float] = CHOICES) -> Any:
    """Return a probe to be fitted: as MTEB has it, or with its C chosen among these by folds of the training rows."""
    head = LogisticRegression(max_iter=1000)
    if not tuned:
        return head
    # Folds without classes: some labels have two rows.
    folds = KFold(5, shuffle=True, random_state=0)
    return GridSearchCV(head, {"C": list(choices)}, cv=folds, scoring="accuracy")
