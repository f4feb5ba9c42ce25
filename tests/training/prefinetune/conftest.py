"""A tiny encoder in float32, fresh or shared, and pairs of three sources."""

from pathlib import Path

import pytest

from labelspace.corpus import Pairs
from labelspace.encoders import Encoder
from training.prefinetune.toy import toy_pairs


@pytest.fixture(scope="session")
def base(tiny_encoder_folder: Path) -> Encoder:
    """Return the tiny BERT; do not train it."""
    return Encoder(tiny_encoder_folder, dtype="float32", device="cpu")


@pytest.fixture
def pairs() -> Pairs:
    return toy_pairs()
