"""Label files: reading YAML and JSON, refusing invalid files, and writing."""

import json
from pathlib import Path

import pytest

from labelspace.errors import LabelFileError, OutputError
from labelspace.labels import Label, LabelSpace, lint

EXAMPLES = sorted((Path(__file__).parents[2] / "examples").rglob("*.yaml"))

NEWS = """\
name: news
template: "News about {label}."
labels:
  - name: sports
    phrase: sport and games
    descriptions:
      - Results of matches.
      - |
        A text
        of two lines.
  - name: world
    verbalizer: Far away.
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write text to a file of this name and read it as a label space."""
    monkeypatch.chdir(tmp_path)

    def write_and_read(file: str, text: str, /, **options) -> LabelSpace:
        Path(file).write_text(text, encoding="utf-8", newline="")
        return LabelSpace.from_file(file, **options)

    return write_and_read


def test_yaml_and_json_give_equal_spaces(read):
    expected = LabelSpace(
        [
            Label("sports", "sport and games", descriptions=["Results of matches.", "A text\nof two lines."]),
            Label("world", verbalizer="Far away."),
        ],
        name="news",
        template="News about {label}.",
    )
    assert read("labels.yaml", NEWS) == expected
    assert read("labels.YML", NEWS) == expected
    assert read("labels.json", json.dumps(expected.to_dict())) == expected
    assert read("indented.json", json.dumps(expected.to_dict(), indent="\t")) == expected


@pytest.mark.parametrize(
    "text", ["- a\n- b\n", "labels: [a, b]", "labels:\n  a:\n  b: []\n", "a: []\nb: []\n", "\ufefflabels: ['a', \"b\"]"]
)
def test_short_forms_and_a_byte_order_mark_are_read(read, text: str):
    assert read("labels.yaml", text) == LabelSpace.from_names(["a", "b"])


@pytest.mark.parametrize("text", ["labels:\n  a: x\n  b:\n", "a: x\nb:\n", '{"a": "x", "b": []}'])
def test_a_single_text_counts_as_a_list_of_one(read, text: str):
    expected = LabelSpace([Label("a", descriptions=["x"]), Label("b")])
    assert read("labels.json" if text[0] == "{" else "labels.yaml", text) == expected


def test_name_and_template_can_be_replaced(read):
    space = read("labels.yaml", NEWS, name="mine", template="On {label}.")
    assert (space.name, space.verbalizers[0]) == ("mine", "On sport and games.")


def test_an_alias_may_repeat_a_text(read):
    space = read("labels.yaml", "- name: a\n  descriptions: [&x Same text]\n- name: b\n  descriptions: [*x]\n")
    assert space.descriptions == (("Same text",), ("Same text",))


