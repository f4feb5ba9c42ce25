"""Estimators with the scikit-learn interface.

Names load on first use, so that a model of words opens without torch.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = [
    "Answers",
    "Batches",
    "BiEncoderClassifier",
    "Classifier",
    "DescriptionClassifier",
    "Explanation",
    "Exported",
    "LaConClassifier",
    "LabelChange",
    "Predicted",
    "Scorer",
    "UncertaintyClassifier",
    "WordsClassifier",
    "ZeroShotClassifier",
    "export",
    "load",
    "predict_file",
]

if TYPE_CHECKING:
    from labelspace.classify.answers import Answers
    from labelspace.classify.base import Classifier
    from labelspace.classify.bi_encoder import BiEncoderClassifier
    from labelspace.classify.description import DescriptionClassifier
    from labelspace.classify.editing import LabelChange
    from labelspace.classify.explanation import Explanation
    from labelspace.classify.lacon import LaConClassifier
    from labelspace.classify.saved.exporting import Exported, export
    from labelspace.classify.saved.opening import load
    from labelspace.classify.scorer import Scorer
    from labelspace.classify.tables.batches import Batches
    from labelspace.classify.tables.stream import Predicted, predict_file
    from labelspace.classify.uncertainty import UncertaintyClassifier
    from labelspace.classify.words import WordsClassifier
    from labelspace.classify.zero_shot import ZeroShotClassifier

__getattr__ = late_names(
    __name__,
    {
        "answers": "Answers",
        "base": "Classifier",
        "bi_encoder": "BiEncoderClassifier",
        "description": "DescriptionClassifier",
        "editing": "LabelChange",
        "explanation": "Explanation",
        "lacon": "LaConClassifier",
        "saved.exporting": "Exported export",
        "saved.opening": "load",
        "scorer": "Scorer",
        "tables.batches": "Batches",
        "tables.stream": "Predicted predict_file",
        "uncertainty": "UncertaintyClassifier",
        "words": "WordsClassifier",
        "zero_shot": "ZeroShotClassifier",
    },
)
