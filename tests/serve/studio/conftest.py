"""A session of the studio on the tiny encoder, and a client that speaks to it as the page does."""

import contextlib
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from labelspace import Encoder
from labelspace.corpus import sample_pool
from labelspace.serve.studio.label_file import LabelFile
from labelspace.serve.studio.session import Session

LABELS = """\
# Two labels of news.
name: news
template: "This news is about {label}."
labels:
  # what happens on the field
  - name: 'sports'   # a plain one
    descriptions:
      - "A team wins or loses a match and the players celebrate."
      # drafted by hand
      - An athlete breaks a record at the games.

  # what happens in the bank
  - name: money
    phrase: "money and markets"
    descriptions:
      - "A bank raises the price of a loan for its clients."
      - >
        The market falls after
        a company reports a loss.
# the end
"""
POOL = [
    f"the {who} {what} before the {which}"
    for who in ("team", "bank", "player", "market", "coach", "loan")
    for what in ("won", "lost", "fell", "rose")
    for which in ("match", "vote", "game", "rate")
]


def wait_for(condition: Callable[[], Any], seconds: float = 60) -> Any:
    """Return what the condition returns once it is true."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "waited too long"
        time.sleep(0.02)
    return found


@pytest.fixture(scope="session")
def encoder(tiny_encoder_folder) -> Encoder:
    return Encoder(tiny_encoder_folder, dtype="float32")


@pytest.fixture
def label_file(tmp_path) -> Path:
    file = tmp_path / "labels.yaml"
    file.write_text(LABELS, encoding="utf-8")
    return file


@contextlib.contextmanager
def opened(label_file: Path, encoder: Encoder) -> Iterator[Session]:
    """Open a session and wait until its documents are encoded."""
    pool = sample_pool(POOL, size=2000, seed=0)
    made = Session(LabelFile(label_file), pool, encoder, pool_file="docs.csv", text_column="text")
    wait_for(lambda: made.state()["answers"])
    yield made
    made.close()


@pytest.fixture
def session(label_file, encoder) -> Iterator[Session]:
    """A session whose documents are encoded."""
    with opened(label_file, encoder) as made:
        yield made


@pytest.fixture
def unused_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        return bound.getsockname()[1]
