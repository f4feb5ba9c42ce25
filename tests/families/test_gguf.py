"""GGUF files are found by path, folder or short name; the packaged model is assembled once and atomically."""

from pathlib import Path

import pytest

from labelspace.errors import EncoderError, EncoderNotFoundError
from labelspace.families import gguf
from labelspace.families.causal import CausalModel
from labelspace.families.gguf import find_gguf, is_gguf, packaged_gemma


def test_a_name_alone_can_say_gguf(tmp_path, monkeypatch):
    assert is_gguf("a/b.gguf")
    assert is_gguf("gemma-3-270m")
    assert not is_gguf(tmp_path)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "gemma-3-270m").mkdir()
    assert not is_gguf("gemma-3-270m")  # a local folder takes precedence
    assert find_gguf("gemma-3-270m", None, None, True) is None


def test_a_file_that_is_not_there_is_an_error_of_one_line(tmp_path):
    for name, file in ((str(tmp_path / "a.gguf"), None), (str(tmp_path), "a.gguf")):
        with pytest.raises(EncoderNotFoundError, match=r"no GGUF file '.*a\.gguf'; pass the path"):
            find_gguf(name, file, None, True)


class Packages:
    """A stand-in for the packages of gemma-3-270m, which take 250 MB."""

    MODEL_NAME = "gemma.gguf"
    EXPECTED_SHA256 = "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ace2efcde9"

    def __init__(self, content: bytes = b"hello world", error: Exception | None = None) -> None:
        self.content, self.error, self.calls = content, error, 0

    def assemble(self, target: Path) -> Path:
        self.calls += 1
        target.write_bytes(self.content)
        if self.error is not None:
            raise self.error
        return target


@pytest.fixture
def packages(monkeypatch, tmp_path):
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))

    def install(packages: Packages) -> Packages:
        monkeypatch.setattr(gguf, "import_optional", lambda *args, **kwargs: packages)
        return packages

    return install


def test_the_packaged_model_is_put_together_once(packages, tmp_path):
    installed = packages(Packages())
    file = packaged_gemma()
    assert file == tmp_path / "cache" / "language-models" / "gemma.gguf"
    assert packaged_gemma().read_bytes() == b"hello world"
    assert installed.calls == 1
    assert [path.name for path in file.parent.iterdir()] == ["gemma.gguf"]


@pytest.mark.parametrize(
    "error", [ValueError("sha256 did not match"), FileNotFoundError("chunk")], ids=["hash", "part"]
)
def test_packages_that_are_not_whole_leave_nothing_behind(packages, tmp_path, error):
    packages(Packages(error=error))
    with pytest.raises(EncoderError, match=r"are not whole .* install them again: pip install"):
        packaged_gemma()
    assert list((tmp_path / "cache" / "language-models").iterdir()) == []


def test_a_file_that_was_changed_since_is_refused(packages):
    packages(Packages(content=b"evil"))
    with pytest.raises(EncoderError, match="is not the file that labelspace knows"):
        packaged_gemma()


def test_the_packaged_model_has_a_short_name(packages):
    pytest.importorskip("gguf", reason="needs the package gguf")
    packages(Packages())
    with pytest.raises(EncoderError, match="cannot be opened as a language model"):
        CausalModel.load("gemma-3-270m")  # found, but the stand-in is no model
