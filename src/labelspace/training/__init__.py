"""Training: the only place where labels, encoder and losses meet."""

from labelspace.training.callbacks import Callback, MLflowLogger, TensorBoardLogger, WandbLogger
from labelspace.training.description import FitResult, train_on_descriptions
from labelspace.training.learning_rate import RateChoice, Trial
from labelspace.training.loop import Curve

__all__ = [
    "Callback",
    "Curve",
    "FitResult",
    "MLflowLogger",
    "RateChoice",
    "TensorBoardLogger",
    "Trial",
    "WandbLogger",
    "train_on_descriptions",
]
