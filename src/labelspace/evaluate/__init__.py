"""Evaluation: metrics, where numbers come from, figures."""

from labelspace.evaluate.evaluation import Baseline, Evaluation, evaluate, evaluate_table
from labelspace.evaluate.figures import confusion_figure, map_figure
from labelspace.evaluate.metrics import LabelMetrics, Metrics
from labelspace.evaluate.provenance import provenance, write_result

__all__ = [
    "Baseline",
    "Evaluation",
    "LabelMetrics",
    "Metrics",
    "confusion_figure",
    "evaluate",
    "evaluate_table",
    "map_figure",
    "provenance",
    "write_result",
]
