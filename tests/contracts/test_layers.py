"""The drawing of docs/architecture.md is a contract: import-linter checks it and finds planted violations."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from contracts.source import ROOT, SRC, private_of_others, violations

PLANTED = {
    "labels that know encoders": ("labels/space.py", "from labelspace.encoders import Encoder", "data runs down"),
    "losses that know encoders": ("losses/infonce.py", "import labelspace.encoders.encoder", "data runs down"),
    "losses that know geometry": ("losses/similarity.py", "import labelspace.geometry", "data runs down"),
    "training that knows estimators": ("training/engine.py", "import labelspace.classify.base", "data runs down"),
    "a foundation that knows labels": ("checks.py", "import labelspace.labels.label", "data runs down"),
    "a second file with sentence-transformers": ("classify/base.py", "import sentence_transformers", "in one file"),
    "labels with numpy": ("labels/lint_words.py", "import numpy", "labels are plain Python"),
    "losses with transformers": ("losses/infonce.py", "import transformers", "losses and geometry know tensors only"),
    "errors with torch": ("errors.py", "import torch", "the foundation stands on"),
}


def check_layers(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the copy of the package in `folder`, with the contracts of its pyproject.toml."""
    code = "from importlinter.cli import lint_imports_command; lint_imports_command()"
    return subprocess.run(
        [sys.executable, "-c", code, "--no-cache"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


@pytest.fixture
def copy_of_the_package(tmp_path) -> Path:
    shutil.copytree(SRC, tmp_path / "labelspace", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_the_layers_hold(copy_of_the_package):
    done = check_layers(copy_of_the_package)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "0 broken" in done.stdout


@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.slow
def test_a_planted_violation_breaks_its_contract(what, copy_of_the_package):
    file, line, contract = PLANTED[what]
    path = copy_of_the_package / "labelspace" / file
    path.write_text(path.read_text(encoding="utf-8") + f"\n{line}\n", encoding="utf-8")
    done = check_layers(copy_of_the_package)
    assert done.returncode != 0, f"{file} may say {line!r}"
    broken = [told for told in done.stdout.splitlines() if "BROKEN" in told]
    assert any(contract in told for told in broken), broken


def test_no_file_takes_what_is_private_of_another():
    found = violations(private_of_others)
    assert not found, "\n".join(found)


def test_a_planted_look_at_what_is_private_is_caught(tmp_path):
    path = tmp_path / "planted.py"
    path.write_text("class Mine:\n    def _own(self): ...\ndef f(model, mine):\n    mine._own()\n    model._names()\n")
    assert private_of_others(path) == ["planted.py:5 takes _names of another object"]
