"""Folders are written in one step, and what a killed process left goes away where its number means something."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from labelspace import folders

KILLED = """
import os, sys
from pathlib import Path
from labelspace.folders import staged
with staged(Path(sys.argv[1])) as scratch:
    (scratch / "half").write_text("written")
    os._exit(9)
"""


def test_what_a_killed_save_left_is_cleared_away_by_its_own_machine_or_after_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "model")], check=False).returncode == 9
    (left,) = tmp_path.iterdir()
    with monkeypatch.context() as patch:
        patch.setattr(folders, "HERE", "a container")  # where no process has that number
        with folders.staged(tmp_path / "model"):
            pass
        assert (left / "half").read_text() == "written"
        long_ago = time.time() - folders.LONGEST - 60
        for path in (left / "half", left):
            os.utime(path, (long_ago, long_ago))
        with folders.staged(tmp_path / "model"):
            pass
        assert not left.exists()
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "model")], check=False).returncode == 9
    with folders.staged(tmp_path / "model"):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["model"]
