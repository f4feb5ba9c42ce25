"""The road on Windows, as far as another system can walk it: no machine of the tests runs Windows."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="it asks /proc which files are in use")
def test_what_is_fitted_is_saved_resumed_replaced_predicted_with_and_exported(tmp_path: Path):
    line = [sys.executable, "-W", "ignore", HERE / "as_on_windows.py", tmp_path, HERE / "data" / "tiny-bert"]
    done = subprocess.run(line, capture_output=True, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "exported in.csv model out.csv\n"
