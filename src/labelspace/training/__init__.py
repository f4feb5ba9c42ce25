"""Training: the only place where labels, encoder and losses meet.

Names load on first use, so that checking a command line before training starts does not import torch.
"""

from typing import TYPE_CHECKING

from labelspace.late import late_names

__all__ = [
    "Callback",
    "FitResult",
    "LaConFit",
    "MLflowLogger",
    "RateChoice",
    "TensorBoardLogger",
    "Training",
    "Trial",
    "WandbLogger",
    "train_on_descriptions",
    "train_on_labels",
]

if TYPE_CHECKING:
    from labelspace.training.callbacks import Callback, MLflowLogger, TensorBoardLogger, WandbLogger
    from labelspace.training.description import FitResult, RateChoice, Trial, train_on_descriptions
    from labelspace.training.engine import Training
    from labelspace.training.lacon import LaConFit, train_on_labels

__getattr__ = late_names(
    __name__,
    {
        "callbacks": "Callback MLflowLogger TensorBoardLogger WandbLogger",
        "description": "FitResult RateChoice Trial train_on_descriptions",
        "engine": "Training",
        "lacon": "LaConFit train_on_labels",
    },
)
