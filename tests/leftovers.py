"""Plugin: each test session has its own temporary folder, and fails and names the test if a file is left in it.

It is a plugin, not a fixture of `conftest.py`, so that it also covers the docstring examples in `src`.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

# Code that torch compiled for the next process, and files that scikit-learn removes when the process exits.
THEIRS = ("torchinductor_", "sklearn_testing_")
# Old releases of torch write this into a folder of their own when they are imported.
OF_OLD_TORCH = "_remote_module_non_scriptable.py"

SHARED: list[tempfile.TemporaryDirectory[str]] = []
"""Folders that the tests of a process share, removed at the end of its session."""


FIRST_SEEN: dict[str, str] = {}
"""Each entry of the folder, and the test after which it was first there."""
FOLDER = pytest.StashKey[Path]()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Note what the test has added to the folder."""
    folder = item.config.stash.get(FOLDER, None)
    if folder is not None:  # it has none yet if the first tests are skipped
        now = {entry.name: FIRST_SEEN.get(entry.name, item.nodeid) for entry in os.scandir(folder)}
        FIRST_SEEN.clear()
        FIRST_SEEN.update(now)


@pytest.fixture(scope="session", autouse=True)
def own_temporary_folder(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[None]:
    """Give each process of the session its own folder, so that files of others are not counted."""
    tmp_path_factory.getbasetemp()  # what pytest keeps lies beside it
    folder = pytestconfig.stash[FOLDER] = Path(tempfile.mkdtemp(prefix="labelspace-"))
    with pytest.MonkeyPatch.context() as patch:
        for name in ("TMPDIR", "TEMP", "TMP"):
            patch.setenv(name, str(folder))
        patch.setattr(tempfile, "tempdir", str(folder))
        yield
    while SHARED:
        SHARED.pop().cleanup()
    for path in folder.glob(f"*/{OF_OLD_TORCH}"):
        shutil.rmtree(path.parent)
    stayed = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    shutil.rmtree(folder)
    ours = [
        f"{path} (there since {FIRST_SEEN.get(path.parts[0], 'a teardown')})"
        for path in stayed
        if not path.parts[0].startswith(THEIRS)
    ]
    assert not ours, f"left behind in the temporary folder: {', '.join(ours)}"
