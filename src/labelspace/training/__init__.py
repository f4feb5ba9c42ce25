"""Training: the only place where labels, encoder and losses meet.

The names load on first use: what checks a command line before a training starts should load no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

_HOMES = {
    "Callback": "callbacks",
    "Curve": "loop",
    "FitResult": "description",
    "MLflowLogger": "callbacks",
    "RateChoice": "learning_rate",
    "TensorBoardLogger": "callbacks",
    "Trial": "learning_rate",
    "WandbLogger": "callbacks",
    "train_on_descriptions": "description",
}

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

if TYPE_CHECKING:
    from labelspace.training.callbacks import Callback, MLflowLogger, TensorBoardLogger, WandbLogger
    from labelspace.training.description import FitResult, train_on_descriptions
    from labelspace.training.learning_rate import RateChoice, Trial
    from labelspace.training.loop import Curve


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'labelspace.training' has no attribute {name!r}")
    return getattr(importlib.import_module(f"labelspace.training.{_HOMES[name]}"), name)
