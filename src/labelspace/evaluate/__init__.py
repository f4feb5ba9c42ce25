"""Evaluation of a model: metrics, provenance, figures. Heavy modules load on first use."""

from typing import TYPE_CHECKING

# Imported eagerly: the module has the function's name, and would shadow it when loaded lazily.
from labelspace.evaluate.provenance import provenance, write_result
from labelspace.late import late_names

__all__ = [
    "Advice",
    "Baseline",
    "DescriptionAdvice",
    "Difference",
    "DifficultyBand",
    "DraftChoice",
    "DraftJudge",
    "Estimate",
    "Evaluation",
    "Interval",
    "Intervals",
    "LabelMetrics",
    "Metrics",
    "PairAdvice",
    "RejectionCurve",
    "Rejections",
    "SeveralBaseline",
    "SeveralDifference",
    "SeveralEvaluation",
    "SeveralIntervals",
    "SeveralMetrics",
    "abstaining_scorer",
    "advice_figure",
    "advise",
    "calibrate",
    "confusion_figure",
    "consensus_figure",
    "difficulty",
    "estimate",
    "estimate_figure",
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
    from labelspace.evaluate.advice import Advice, DescriptionAdvice, PairAdvice, advise
    from labelspace.evaluate.drafts import DraftChoice, DraftJudge
    from labelspace.evaluate.evaluation import evaluate, evaluate_table
    from labelspace.evaluate.figures import (
        advice_figure,
        confusion_figure,
        consensus_figure,
        estimate_figure,
        label_similarity_figure,
        map_figure,
        rejection_figure,
        sphere_figure,
    )
    from labelspace.evaluate.intervals import Difference, Interval, Intervals, SeveralDifference, SeveralIntervals
    from labelspace.evaluate.metrics import LabelMetrics, Metrics
    from labelspace.evaluate.quality import Estimate, calibrate, estimate
    from labelspace.evaluate.rejection import (
        DifficultyBand,
        RejectionCurve,
        Rejections,
        difficulty,
        rejection_curve,
        softmax_entropy,
    )
    from labelspace.evaluate.report import Baseline, Evaluation
    from labelspace.evaluate.several.metrics import SeveralMetrics
    from labelspace.evaluate.several.report import SeveralBaseline, SeveralEvaluation
    from labelspace.evaluate.sklearn_scoring import abstaining_scorer

__getattr__ = late_names(
    __name__,
    {
        "drafts": "DraftChoice DraftJudge",
        "advice": "Advice DescriptionAdvice PairAdvice advise",
        "evaluation": "evaluate evaluate_table",
        "figures": """
            advice_figure confusion_figure consensus_figure estimate_figure label_similarity_figure map_figure
            rejection_figure sphere_figure
        """,
        "intervals": "Difference Interval Intervals SeveralDifference SeveralIntervals",
        "metrics": "LabelMetrics Metrics",
        "quality": "Estimate calibrate estimate",
        "report": "Baseline Evaluation",
        "several.metrics": "SeveralMetrics",
        "several.report": "SeveralBaseline SeveralEvaluation",
        "rejection": "DifficultyBand RejectionCurve Rejections difficulty rejection_curve softmax_entropy",
        "sklearn_scoring": "abstaining_scorer",
    },
)
