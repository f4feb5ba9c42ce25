"""Evaluation of a model: metrics, provenance, figures. Heavy modules load on first use."""

from typing import TYPE_CHECKING

# Imported eagerly: the module has the function's name, and would shadow it when loaded lazily.
from labelspace.evaluate.provenance import provenance, write_result
from labelspace.late import late_names

__all__ = [
    "Baseline",
    "DifficultyBand",
    "Evaluation",
    "LabelMetrics",
    "Metrics",
    "RejectionCurve",
    "Rejections",
    "abstaining_scorer",
    "confusion_figure",
    "difficulty",
    "evaluate",
    "evaluate_table",
    "label_similarity_figure",
    "map_figure",
    "provenance",
    "rejection_curve",
    "rejection_figure",
    "softmax_entropy",
    "sphere_figure",
    "write_result",
]

if TYPE_CHECKING:
    from labelspace.evaluate.evaluation import evaluate, evaluate_table
    from labelspace.evaluate.figures import (
        confusion_figure,
        label_similarity_figure,
        map_figure,
        rejection_figure,
        sphere_figure,
    )
    from labelspace.evaluate.metrics import LabelMetrics, Metrics
    from labelspace.evaluate.rejection import (
        DifficultyBand,
        RejectionCurve,
        Rejections,
        difficulty,
        rejection_curve,
        softmax_entropy,
    )
    from labelspace.evaluate.report import Baseline, Evaluation
    from labelspace.evaluate.sklearn_scoring import abstaining_scorer

__getattr__ = late_names(
    __name__,
    {
        "evaluation": "evaluate evaluate_table",
        "figures": "confusion_figure label_similarity_figure map_figure rejection_figure sphere_figure",
        "metrics": "LabelMetrics Metrics",
        "report": "Baseline Evaluation",
        "rejection": "DifficultyBand RejectionCurve Rejections difficulty rejection_curve softmax_entropy",
        "sklearn_scoring": "abstaining_scorer",
    },
)
