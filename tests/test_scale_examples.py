"""The scripts of `examples/scale` on a small cluster of processes here, one of which is killed in the middle."""

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from labelspace import ZeroShotClassifier
from labelspace.classify import predict_file

EXAMPLES = Path(__file__).parents[1] / "examples" / "scale"
FILES, ROWS = 8, 4000
HAS = {
    "ray": importlib.util.find_spec("ray") is not None,
    "spark": importlib.util.find_spec("pyspark") is not None and shutil.which("java") is not None,
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, tiny_encoder_folder: Path) -> Path:
    """A model, some files, and what one process answers."""
    folder = tmp_path_factory.mktemp("scale")
    model = ZeroShotClassifier(["sports", "money"], {"name": str(tiny_encoder_folder), "dtype": "float32"}).fit()
    model.save(folder / "model")
    rows = pa.table({"id": list(range(FILES * ROWS)), "text": [f"the team {row}" for row in range(FILES * ROWS)]})
    (folder / "in").mkdir()
    for file in range(FILES):
        pq.write_table(rows.slice(file * ROWS, ROWS), folder / "in" / f"{file}.parquet")
    predict_file(model, rows, folder / "whole.parquet")
    return folder


def busy_workers(engine: str, script: psutil.Process) -> list[psutil.Process]:
    """Return the processes that have opened the model and answer rows."""
    found = []
    for process in script.children(recursive=True):
        try:
            words = " ".join(process.cmdline())
            task = words.startswith("ray::") and "MapBatches" in words if engine == "ray" else "pyspark" in words
            opened = any("libtorch_cpu" in map.path for map in process.memory_maps())
            if task and opened and process.cpu_times().user > 1:
                found.append(process)
        except psutil.Error:  # it has just ended
            continue
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "engine",
    [
        pytest.param(name, marks=pytest.mark.skipif(not here, reason=f"{name} is not installed here"))
        for name, here in HAS.items()
    ],
)
def test_a_killed_worker_loses_and_repeats_no_row(engine: str, whole: Path, tmp_path: Path):
    line = [sys.executable, str(EXAMPLES / f"label_with_{engine}.py")]
    line += [str(whole / "model"), str(whole / "in"), str(tmp_path / "out")]
    killed = False
    with tempfile.TemporaryDirectory(prefix="ls", dir="/tmp", ignore_cleanup_errors=True) as short:  # for Ray's sockets
        env = {
            **os.environ,
            "OMP_NUM_THREADS": "1",
            "RAY_TMPDIR": short,
            "RAY_USAGE_STATS_ENABLED": "0",
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": short,
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_SUBMIT_ARGS": "--master local[2,4] pyspark-shell",  # two at a time; a task may fail three times
        }
        with (
            (tmp_path / "said").open("w") as said,
            subprocess.Popen(line, env=env, stdout=said, stderr=said, cwd=tmp_path) as run,
        ):
            deadline = time.monotonic() + 400
            while run.poll() is None and time.monotonic() < deadline:
                if not killed and (busy := busy_workers(engine, psutil.Process(run.pid))):
                    busy[0].kill()
                    killed = True
                time.sleep(0.1)
            run.kill()
        assert run.returncode == 0, (tmp_path / "said").read_text()[-3000:]
    assert killed
    out = ds.dataset(tmp_path / "out", format="parquet").to_table().sort_by("id")
    expected = pq.read_table(whole / "whole.parquet")
    assert out.column_names == expected.column_names
    for name in ("id", "text", "predicted_label"):
        assert out[name].to_pylist() == expected[name].to_pylist()
    for name in ("predicted_score", "predicted_probability"):  # an engine cuts the rows otherwise
        assert out[name].to_pylist() == pytest.approx(expected[name].to_pylist(), abs=1e-6)
