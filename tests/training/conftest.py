"""Shared by the tests of training: tiny encoders in float32, and a label space with uneven counts."""

import functools
from collections.abc import Callable
from pathlib import Path

import pytest

from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace

SPACE = {
    "name": "desk",
    "template": "This text is about {label}.",
    "labels": {
        "sports": [
            "Results of matches and games, with the teams that won and lost.",
            "News of players.",
            "A coach who leaves his team at the end of a long season, and who will come after him next year.",
        ],
        "money": ["Banks, markets and prices."],
        "science": ["Research in physics and medicine, new computers.", "What people of science found out this week."],
        "world": [
            "War and peace.",
            "A government falls after the election and a minister is asked to form a new one.",
            "Courts and police.",
        ],
    },
}

POOL = [
    "the team won the match in the last minute",
    "the bank said that prices will rise next year",
    "a new computer for research in medicine",
    "the minister asked the court for time",
    "police said nothing about it",
    "this film is great",
    "my card is not working",
    "the market closed low",
    "players from three countries",
    "she wants her money back",
]


@pytest.fixture(scope="session")
def open_tiny(tiny_folder: Callable[[str], Path]) -> Callable[..., Encoder]:
    """Return tiny encoders in float32 on the CPU, as copies, because opening takes five times as long."""

    @functools.cache
    def opened_once(kind: str, **options: object) -> Encoder:
        plain = {"dtype": "float32", "device": "cpu", "text_prompt": "", "label_prompt": ""}
        return Encoder(tiny_folder(kind), **{**plain, **options})  # type: ignore[arg-type]

    def opened(kind: str = "bert-mean", **options: object) -> Encoder:
        return opened_once(kind, **options).copy()

    return opened


@pytest.fixture
def encoder(open_tiny: Callable[..., Encoder]) -> Encoder:
    """A fresh tiny BERT with mean pooling."""
    return open_tiny()


@pytest.fixture
def space() -> LabelSpace:
    """Four labels with three, one, two and three descriptions."""
    return LabelSpace.from_dict(SPACE)
