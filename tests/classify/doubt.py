"""Shared by the tests of `UncertaintyClassifier`: training rows, unseen rows, and a quick training."""

from typing import Any

from labelspace import UncertaintyClassifier
from labelspace.classify.settings import as_arguments
from tiny_rows import tiny_rows

SEEN, SEEN_Y = tiny_rows(90, doubtful=0.2)
NEW, NEW_Y = tiny_rows(120, seed=1, doubtful=0.2)
FEW, FEW_Y = tiny_rows(12)
NAMES = ["money", "sports", "world"]
WELL = {"learning_rate": 5e-3, "config": {"batch_size": 16}, "epochs": 10, "validation": 0.1, "cache": None}
QUICK = {"learning_rate": 5e-3, "batch_size": 6, "epochs": 1, "cache": None}


def uncertainty(encoder: Any, **options: Any) -> UncertaintyClassifier:
    """Make a classifier that trains in a moment on a few rows."""
    settings = {"encoder": encoder, **QUICK, **options}
    return UncertaintyClassifier(**as_arguments(UncertaintyClassifier, settings))
