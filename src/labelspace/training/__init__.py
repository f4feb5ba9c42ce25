"""Training: the only place where labels, encoder and losses meet.

The names load on first use: what checks a command line before a training starts should load no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Callback": "callbacks",
    "FitResult": "description",
    "LaConFit": "lacon",
    "MLflowLogger": "callbacks",
    "RateChoice": "description",
    "TensorBoardLogger": "callbacks",
    "Training": "engine",
    "Trial": "description",
    "WandbLogger": "callbacks",
    "train_on_descriptions": "description",
    "train_on_labels": "lacon",
}

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


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelspace.training' has no attribute {name!r}")
    return getattr(importlib.import_module(f"labelspace.training.{_HOMES[name]}"), name)
