"""Fixtures of the command-line tests: label files, documents, saved models, and ways to run a command."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner, Result

from labelspace.cli.app import app
from tiny_rows import WORDS, tiny_rows

Run = Callable[..., Result]

LABELS = """\
name: news
template: "This news text is about {label}."
labels:
  - name: sports
    descriptions:
      - "A team wins or loses a match and the players celebrate."
      - "An athlete breaks a record at the games."
      - "A club hires a coach for the season."
  - name: money
    descriptions:
      - "A bank raises the price of a loan for its clients."
      - "The market falls after a company reports a loss."
      - "People pay more tax and buy fewer goods."
"""

DOCUMENTS = [
    ("the team won the match", "sports"),
    ("the bank lost money", "money"),
    ("a coach and a player", "sports"),
    ("prices rise in the market", "money"),
    ("a record at the games", "sports"),
    ("tax on goods, and loans", "money"),
]


@pytest.fixture(autouse=True)
def _wide(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "160")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")


@pytest.fixture(scope="package", autouse=True)
def commands() -> Iterator[Any]:
    """All commands, built once: typer's runner builds them anew for each call, which took half of a short one."""
    built = typer.main.get_command(app)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda _: built, raising=False)
        yield built


def call(*args: object, **more: Any) -> Result:
    """Run a command in this process."""
    return CliRunner().invoke(app, [str(arg) for arg in args], catch_exceptions=False, prog_name="labelspace", **more)


def command(*args: object) -> list[str]:
    """Return the words that run a command in its own process."""
    return [sys.executable, "-c", "from labelspace.cli import main; main()", *(str(arg) for arg in args)]


def environment() -> dict[str, str]:
    """Return the environment of such a process: one thread, no hub."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}


def process(*args: object, **more: Any) -> subprocess.CompletedProcess[str]:
    """Run a command in its own process."""
    return subprocess.run(
        command(*args), capture_output=True, text=True, check=False, env=environment(), timeout=120, **more
    )


def stop(line: Sequence[object], state: Path, how: str) -> str:
    """Start a command, send it a signal when it writes `state`, a file or a pattern of one, and return its stderr."""
    import torch  # late: most commands are tested without it

    def written() -> int:
        found = Path(state.anchor).glob(str(state.relative_to(state.anchor)))
        return max((file.stat().st_mtime_ns for file in found), default=0)

    before, deadline = written(), time.monotonic() + 120
    threads = {"OMP_NUM_THREADS": str(torch.get_num_threads())}  # for the same bits as in this process
    with subprocess.Popen(command(*line), stdout=-1, stderr=-1, text=True, env=environment() | threads) as stopped:
        while written() == before and stopped.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        stopped.send_signal(getattr(signal, how))
        _, said = stopped.communicate(timeout=60)
    assert stopped.returncode == (130 if how == "SIGINT" else -signal.SIGKILL), said
    assert "Traceback" not in said
    return said


@pytest.fixture(scope="session")
def stopped() -> Callable[[Sequence[object], Path, str], str]:
    return stop


@pytest.fixture(scope="session")
def run() -> Run:
    return call


@pytest.fixture(scope="session")
def own_process() -> Callable[..., subprocess.CompletedProcess[str]]:
    return process


@pytest.fixture(scope="session")
def command_line() -> Callable[..., list[str]]:
    return command


@pytest.fixture(scope="session")
def one_thread() -> dict[str, str]:
    return environment()


@pytest.fixture(scope="session")
def refused() -> Callable[[Result], str]:
    """Check that a result is a refusal and return its one line."""

    def line(result: Result) -> str:
        lines = result.stderr.splitlines()
        assert result.exit_code == 2, result.output
        assert len(lines) == 1, lines
        assert lines[0].startswith("error: ")
        assert result.stdout == ""
        return lines[0]

    return line


@pytest.fixture
def label_file(tmp_path: Path) -> Path:
    file = tmp_path / "labels.yaml"
    file.write_text(LABELS, encoding="utf-8")
    return file


@pytest.fixture
def documents(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "documents.jsonl", [{"text": text, "label": label} for text, label in DOCUMENTS])


def write_rows(path: Path, rows: Sequence[dict[str, Any]]) -> Path:
    """Write a JSONL file."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def fit_by_command(folder: Path, encoder: Path, *options: object) -> Path:
    """Write a label file, fit a model from it with the command line, and return the model's folder."""
    (folder / "labels.yaml").write_text(LABELS, encoding="utf-8")
    fit = ("fit", folder / "labels.yaml", "--encoder", encoder, "--out", folder / "model", "--dtype", "float32")
    result = call(*fit, *options)
    assert result.exit_code == 0, result.output
    return folder / "model"


@pytest.fixture(scope="session")
def saved(tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path) -> Path:
    """A model fitted by the command line; do not write into it."""
    folder = tmp_path_factory.mktemp("cli")
    return fit_by_command(folder, tiny_encoder_folder, "--max-steps", 4, "--learning-rate", "1e-4")


@pytest.fixture(scope="session")
def own_code_model(tmp_path_factory: pytest.TempPathFactory, own_code_folder: Path) -> Path:
    """A model whose encoder has its own code; do not write into it."""
    folder = tmp_path_factory.mktemp("own-code")
    return fit_by_command(folder, own_code_folder, "--method", "zero-shot", "--trust-remote-code")


@pytest.fixture(scope="session")
def sorted_rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Ninety labelled rows; their labels are in `sorted_labels`."""
    rows = [{"text": text, "label": label} for text, label in zip(*tiny_rows(90, doubtful=0.2), strict=True)]
    return write_rows(tmp_path_factory.mktemp("rows") / "rows.jsonl", rows)


@pytest.fixture(scope="session")
def sorted_labels(sorted_rows: Path) -> Path:
    file = sorted_rows.with_name("labels.yaml")
    file.write_text(f"labels: [{', '.join(sorted(WORDS))}]\n", encoding="utf-8")
    return file


@pytest.fixture(scope="session")
def doubting(
    tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path, sorted_rows: Path, sorted_labels: Path
) -> Path:
    """A model that measures uncertainty, with nine rows held out; do not write into it."""
    folder = tmp_path_factory.mktemp("doubting")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABELSPACE_CACHE", str(folder / "cache"))
        result = call(
            *("fit", sorted_labels, "--labelled", sorted_rows, "--method", "uncertainty", "--out", folder / "model"),
            *("--encoder", tiny_encoder_folder, "--dtype", "float32", "--quiet"),
            *("--epochs", 10, "--learning-rate", "5e-3", "--set", "batch_size=16", "--set", "validation=0.1"),
        )
    assert result.exit_code == 0, result.output
    return folder / "model"
