"""Evaluation: metrics, where numbers come from, figures.

What is heavy loads on first use: the benchmark's lists and tables need neither torch nor a model.
"""

import importlib
from typing import TYPE_CHECKING, Any

# At once: a module that is called as the function in it would take its place.
from labelspace.evaluate.provenance import provenance, write_result

_HOMES = {
    "Baseline": "evaluation",
    "DifficultyBand": "rejection",
    "Evaluation": "evaluation",
    "LabelMetrics": "metrics",
    "Metrics": "metrics",
    "RatePoint": "figures",
    "RejectionCurve": "rejection",
    "Rejections": "rejection",
    "Trajectory": "figures",
    "TrajectoryPoint": "figures",
    "abstaining_scorer": "sklearn_scoring",
    "confusion_figure": "figures",
    "difficulty": "rejection",
    "evaluate": "evaluation",
    "evaluate_table": "evaluation",
    "label_similarity_figure": "figures",
    "map_figure": "figures",
    "rate_points": "figures",
    "rates_figure": "figures",
    "rejection_curve": "rejection",
    "rejection_figure": "figures",
    "softmax_entropy": "rejection",
    "sphere_figure": "figures",
    "trajectory": "figures",
    "trajectory_figure": "figures",
}

__all__ = [
    "Baseline",
    "DifficultyBand",
    "Evaluation",
    "LabelMetrics",
    "Metrics",
    "RatePoint",
    "RejectionCurve",
    "Rejections",
    "Trajectory",
    "TrajectoryPoint",
    "abstaining_scorer",
    "confusion_figure",
    "difficulty",
    "evaluate",
    "evaluate_table",
    "label_similarity_figure",
    "map_figure",
    "provenance",
    "rate_points",
    "rates_figure",
    "rejection_curve",
    "rejection_figure",
    "softmax_entropy",
    "sphere_figure",
    "trajectory",
    "trajectory_figure",
    "write_result",
]

if TYPE_CHECKING:
    from labelspace.evaluate.evaluation import Baseline, Evaluation, evaluate, evaluate_table
    from labelspace.evaluate.figures import (
        RatePoint,
        Trajectory,
        TrajectoryPoint,
        confusion_figure,
        label_similarity_figure,
        map_figure,
        rate_points,
        rates_figure,
        rejection_figure,
        sphere_figure,
        trajectory,
        trajectory_figure,
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
    from labelspace.evaluate.sklearn_scoring import abstaining_scorer


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelspace.evaluate' has no attribute {name!r}")
    value = getattr(importlib.import_module(f"labelspace.evaluate.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
