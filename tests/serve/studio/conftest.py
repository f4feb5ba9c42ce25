"""A session of the studio on the tiny encoder, and a browser that shows it."""

import contextlib
import io
import os
import shutil
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from PIL import Image

from labelspace import Encoder
from labelspace.corpus import sample_pool
from labelspace.serve.studio.label_file import LabelFile
from labelspace.serve.studio.routes import create_app
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
ARGUMENTS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--disable-quic",
]
DOCUMENTS = 2000
LONGEST = 120_000  # milliseconds


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


class Studio:
    """A served session, and a page of the browser that shows it."""

    def __init__(self, labels: Path, documents: Path, browser: Any, encoder: Encoder, port: int) -> None:
        pool = sample_pool(str(documents), size=DOCUMENTS, seed=0)
        self.session = Session(LabelFile(labels), pool, encoder, pool_file=str(documents), text_column="text")
        app = create_app(self.session, token="test", port=port)
        self.server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))
        self.thread = threading.Thread(target=self.server.run, daemon=True)
        self.thread.start()
        wait_for(lambda: self.server.started)
        self.errors: list[str] = []
        self.page = browser.new_page(viewport={"width": 1280, "height": 800})
        self.page.set_default_timeout(LONGEST)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.goto(f"http://127.0.0.1:{port}/?token=test")

    def close(self) -> None:
        """Stop the page and the server."""
        self.page.close()
        self.server.should_exit = True
        self.thread.join(timeout=20)
        self.session.close()

    def at(self, selector: str) -> Any:
        """Return a part of the page."""
        return self.page.locator(selector)

    def answered(self) -> None:
        """Wait until the documents have answers."""
        self.page.wait_for_selector('body[data-version]:not([data-version=""])')

    def wait_for(self, held: list[Any]) -> None:
        """Wait until a request is held, while the page goes on."""
        wait_for(lambda: self.page.wait_for_timeout(20) or held)

    def studied(self) -> None:
        """Wait until the findings are those of the labels as they are."""
        wait_for(
            lambda: self.session.study.found.complete and self.session.study.found.version == self.session.file.version
        )
        self.page.wait_for_selector(f'body[data-study="{self.session.file.version}"]')

    def screenshot(self, name: str) -> None:
        """Take a screenshot for the docs, if a folder for them is named."""
        folder = os.environ.get("LABELSPACE_SCREENSHOTS")
        if folder:
            self.page.evaluate("() => document.getElementById('left').scrollTo(0, 0)")
            picture = Image.open(io.BytesIO(self.page.screenshot()))
            picture.convert("RGB").quantize(256, kmeans=2).save(f"{folder}/studio-{name}.png", optimize=True)


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("no chromium on this machine; the Debian package chromium has it")
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield opened
        opened.close()
