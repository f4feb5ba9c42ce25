"""No pickle is read or written, no text is run as code, and no remote code runs unless allowed.

Ruff refuses imports of pickle and code that runs text: `banned-api` in pyproject.toml.
"""

import pytest

from contracts.source import ROOT, SRC, trusts_remote_code, violations


def test_no_remote_code_runs_unless_allowed():
    found = violations(trusts_remote_code, SRC, ROOT / "examples", ROOT / "benchmarks")
    assert not found, "\n".join(found)


def test_a_model_folder_with_a_pickle_is_refused_before_anything_is_opened(tmp_path):
    from labelspace import load
    from labelspace.errors import ModelFolderError

    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelFolderError, match="can run code when opened"):
        load(tmp_path)


def test_the_repository_contains_no_pickle():
    suffixes = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"}
    folders = ("src", "tests", "examples", "benchmarks", "docs")
    held = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    assert held == []
