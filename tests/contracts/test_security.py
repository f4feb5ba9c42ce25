"""No pickle is read or written, no text becomes code, no stranger's code runs unasked."""

import pytest

from contracts.source import ROOT, SRC, dangers, python_files


@pytest.mark.parametrize("path", python_files(), ids=lambda path: str(path.relative_to(SRC)))
def test_no_file_of_the_package_can_run_what_it_reads(path):
    assert dangers(path) == []


@pytest.mark.parametrize("folder", ["examples", "benchmarks"])
def test_no_script_can_run_what_it_reads(folder):
    assert [danger for path in python_files(ROOT / folder) for danger in dangers(path)] == []


def test_a_model_folder_with_a_pickle_is_refused_before_anything_is_opened(tmp_path):
    from labelspace import load
    from labelspace.errors import ModelFolderError

    (tmp_path / "pytorch_model.bin").write_bytes(b"\x80\x04.")
    with pytest.raises(ModelFolderError, match="can run code when opened"):
        load(tmp_path)


def test_the_repository_holds_no_pickle():
    suffixes = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"}
    folders = ("src", "tests", "examples", "benchmarks", "docs")
    held = [path for folder in folders for path in (ROOT / folder).rglob("*") if path.suffix in suffixes]
    assert held == []
