"""Fixtures of the classifier tests: a space of three labels, documents, and fitted models."""

import copy
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from classify.doubt import SEEN, SEEN_Y, WELL
from labelspace import DescriptionClassifier, LabelSpace, UncertaintyClassifier, ZeroShotClassifier
from labelspace.classify.settings import as_arguments
from labelspace.encoders import Encoder

SPACE = {
    "name": "desk",
    "template": "This text is about {label}.",
    "labels": [
        {"name": "sports", "descriptions": ["Results of matches and games.", "Players, teams and a coach who leaves."]},
        {"name": "money", "phrase": "banks and money", "descriptions": ["Banks, markets and prices."]},
        {"name": "world", "verbalizer": "War, peace and elections.", "descriptions": []},
    ],
}

TEXTS = [
    "the team won the match in the last minute",
    "the bank said that prices will rise next year",
    "the minister asked the court for time",
    "police said nothing",
    "my card is not working and I want my money back now please",
    "Müller 北京 ☃",
]

METHODS = ("description", "zero-shot")


def columns_of(clf: Any, scores: np.ndarray, names: Iterable[str]) -> np.ndarray:
    """Return the columns of an answer in the order of these names."""
    place = {name: column for column, name in enumerate(clf.classes_)}
    return scores[:, [place[name] for name in names]]


@pytest.fixture
def space() -> LabelSpace:
    """Labels with two, one and no description."""
    return LabelSpace.from_dict(SPACE)


@pytest.fixture(scope="session")
def encoders(tiny_encoder_folder: Path) -> dict[str, Encoder]:
    """The tiny BERT in each format; do not change it."""
    return {dtype: Encoder(tiny_encoder_folder, dtype=dtype, device="cpu") for dtype in ("float32", "bfloat16")}


@pytest.fixture(scope="session")
def zero_shot_folder(encoders: dict[str, Encoder], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A saved zero-shot model; do not write into it."""
    return ZeroShotClassifier(SPACE, encoders["float32"]).fit().save(tmp_path_factory.mktemp("saved") / "model")


@pytest.fixture
def make(encoders: dict[str, Encoder], space: LabelSpace) -> Callable[..., Any]:
    """Make an unfitted classifier by method and format."""

    def made(method: str = "description", dtype: str = "float32", labels: Any = None, **options: Any) -> Any:
        labels = space if labels is None else labels
        if method == "zero-shot":
            return ZeroShotClassifier(labels, encoders[dtype], **options)
        settings = {"encoder": encoders[dtype], "max_steps": 6, "learning_rate": 1e-3, **options}
        return DescriptionClassifier(labels, **as_arguments(DescriptionClassifier, settings))

    return made


@pytest.fixture
def fitted(make: Callable[..., Any]) -> Callable[..., Any]:
    """Make and fit a classifier."""
    return lambda *args, **options: make(*args, **options).fit()


@pytest.fixture(scope="session")
def well_fitted(encoders: dict[str, Encoder]) -> UncertaintyClassifier:
    """A classifier that gets most labels right, with nine rows held out; do not change it."""
    return UncertaintyClassifier(encoder=encoders["float32"], **WELL).fit(SEEN, SEEN_Y)


@pytest.fixture
def clf(well_fitted: UncertaintyClassifier) -> UncertaintyClassifier:
    """A copy of `well_fitted` that a test may change; its attributes are replaced, never edited in place."""
    return copy.copy(well_fitted)