YAML_ERRORS = {
    "an empty file": ("", "a label file is a mapping with the key 'labels'. Got an empty document"),
    "only a text": ("hello", ":1: a label file is a mapping with the key 'labels'. Got the text 'hello'"),
    "no labels": ("name: x\n", ": there are no labels; a classifier needs at least two labels"),
    "labels without a value": ("name: x\nlabels:\n", ":2: there are no labels"),
    "one label": ("name: x\nlabels:\n  - a\n", ":2: a classifier needs at least two labels. Got only 'a'"),
    "a typo in a key": ("lables: [a, b]\n", ":1: unknown key 'lables'. Did you mean 'labels'?"),
    "a typo in a key of a label": (
        "labels:\n  - name: a\n    desciptions:\n      - x\n  - b\n",
        ":3: label 'a': unknown key 'desciptions'. Did you mean 'descriptions'?",
    ),
    "a label twice": (
        "labels:\n  - name: a\n  - name: b\n  -\n    phrase: x\n    name: a\n",
        ":6: label 'a': the name is used twice (first in line 2); rename or remove one.",
    ),
    "a key twice": (
        "labels:\n  - name: a\n    phrase: x\n    phrase: y\n  - b\n",
        ":4: the key 'phrase' is written twice (first in line 3); keep one.",
    ),
    "a label twice as a key": ("labels:\n  a: []\n  a: []\n", ":3: the key 'a' is written twice (first in line 2)"),
    "an empty description": (
        "labels:\n  - name: a\n    descriptions:\n      - x\n      - ''\n  - b\n",
        ":5: label 'a': description 2 is empty; write one or remove it.",
    ),
    "a description left blank": (
        "labels:\n  - name: a\n    descriptions:\n      -\n  - b\n",
        ":4: label 'a': description 1 is empty",
    ),
    "an empty description in the short form": (
        "labels:\n  a:\n    - x\n    - ' '\n  b:\n",
        ":4: label 'a': description 2 is empty",
    ),
    "an empty text in place of a list": ("labels:\n  b:\n  a: ''\n", ":3: label 'a': description 1 is empty"),
    "one bare description": (
        "labels:\n  - name: a\n    descriptions: text\n  - b\n",
        ":3: label 'a': descriptions must be a list. Got the text 'text'; make it a list of one.",
    ),
    "a name that is a truth value": (
        "labels:\n  - name: yes\n  - name: no\n",
        ':2: label 1: the name must be text. Got yes, which is read as a truth value; write it in quotes: "yes".',
    ),
    "a short name that is a truth value": (
        "labels: [a, no]\n",
        ":1: label 2: the name must be text. Got no, which is read as a truth value",
    ),
    "a key that is a truth value": ("labels:\n  a:\n  on:\n", ":3: the name must be text. Got on, which is read as a"),
    "a name that is a number": ("- 1.50\n- 2\n", ":1: label 1: the name must be text. Got 1.50, which is read as a n"),
    "a name that is a date": ("- a\n- 2024-01-01\n", ":2: label 2: the name must be text. Got 2024-01-01, which is"),
    "a phrase that is a truth value": (
        "- name: a\n  phrase: off\n- b\n",
        ":2: label 'a': the phrase must be text. Got off, which is read as a truth value",
    ),
    "a description that is a mapping": (
        "- name: a\n  descriptions:\n    - Ball: round\n- b\n",
        ":3: label 'a': description 1 must be text. Got a mapping",
    ),
    "a label without a name": ("- phrase: x\n- b\n", ":1: label 1: has no name; write 'name:'"),
    "a name that is null": ("- name: null\n- b\n", ":1: label 1: has no name"),
    "an unknown placeholder": ("template: '{lable}'\nlabels: [a, b]\n", ":1: template has the unknown placeholder {la"),
    "no placeholder": ("labels: [a, b]\ntemplate: it\n", ":2: template has no {label}: 'it'"),
    "a colon in a text": (
        "labels:\n  - name: a\n    phrase: x: y\n  - b\n",
        ":3: not valid YAML: mapping values are not allowed here; put a text that holds ': ' in quotes.",
    ),
    "a tab": ("labels:\n\t- a\n", ":2: not valid YAML: while scanning for the next token found character '\\t'"),
    "an open quote": (
        "labels:\n  - 'a\n",
        ":3: not valid YAML: while scanning a quoted scalar found unexpected end of stream; close",
    ),
    "two documents": ("- a\n---\n- b\n", ":2: not valid YAML: expected a single document"),
    "a forbidden character": ("- a\n- b\x07\n", ":2: YAML allows no character U+0007 here"),
    "a tag that runs code": ("- !!python/object/apply:os.system [ls]\n- b\n", ":1: the tag 'tag:yaml.org,2002:python"),
    "an unknown tag on a text": ("- !mine a\n- b\n", ":1: the tag '!mine' means nothing in a label file"),
    "an alias that grows": ("- &x [a]\n- [*x, *x]\n", ":1: this list or mapping is used again by an alias"),
    "a list as a key": ("? [a]\n: b\n", ":1: a key must be text. Got a list or a mapping"),
    "a merge key": ("<<: {a: []}\nlabels: [a, b]\n", ":1: a key must be text. Got <<, which is read as a merge key"),
    "an empty key": ("null: x\nlabels: [a, b]\n", ":1: a key must be text. Got null, which is read as nothing"),
    "endless nesting": ("[" * 1000, ": nested too deep"),
}


@pytest.mark.parametrize(("text", "message"), YAML_ERRORS.values(), ids=YAML_ERRORS)
def test_a_yaml_file_is_refused_for(read, text: str, message: str):
    with pytest.raises(LabelFileError) as caught:
        read("labels.yaml", text)
    assert str(caught.value).startswith("labels.yaml:")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


