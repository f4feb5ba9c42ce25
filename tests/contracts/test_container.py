"""The packages that the Dockerfile names for a model of words are enough, and are pinned."""

import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from contracts.source import ROOT

# Run a command where only some packages can be imported.
ONLY = """
import sys

missing = set(sys.argv[1].split(","))

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in missing:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from labelspace.cli import main
sys.argv = ["labelspace", *sys.argv[2:]]
main()
"""


def words_packages() -> list[str]:
    """Return what the Dockerfile installs for a model of words."""
    stage = (ROOT / "Dockerfile").read_text(encoding="utf-8").split(" AS words-packages")[1]
    listed = re.search(r"--constraint constraints\.txt((?:\s|\\|[\w.-])+)&&", stage)
    assert listed is not None
    return [word for word in listed[1].split() if word != "\\"]


def with_what_they_need(packages: list[str]) -> set[str]:
    """Return packages and all that they depend on, by their canonical names."""
    found: set[str] = set()
    waiting = [Requirement(package) for package in packages]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in found or (one.marker is not None and not one.marker.evaluate({"extra": ""})):
            continue
        try:
            waiting += map(Requirement, requires(name) or ())
        except PackageNotFoundError:
            continue
        found.add(name)
    return found


def test_the_modules_that_the_images_import_once_are_there():
    tried = re.findall(r"-c 'import ([\w., ]+)'", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert len(tried) == 2
    for name in ", ".join(tried).split(", "):
        assert find_spec(name) is not None, name


def test_the_packages_of_the_words_image_are_pinned_and_without_torch():
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    pinned = {canonicalize_name(line.partition("==")[0]) for line in lines if "==" in line}
    needed = with_what_they_need(words_packages())
    assert needed - pinned == set()
    assert not needed & {"torch", "transformers", "sentence-transformers", "huggingface-hub"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    from labelspace.classify import WordsClassifier

    texts = [f"the {who} {row}" for who in ("team won", "bank closed") for row in range(30)]
    return WordsClassifier(["sports", "money"]).fit(texts, ["sports"] * 30 + ["money"] * 30).save(tmp_path / "model")


def command(*words: str) -> list[str]:
    """Return a command line of labelspace where only the packages of the image for words can be imported."""
    allowed = with_what_they_need(words_packages()) | {"labelspace"}
    homes = packages_distributions().items()
    missing = [name for name, packages in homes if not allowed & {canonicalize_name(one) for one in packages}]
    assert {"torch", "pandas"} <= set(missing)
    return [sys.executable, "-c", ONLY, ",".join(missing), *words]


@pytest.mark.slow
def test_a_model_of_words_is_served_with_the_packages_of_its_image_alone(model: Path):
    words = command("serve", str(model), "--port", "0")
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as server:
        assert server.stderr is not None
        told = server.stderr.readline()
        try:
            assert "serving model at" in told, told + server.stderr.read()
            address = told.split()[-1]
            for path, expected in (("/healthz", "ready"), ("/v1/models", "WordsClassifier")):
                assert expected in httpx.get(address + path).text
            found = httpx.post(f"{address}/predict", json={"inputs": "the bank closed"}).json()
            assert found[0][0]["label"] == "money"
        finally:
            server.terminate()


@pytest.mark.parametrize("target", ["", "out.csv"], ids=["stdout", "file"])
@pytest.mark.slow
def test_a_model_of_words_predicts_with_the_packages_of_its_image_alone(target: str, model: Path, tmp_path: Path):
    (tmp_path / "docs.csv").write_text("text\nthe bank closed\n", encoding="utf-8")
    out = [str(tmp_path / target)] if target else []
    done = subprocess.run(
        command("predict", str(model), str(tmp_path / "docs.csv"), *out),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "money" in ((tmp_path / target).read_text(encoding="utf-8") if target else done.stdout)
