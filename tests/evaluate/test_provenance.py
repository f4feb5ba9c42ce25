"""A result is written only with its provenance; a write leaves the old file or the new one."""

import json
import stat
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

import labelspace
from labelspace.errors import ConfigError, OutputError
from labelspace.evaluate import provenance, write_result
from labelspace.evaluate.provenance import REQUIRED, source_commit
from labelspace.folders import write_atomically

FULL = dict.fromkeys(REQUIRED, "known")


def test_provenance_holds_code_versions_machine_seeds_and_data():
    found = provenance(seeds=range(3), data={"name": "agnews"})
    assert set(found) == set(REQUIRED)
    assert found["labelspace"] == labelspace.__version__
    assert set(found["versions"]) >= {"python", "torch", "transformers", "sentence-transformers", "numpy"}
    assert set(found["hardware"]) >= {"processor", "cores", "memory_gib", "torch_threads", "dtype", "platform"}
    assert found["hardware"]["cores"] >= 1
    assert found["hardware"]["processor"]
    assert found["seeds"] == [0, 1, 2]
    assert found["data"] == {"name": "agnews"}
    assert found["command"]
    age = datetime.now(UTC) - datetime.fromisoformat(found["date"])
    assert timedelta(seconds=-2) < age < timedelta(minutes=1)
    assert json.loads(json.dumps(found)) == found


def test_seeds_and_dtype_can_be_given():
    assert provenance(seeds=7)["seeds"] == [7]
    assert provenance()["seeds"] == []
    assert provenance(dtype="float16")["hardware"]["dtype"] == "float16"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small git checkout with a package in src/."""
    package = tmp_path / "src" / "labelspace"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    results = tmp_path / "benchmarks" / "results"
    results.mkdir(parents=True)
    (results / "old.json").write_text("{}")
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    for words in (["init", "-q"], ["add", "."], [*identity, "commit", "-q", "-m", "first"]):
        subprocess.run(["git", *words], cwd=tmp_path, check=True, capture_output=True)
    return package


def test_the_commit_is_that_of_the_checkout_and_marks_changed_code(checkout: Path):
    clean = source_commit(checkout)
    assert clean is not None
    assert len(clean) == 40
    (checkout.parents[1] / "result.json").write_text("{}")
    (checkout.parents[1] / "benchmarks" / "results" / "old.json").unlink()
    assert source_commit(checkout) == clean
    (checkout / "new.py").write_text("")
    assert source_commit(checkout) == clean + "-dirty"
    (checkout / "new.py").unlink()
    (checkout / "__init__.py").write_text("changed = True")
    assert source_commit(checkout) == clean + "-dirty"


def test_a_package_installed_inside_another_checkout_has_no_commit(checkout: Path):
    installed = checkout.parents[1] / ".venv" / "lib" / "labelspace"
    installed.mkdir(parents=True)
    assert source_commit(installed) is None


def test_without_git_there_is_no_commit_and_no_error(checkout: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    assert source_commit(checkout) is None


def test_a_result_is_written_with_its_provenance(tmp_path: Path):
    path = write_result(tmp_path / "result.json", {"macro_f1": 0.5, "names": ["é"]}, provenance=FULL)
    assert json.loads(path.read_text(encoding="utf-8")) == {"macro_f1": 0.5, "names": ["é"], "provenance": FULL}
    assert [file.name for file in tmp_path.iterdir()] == ["result.json"]


@pytest.mark.parametrize("lacking", [None, {}, "yesterday", {**FULL, "seeds": 1} | {"x": 1}])
def test_a_result_without_provenance_is_refused_and_the_old_one_stays(tmp_path: Path, lacking):
    if isinstance(lacking, dict):
        lacking = {key: value for key, value in lacking.items() if key != "commit"}
    path = tmp_path / "result.json"
    path.write_text("old")
    with pytest.raises(ConfigError, match=r"provenance.*pass provenance\(\)"):
        write_result(path, {"macro_f1": 0.5}, provenance=lacking)
    assert path.read_text() == "old"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), object(), {1, 2}])
def test_values_that_json_cannot_hold_are_refused_and_the_old_file_stays(tmp_path: Path, value):
    path = tmp_path / "result.json"
    path.write_text("old")
    with pytest.raises(ConfigError, match="not plain finite values"):
        write_result(path, {"value": value}, provenance=FULL)
    assert path.read_text() == "old"


def test_an_unwritable_file_is_a_clear_error_and_leaves_nothing_behind(tmp_path: Path):
    with pytest.raises(OutputError, match="No such file or directory"):
        write_result(tmp_path / "missing" / "result.json", {}, provenance=FULL)
    folder = tmp_path / "taken"
    folder.mkdir()
    with pytest.raises(OutputError, match="taken cannot be written"):
        write_atomically(folder, b"content")
    assert [file.name for file in tmp_path.iterdir()] == ["taken"]


def test_a_file_that_replaces_another_has_its_access_rights(tmp_path: Path):
    file = tmp_path / "private.json"
    file.write_text("old")
    file.chmod(0o600)
    write_atomically(file, b"new")
    assert (file.read_text(), stat.S_IMODE(file.stat().st_mode)) == ("new", 0o600)


def test_a_link_is_followed_and_kept(tmp_path: Path):
    real = tmp_path / "real.json"
    real.write_text("old")
    link = tmp_path / "link.json"
    link.symlink_to(real)
    write_atomically(link, b"new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.parametrize(
    ("called", "said"),
    [
        ("/home/me/src/labelspace/__main__.py", "labelspace fit a.yaml"),
        ("/home/me/.venv/bin/labelspace", "labelspace fit a.yaml"),
        ("benchmarks/speed.py", "speed.py fit a.yaml"),
    ],
)
def test_the_command_leaves_out_the_path_of_the_program(called, said, monkeypatch):
    monkeypatch.setattr("sys.argv", [called, "fit", "a.yaml"])
    assert provenance(data="x")["command"] == said
