"""Fits that a test can kill: small, with everything random switched on, and what two of them must have in common."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from labelspace import DescriptionClassifier, LaConClassifier, UncertaintyClassifier
from labelspace.classify.settings import as_arguments
from labelspace.config import SearchConfig
from labelspace.training.lacon import fit as lacon_fit
from tiny_rows import tiny_rows

TINY = {"name": str(Path(__file__).parents[1] / "data" / "tiny-bert"), "dtype": "float32", "device": "cpu"}
SPACE = {
    "labels": {
        "sports": ["Results of matches and games, with the teams that won and lost.", "News of players."],
        "money": ["Banks, markets and prices."],
        "world": ["War and peace.", "Courts and police."],
    }
}
SHORT = SearchConfig(rates=(1e-4, 1e-3), steps=2, documents=20)
KINDS = ("description", "lacon", "uncertainty")
TEXTS, NAMES = tiny_rows(60, seed=2, doubtful=0.3)


def fit(kind: str, checkpoint: Path | None, callbacks: tuple = (), **options: Any) -> Any:
    """Fit an estimator; each of them draws dropout, and the description training chooses its rate on a pool."""
    shared = {"seed": 3, "checkpoint": checkpoint, "callbacks": callbacks, **options}
    if kind == "description":
        given = {"max_steps": 24, "check_every": 3, "encoder_dropout": True, "learning_rate": "uniformity"}
        given["search"] = SHORT
        return DescriptionClassifier(SPACE, TINY, **as_arguments(DescriptionClassifier, {**given, **shared})).fit(TEXTS)
    if kind == "lacon":
        given = {"epochs": 3, "validation": 0.2, "description_steps": 12, "batch_size": 8, "learning_rate": 1e-3}
        with mock.patch.object(lacon_fit, "SearchConfig", return_value=SHORT):
            return LaConClassifier(SPACE, TINY, **as_arguments(LaConClassifier, {**given, **shared})).fit(TEXTS, NAMES)
    given = {"epochs": 5, "validation": 0.2, "batch_size": 16, "cache": None}
    return UncertaintyClassifier(SPACE, TINY, **as_arguments(UncertaintyClassifier, {**given, **shared})).fit(
        TEXTS, NAMES
    )


def facts_of(clf: Any) -> dict[str, Any]:
    """All that a fit says of itself but for its times, and the bits of its answers."""

    def timeless(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: timeless(inner) for key, inner in value.items() if key != "seconds"}
        return [timeless(inner) for inner in value] if isinstance(value, (list, tuple)) else value

    return {"fit": timeless(clf.fit_result_.to_dict()), "answers": np.asarray(clf.predict_proba(TEXTS)).tobytes().hex()}


KILLED = """
import sys, time
sys.path[:0] = [sys.argv[1], sys.argv[1] + "/classify"]
from pathlib import Path
from resumed import fit
def tell(step, values):
    if "loss" in values and step == int(sys.argv[4]):
        print("now", flush=True)
        time.sleep(60)
fit(sys.argv[2], Path(sys.argv[3]), (tell,))
"""
