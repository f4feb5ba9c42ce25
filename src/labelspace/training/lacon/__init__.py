"""LaCon: training on labelled texts, from a few to many, with the labels' descriptions as a prior."""

from labelspace.training.lacon.fit import LaConFit, train_before_labels, train_on_labels
from labelspace.training.lacon.head import HeadShape, LaConHead
from labelspace.training.lacon.loop import LaConCurve, Look
from labelspace.training.lacon.prior import Agreement, Prior
from labelspace.training.lacon.rows import Document, Rows, tokenize

__all__ = [
    "Agreement",
    "Document",
    "HeadShape",
    "LaConCurve",
    "LaConFit",
    "LaConHead",
    "Look",
    "Prior",
    "Rows",
    "tokenize",
    "train_before_labels",
    "train_on_labels",
]
