"""Fixtures of the evaluation tests: a tiny encoder in float32, a label space, labelled documents, fitted models."""

from pathlib import Path

import pytest

from labelspace import DescriptionClassifier, LabelSpace, ZeroShotClassifier
from labelspace.encoders import Encoder

SPACE = {
    "name": "desk",
    "labels": {
        "sports": ["Results of matches and games.", "News of players."],
        "money": ["Banks, markets and prices."],
        "world": ["War and peace.", "A government falls after the election."],
    },
}
DOCUMENTS = [
    ("the team won the match in the last minute", "sports"),
    ("the bank said that prices will rise next year", "money"),
    ("the minister asked the court for time", "world"),
    ("players from three countries", "sports"),
    ("the market closed low", "money"),
    ("police said nothing about it", "world"),
    ("this film is great", "sports"),
    ("she wants her money back", "money"),
]


@pytest.fixture(scope="session")
def encoder(tiny_encoder_folder: Path) -> Encoder:
    """The tiny BERT in float32; classifiers copy it before training."""
    return Encoder(tiny_encoder_folder, dtype="float32", device="cpu")


@pytest.fixture(scope="session")
def space() -> LabelSpace:
    """Three labels with two, one and two descriptions."""
    return LabelSpace.from_dict(SPACE)


@pytest.fixture(scope="session")
def untrained(encoder: Encoder, space: LabelSpace) -> ZeroShotClassifier:
    """A classifier with the untrained encoder."""
    return ZeroShotClassifier(space, encoder).fit()


@pytest.fixture(scope="session")
def trained(encoder: Encoder, space: LabelSpace) -> DescriptionClassifier:
    """A classifier after a few training steps."""
    return DescriptionClassifier(space, encoder, max_steps=12, learning_rate=1e-3, seed=3).fit()


@pytest.fixture
def texts() -> list[str]:
    """Eight documents."""
    return [text for text, _ in DOCUMENTS]


@pytest.fixture
def names() -> list[str]:
    """The labels of the documents."""
    return [name for _, name in DOCUMENTS]
