"""LaCon: training on labelled texts, from a few to many, with the labels' descriptions as a prior."""

from labelspace.training.lacon.fit import LaConFit, train_before_labels, train_on_labels
from labelspace.training.lacon.head import HeadShape, LaConHead
from labelspace.training.lacon.objective import Look
from labelspace.training.lacon.prior import Agreement, Prior, short_of_rows

__all__ = [
    "Agreement",
    "HeadShape",
    "LaConFit",
    "LaConHead",
    "Look",
    "Prior",
    "short_of_rows",
    "train_before_labels",
    "train_on_labels",
]
