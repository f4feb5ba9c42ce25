"""`predict --workers`: several processes write what one writes, and a kill costs what it costs one."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pytest

from cli.conftest import DOCUMENTS, write_rows
from labelspace import load
from labelspace.classify import predict_file
from labelspace.classify.tables.columns import output_schema
from labelspace.classify.tables.stream import CHUNK_ROWS
from labelspace.classify.tables.workers import answered
from labelspace.corpus import Documents, Kind, open_table

pytestmark = pytest.mark.slow  # each worker imports torch, for seconds

ROWS = 12 * CHUNK_ROWS + 5


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirteen chunks of documents."""
    rows = [{"text": f"{DOCUMENTS[row % 6][0]} {row}", "id": row} for row in range(ROWS)]
    return write_rows(tmp_path_factory.mktemp("many") / "in.jsonl", rows)


@pytest.fixture(scope="module")
def whole(saved: Path, many: Path, one_thread: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes that one process writes."""
    out = tmp_path_factory.mktemp("whole") / "out.csv"
    done = subprocess.run(predict(saved, many, out), env=one_thread, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return out.read_bytes()


def predict(model: Path, source: Path, out: Path, *options: object) -> list[str]:
    words = ["predict", model, source, out, *options]
    return [sys.executable, "-m", "labelspace", *(str(word) for word in words)]


@pytest.fixture
def running(
    saved: Path, many: Path, one_thread: dict[str, str], tmp_path: Path
) -> Iterator[Callable[[int], subprocess.Popen[str]]]:
    """Start a run with some workers, in a process group of its own, and return it when it has written two chunks."""
    started: list[subprocess.Popen[str]] = []

    def start(workers: int) -> subprocess.Popen[str]:
        run = subprocess.Popen(
            predict(saved, many, tmp_path / "out.csv", "--workers", workers, "--quiet"),
            env=one_thread | {"TMPDIR": str(tmp_path / "tmp")},
            stdout=-1,
            stderr=-1,
            text=True,
            start_new_session=True,
        )
        started.append(run)
        until(lambda: any((tmp_path / "out.csv.parts").glob("000001.*.csv")) or run.poll() is not None)
        return run

    (tmp_path / "tmp").mkdir()
    yield start
    for run in started:
        with run:
            run.kill()


def until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def workers_of(run: subprocess.Popen[str]) -> list[psutil.Process]:
    """Return the processes that answer; multiprocessing starts one more, which looks after its semaphores."""
    return [child for child in psutil.Process(run.pid).children() if "spawn_main" in " ".join(child.cmdline())]


def resumed(out: Path, saved: Path, many: Path, env: dict[str, str], workers: int) -> dict[str, Any]:
    line = predict(saved, many, out, "--resume", "--workers", workers, "--json", "--quiet")
    done = subprocess.run(line, env=env, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return json.loads(done.stdout)


def test_two_processes_write_the_bytes_of_one(
    saved: Path, many: Path, whole: bytes, one_thread: dict[str, str], tmp_path: Path
):
    line = predict(saved, many, tmp_path / "out.csv", "--workers", 2, "--quiet")
    done = subprocess.run(line, env=one_thread, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "out.csv").read_bytes() == whole
    assert [file.name for file in tmp_path.iterdir()] == ["out.csv"]


def test_a_killed_worker_is_told_in_one_line_and_what_is_done_is_safe(
    running: Callable[[int], subprocess.Popen[str]],
    saved: Path,
    many: Path,
    whole: bytes,
    one_thread: dict[str, str],
    tmp_path: Path,
):
    run = running(2)
    assert len(workers_of(run)) == 2
    workers_of(run)[0].kill()
    said = run.communicate(timeout=180)[1]
    assert (run.returncode, said.count("\n")) == (1, 1), said
    assert f"error: {tmp_path}/out.csv: a worker ended before its work was done (killed, or out of memory)." in said
    assert "rows are safe in out.csv.parts/; continue with --resume, or with fewer workers" in said
    assert list((tmp_path / "tmp").iterdir()) == []
    done = resumed(tmp_path / "out.csv", saved, many, one_thread, workers=3)
    assert (done["rows"], done["resumed_at"] >= 2 * CHUNK_ROWS) == (ROWS, True)
    assert (tmp_path / "out.csv").read_bytes() == whole


def test_a_killed_run_leaves_no_worker_and_no_file_behind_and_resumes_to_the_same_bytes(
    running: Callable[[int], subprocess.Popen[str]],
    saved: Path,
    many: Path,
    whole: bytes,
    one_thread: dict[str, str],
    tmp_path: Path,
):
    run = running(2)
    workers = workers_of(run)
    run.kill()
    run.wait()
    _, alive = psutil.wait_procs(workers, timeout=60)
    assert alive == []
    until(lambda: not any((tmp_path / "tmp").iterdir()))
    assert resumed(tmp_path / "out.csv", saved, many, one_thread, workers=1)["resumed_at"] >= 2 * CHUNK_ROWS
    assert (tmp_path / "out.csv").read_bytes() == whole


def test_ctrl_c_ends_all_processes_and_says_how_to_go_on(
    running: Callable[[int], subprocess.Popen[str]], tmp_path: Path
):
    run = running(2)
    workers = workers_of(run)
    os.killpg(run.pid, signal.SIGINT)  # as a terminal does
    said = run.communicate(timeout=180)[1]
    assert (run.returncode, said.count("\n")) == (130, 1), said
    assert "--resume" in said
    assert psutil.wait_procs(workers, timeout=60)[1] == []
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_script_without_a_guard_is_told_so(saved: Path, many: Path, one_thread: dict[str, str], tmp_path: Path):
    script = tmp_path / "script.py"
    script.write_text(
        "from labelspace import load\nfrom labelspace.classify import predict_file\n"
        f"predict_file(load({str(saved)!r}), {str(many)!r}, {str(tmp_path / 'out.csv')!r}, workers=2)\n"
    )
    done = subprocess.run([sys.executable, str(script)], env=one_thread, capture_output=True, text=True)
    assert done.returncode == 1
    assert 'a script without `if __name__ == "__main__":`). Nothing is lost' in done.stderr.splitlines()[-1]


def test_few_chunks_are_read_ahead(saved: Path):
    read = []

    def chunks() -> Iterator[tuple[pa.RecordBatch, Documents]]:
        for number in range(20):
            read.append(number)
            texts = [f"{text} {number}" for text, _ in DOCUMENTS]
            yield pa.record_batch({"number": [number] * 6}), Documents(texts, Kind.TEXTS)

    model = load(saved)
    schema = output_schema(pa.schema([("number", pa.int64())]), model, "predicted_", all_scores=False)
    rows = answered(model, chunks(), schema, workers=2, all_scores=False, top=None)
    first, columns = next(rows)
    assert (first["number"].to_pylist(), len(columns[0]), len(read)) == ([0] * 6, 6, 4)
    assert [batch["number"][0].as_py() for batch, _ in rows] == list(range(1, 20))


def test_workers_answer_with_the_parameters_of_the_model_in_memory(saved: Path, many: Path, tmp_path: Path):
    model = load(saved).set_params(threshold=0.9)
    [batch, *_] = open_table(many).batches()
    done = predict_file(model, batch, tmp_path / "out.parquet", workers=2, chunk_rows=300)
    assert 0 < done.abstained == sum(name is None for name in model.predict(batch["text"].to_pylist())) <= 1024


def test_workers_run_the_code_of_an_encoder_that_was_allowed(
    own_code_model: Path, documents: Path, one_thread: dict[str, str], tmp_path: Path
):
    line = predict(own_code_model, documents, tmp_path / "out.csv", "--trust-remote-code", "--workers", 2)
    done = subprocess.run(line, env=one_thread, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 7
