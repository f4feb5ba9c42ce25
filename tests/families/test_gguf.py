"""GGUF files are found by path or folder."""

import pytest

from labelspace.errors import EncoderNotFoundError
from labelspace.families.gguf import find_gguf, is_gguf


def test_a_name_alone_can_say_gguf(tmp_path):
    assert is_gguf("a/b.gguf")
    assert not is_gguf("gemma-3-270m")
    assert not is_gguf(tmp_path)
    assert find_gguf("gemma-3-270m", None, None, True) is None


def test_a_file_is_found_by_its_path_or_by_its_folder_and_name(tmp_path):
    (tmp_path / "a.gguf").touch()
    for name, file in ((str(tmp_path / "a.gguf"), None), (str(tmp_path), "a.gguf")):
        assert find_gguf(name, file, None, True) == tmp_path / "a.gguf"


def test_a_file_that_is_not_there_is_an_error_of_one_line(tmp_path):
    for name, file in ((str(tmp_path / "a.gguf"), None), (str(tmp_path), "a.gguf")):
        with pytest.raises(EncoderNotFoundError, match=r"no GGUF file '.*a\.gguf'; pass the path"):
            find_gguf(name, file, None, True)
