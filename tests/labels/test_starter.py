"""The label file that `labelspace init` writes."""

import pytest

from labelspace.errors import ConfigError, LabelFileError
from labelspace.labels import LabelSpace, starter_file
from labelspace.labels.files import yaml_scalar


@pytest.mark.parametrize("names", [["sports", "world"], ["yes", "no"], ['"', "a: b", "# c", "é中", "\\n", "x" * 300]])
def test_a_starter_file_equals_a_space_of_the_names(tmp_path, names: list[str]):
    file = tmp_path / "labels.yaml"
    file.write_text(starter_file(names, name="on: off", template="'{label}'?"), encoding="utf-8")
    assert LabelSpace.from_file(file) == LabelSpace.from_names(names, name="on: off", template="'{label}'?")


def test_a_starter_file_has_placeholders_for_descriptions(tmp_path):
    text = starter_file(["sports", "world"], descriptions_per_label=3)
    assert text.count('      # - "') == 6
    file = tmp_path / "labels.yaml"
    file.write_text(text.replace("# - ", "- ").replace("# phrase:", "phrase:"), encoding="utf-8")
    space = LabelSpace.from_file(file)
    assert [len(texts) for texts in space.descriptions] == [3, 3]
    assert space.labels[0].phrase is not None


def test_a_starter_file_refuses_an_invalid_label_space():
    with pytest.raises(LabelFileError, match="at least two labels"):
        starter_file(["sports"])
    with pytest.raises(LabelFileError, match="unknown placeholder"):
        starter_file(["sports", "world"], template="{x}")
    with pytest.raises(ConfigError, match="descriptions_per_label"):
        starter_file(["sports", "world"], descriptions_per_label=0)


def test_a_yaml_scalar_is_quoted_on_one_line():
    assert yaml_scalar("a\nb " * 99).count("\n") == 0