JSON_ERRORS = {
    "an empty file": (" \n", "a label file is a mapping with the key 'labels'. Got an empty document"),
    "a comma too many": ('{"labels": ["a", "b",\n]}', ": not valid JSON"),  # Python 3.13 names the line of the comma
    "a missing comma": ('{"name": "x"\n"labels": []}', ":2: not valid JSON: expecting ',' delimiter (column 1)"),
    "a number": (
        '["a",\n 5]',
        ':2: label 2: the name must be text. Got 5, which is read as a number; write it in quotes: "5".',
    ),
    "a truth value": ('["a",\n true]', ":2: label 2: the name must be text. Got true, which is read as a truth value"),
    "an empty description": (
        '{"labels": [\n\t{"name": "a",\n\t "descriptions": ["x",\n\t\t" "]}, "b"]}',
        ":4: label 'a': description 2 is empty",
    ),
    "a key twice": ('[{"name": "a",\n "name": "c"}, "b"]', ":2: the key 'name' is written twice (first in line 1)"),
    "a key twice in JSON that is no YAML": ('[{"name": "\x7f", "name": "c"}, "b"]', "the key 'name' is written twice"),
    "half a character": ('["a", "\\ud83d"]', "label 2: the name holds half a character"),
    "endless nesting": ("[" * 200_000, ": not usable JSON"),
    "an endless number": ("[" + "9" * 5000 + "]", ": not usable JSON"),
}


@pytest.mark.parametrize(("text", "message"), JSON_ERRORS.values(), ids=JSON_ERRORS)
def test_a_json_file_is_refused_for(read, text: str, message: str):
    with pytest.raises(LabelFileError) as caught:
        read("labels.json", text)
    assert str(caught.value).startswith("labels.json:")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_json_escapes_of_surrogate_pairs_are_read(read):
    assert read("labels.json", '["\\ud83d\\ude00", "b"]').names[0] == "\U0001f600"


def test_the_error_for_a_missing_file_suggests_an_existing_one(read):
    read("labels.yaml", NEWS)
    with pytest.raises(LabelFileError, match=r"^lables\.yaml: no such file\. Did you mean 'labels\.yaml'\?"):
        LabelSpace.from_file("lables.yaml")
    with pytest.raises(LabelFileError, match=r"no such file\. 'labelspace init' writes a new one"):
        LabelSpace.from_file("nowhere/x.yaml")


@pytest.mark.parametrize(("name", "came"), [("labels.txt", "Got '.txt'"), ("labels", "Got no extension")])
def test_another_extension_is_refused(read, name: str, came: str):
    with pytest.raises(LabelFileError, match=f"ends in .yaml, .yml, .json, .csv. {came}"):
        read(name, NEWS)
    with pytest.raises(LabelFileError, match=f"is written as .yaml, .yml, .json. {came}"):
        LabelSpace.from_names(["a", "b"]).to_file(name)


def test_a_folder_is_refused(tmp_path):
    (tmp_path / "labels.yaml").mkdir()
    with pytest.raises(LabelFileError, match="cannot be read"):
        LabelSpace.from_file(tmp_path / "labels.yaml")


@pytest.mark.parametrize("extension", ["yaml", "json", "csv"])
def test_a_file_that_is_not_utf8_is_refused_with_its_line(tmp_path, extension: str):
    file = tmp_path / f"labels.{extension}"
    file.write_bytes("label\nsports\ncafé\n".encode("latin-1"))
    with pytest.raises(LabelFileError, match=r":3: not UTF-8\. Got the byte 0xe9; save the file"):
        LabelSpace.from_file(file)


# ---- writing


def test_a_written_yaml_file_reads_well(tmp_path):
    space = LabelSpace([Label("sports", descriptions=["Results.", "News."]), Label("no", "nothing")], name="news")
    space.to_file(tmp_path / "labels.yaml")
    assert (tmp_path / "labels.yaml").read_text(encoding="utf-8") == (
        "name: news\n"
        "template: This text is about {label}.\n"
        "labels:\n"
        "  - name: sports\n"
        "    descriptions:\n"
        "      - Results.\n"
        "      - News.\n"
        "  - name: 'no'\n"
        "    phrase: nothing\n"
    )


def test_a_failed_write_leaves_only_the_old_file(tmp_path, monkeypatch):
    file = tmp_path / "labels.yaml"
    old = LabelSpace.from_names(["a", "b"])
    old.to_file(file)

    def no_space_left(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labelspace.labels.files.os.fsync", no_space_left)
    with pytest.raises(OutputError, match=r"labels\.yaml cannot be written \(No space left on device\)"):
        LabelSpace.from_names(["c", "d"]).to_file(file)
    assert LabelSpace.from_file(file) == old
    assert [each.name for each in tmp_path.iterdir()] == ["labels.yaml"]


def test_writing_to_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        LabelSpace.from_names(["a", "b"]).to_file(tmp_path / "nowhere" / "labels.yaml")


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.stem)
def test_every_example_parses_and_has_no_error_findings(file: Path):
    assert not [finding for finding in lint(LabelSpace.from_file(file)) if finding.severity == "error"]
