"""The installed package works without a checkout: wheel and sdist are built and checked, and the wheel is tried."""

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from contracts.pages import PARSED, RUN, blocks_of, commands_of

ROOT = Path(__file__).parents[1]

pytestmark = pytest.mark.slow


def run(*words: str | Path, cwd: Path, **variables: str) -> str:
    """Run a command outside the checkout, without our code on the path; return its output."""
    environment = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "PYTEST", "VIRTUAL"))
    }
    done = subprocess.run(
        [str(word) for word in words], cwd=cwd, env=environment | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder with wheel and sdist; the wheel is built from the sdist, as installers do."""
    folder = tmp_path_factory.mktemp("dist")
    pinned = {"PIP_CONSTRAINT": str(ROOT / "constraints.txt")}
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT, cwd=folder, **pinned)
    return folder


@pytest.fixture(scope="module")
def python(dist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the interpreter of an environment with the wheel, the demo's encoder and their dependencies."""
    folder = tmp_path_factory.mktemp("empty") / "venv"
    run(sys.executable, "-m", "venv", folder, cwd=dist)
    python = folder / "bin" / "python"
    (wheel,) = dist.glob("*.whl")
    pip = (python, "-m", "pip", "install", "--quiet", "--no-compile", "--constraint", ROOT / "constraints.txt")
    run(*pip, "torch==2.13.0", f"{wheel}[demo]", cwd=dist)
    return python


def test_wheel_and_sdist_pass_the_checks_of_an_index(dist: Path):
    assert sorted(path.suffix for path in dist.iterdir()) == [".gz", ".whl"]
    assert "PASSED" in run(sys.executable, "-m", "twine", "check", "--strict", *dist.iterdir(), cwd=dist)


def test_the_wheel_holds_the_package_and_its_data_and_nothing_else(dist: Path):
    (wheel,) = dist.glob("*.whl")
    inside = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "src"
    tracked = {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert {name for name in inside if ".dist-info/" not in name} == tracked


def test_the_sdist_holds_what_its_tests_need(dist: Path):
    (sdist,) = dist.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/conftest.py", "tests/data/tiny-bert/model.safetensors", "Makefile", "constraints.txt"} <= names


def test_the_readme_and_the_quickstart_work_outside_the_checkout(python: Path, tmp_path: Path):
    assert run(python.parent / "labelspace", "--version", cwd=tmp_path).startswith("labelspace ")
    readme = next(block for block in blocks_of(ROOT / "README.md") if block.language in RUN)
    asked = "print(*clf.predict(['my parcel still has not come', 'it does not accept my password']))"
    # One script, so that torch is imported once; its packages are already installed.
    script = ["import labelspace", "from labelspace.cli import app", "print(labelspace.__file__)", readme.code, asked]
    for block in blocks_of(ROOT / "docs" / "quickstart.md"):
        if block.language in RUN:
            script.append(block.code)
        elif block.language in PARSED:
            lines = [list(command.words[1:]) for command in commands_of(block) if command.words[0] == "labelspace"]
            script += [f"assert not app.app({words}, standalone_mode=False)" for words in lines]
    (tmp_path / "quickstart.py").write_text("\n".join(script), encoding="utf-8")
    said = run(python, "quickstart.py", cwd=tmp_path).splitlines()
    assert said[0].startswith(str(python.parents[1]))
    assert said[1].split() == ["delivery", "login"]
    assert "predicted_label" in (tmp_path / "predicted.csv").read_text(encoding="utf-8")
