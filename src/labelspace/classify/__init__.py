"""Estimators with the scikit-learn interface."""

from labelspace.classify.answers import Answers
from labelspace.classify.base import BiEncoderClassifier, Classifier
from labelspace.classify.description import DescriptionClassifier
from labelspace.classify.editing import LabelChange
from labelspace.classify.explanation import Explanation
from labelspace.classify.lacon import LaConClassifier
from labelspace.classify.opening import load
from labelspace.classify.scorer import Scorer
from labelspace.classify.stream import Predicted, predict_file
from labelspace.classify.uncertainty import UncertaintyClassifier
from labelspace.classify.words import WordsClassifier
from labelspace.classify.zero_shot import ZeroShotClassifier

__all__ = [
    "Answers",
    "BiEncoderClassifier",
    "Classifier",
    "DescriptionClassifier",
    "Explanation",
    "LaConClassifier",
    "LabelChange",
    "Predicted",
    "Scorer",
    "UncertaintyClassifier",
    "WordsClassifier",
    "ZeroShotClassifier",
    "load",
    "predict_file",
]
