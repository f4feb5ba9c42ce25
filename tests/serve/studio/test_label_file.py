"""The label file of the studio: what is not edited stays to the byte, and nobody's edit is lost."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelspace import LabelSpace
from labelspace.errors import InputError, LabelFileError
from labelspace.serve.studio.label_file import LabelFile
from serve.studio.conftest import LABELS


def changed_lines(before: str, after: str) -> tuple[list[str], list[str]]:
    """Return the lines that are only in the text before, and only in the one after, stripped."""
    old, new = before.splitlines(), after.splitlines()
    return [line.strip() for line in old if line not in new], [line.strip() for line in new if line not in old]


EDITS = [
    (
        {"do": "description", "label": 0, "place": 0, "text": 'A "draw", too'},
        ['- "A team wins or loses a match and the players celebrate."'],
        ['- "A \\"draw\\", too"'],
    ),
    (
        {"do": "description", "label": 0, "place": 1, "text": "A plain one."},
        ["- An athlete breaks a record at the games."],
        ["- A plain one."],
    ),
    (
        {"do": "description", "label": 0, "place": 1, "text": "A plain one: no."},
        ["- An athlete breaks a record at the games."],
        ["- 'A plain one: no.'"],
    ),
    (
        {"do": "description", "label": 1, "place": 1, "text": "Prices fall."},
        ["- >", "The market falls after", "a company reports a loss."],
        ['- "Prices fall."'],
    ),
    ({"do": "description", "label": 0, "place": 2, "text": "A third."}, [], ['- "A third."']),
    ({"do": "description", "label": 1, "place": 2, "text": "A third."}, [], ['- "A third."']),
    (
        {"do": "remove description", "label": 0, "place": 1},
        ["# drafted by hand", "- An athlete breaks a record at the games."],
        [],
    ),
    (
        {"do": "remove description", "label": 0, "place": 0},
        ['- "A team wins or loses a match and the players celebrate."'],
        [],
    ),
    (
        {"do": "name", "label": 0, "text": "games"},
        ["- name: 'sports'   # a plain one"],
        ["- name: 'games'   # a plain one"],
    ),
    ({"do": "phrase", "label": 0, "text": "sport"}, [], ['phrase: "sport"']),
    ({"do": "phrase", "label": 1, "text": "money"}, ['phrase: "money and markets"'], ['phrase: "money"']),
    ({"do": "phrase", "label": 1, "text": ""}, ['phrase: "money and markets"'], []),
    ({"do": "verbalizer", "label": 1, "text": "It is money."}, [], ['verbalizer: "It is money."']),
    ({"do": "add label", "text": "world"}, [], ['- name: "world"']),
    (
        {"do": "template", "text": "About {label}."},
        ['template: "This news is about {label}."'],
        ['template: "About {label}."'],
    ),
    (
        {"do": "remove label", "label": 1},
        [line.strip() for line in LABELS.splitlines()[11:-1] if line.strip() != "descriptions:"],
        [],
    ),
]


@pytest.mark.parametrize(("edit", "gone", "new"), EDITS, ids=lambda value: str(value)[:60])
def test_an_edit_changes_its_own_lines_and_the_comment_above_them_alone(label_file, edit, gone, new):
    file = LabelFile(label_file)
    file.edit(edit)
    assert changed_lines(LABELS, label_file.read_text()) == (gone, new)
    assert not file.rewritten


def test_a_file_that_does_not_exist_is_started_with_the_first_label(tmp_path):
    path = tmp_path / "new.yaml"
    file = LabelFile(path)
    assert file.space is None
    assert not path.exists()
    file.edit({"do": "add label", "text": "yes: or no"})
    file.edit({"do": "add label", "text": "النقود"})
    file.edit({"do": "description", "label": 1, "place": 0, "text": "البنك يرفع سعر القرض 💶"})
    space = LabelSpace.from_file(path)
    assert space == file.space
    assert space.names == ("yes: or no", "النقود")
    assert not file.rewritten


def test_windows_line_ends_stay(tmp_path):
    path = tmp_path / "labels.yaml"
    path.write_bytes(LABELS.replace("\n", "\r\n").encode())
    file = LabelFile(path)
    file.edit({"do": "description", "label": 0, "place": 2, "text": "A third."})
    raw = path.read_bytes()
    assert raw.count(b"\n") == raw.count(b"\r\n") == LABELS.count("\n") + 1


FORMS = [
    "labels: [sports, money]\n",
    "- sports\n- money\n",
    "sports:\n  - A team wins.\nmoney:\n  # banks\n  - A bank closes.\n",
    "labels:\n  sports: A team wins.\n  money:\n",
    "labels:\n- name: sports\n  descriptions: [A team wins., A team loses.]\n- {name: money, phrase: cash}",
    "labels:\n  - sports\n  - name: money\n    descriptions:\n",
]
TEXTS = st.text(st.characters(blacklist_categories=("Cc", "Cs")), min_size=1, max_size=12).filter(str.strip)
WISHES = st.lists(
    st.tuples(
        st.sampled_from(
            ["name", "phrase", "verbalizer", "description", "remove description", "add label", "remove label"]
        ),
        st.integers(0, 3),
        st.integers(0, 3),
        TEXTS,
    ),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("text", [LABELS, *FORMS])
@settings(max_examples=15)
@given(wishes=WISHES)
def test_any_edits_of_any_form_of_file_are_saved_as_they_were_meant_and_can_be_taken_back(
    text, wishes, tmp_path_factory
):
    path = tmp_path_factory.mktemp("labels") / "labels.yaml"
    path.write_text(text, encoding="utf-8")
    file = LabelFile(path)
    texts = [file.text]
    for do, label, place, words in wishes:
        try:
            file.edit({"do": do, "label": label, "place": place, "text": words})
        except (InputError, LabelFileError):
            continue
        if file.text != texts[-1]:
            texts.append(file.text)
        assert path.read_text(encoding="utf-8") == file.text
        assert LabelFile(path).draft == file.draft
    while file.can_undo:
        assert file.text == texts.pop()
        file.undo()
    assert path.read_text(encoding="utf-8") == text


WITH_COMMENTS = [
    ("- a  # one\n# two\n- b\n", {"do": "description", "label": 0, "place": 0, "text": "A text."}),
    ("# one\nlabels: [a, b]  # two\n", {"do": "add label", "text": "c, d"}),
    ("# one\nlabels: [a, b, c]  # two\n", {"do": "remove label", "label": 2}),
    ("# one\nlabels: [a, b, c]  # two\n", {"do": "remove label", "label": 0}),
    ("# one\nlabels: [a, b]  # two\n", {"do": "name", "label": 0, "text": "a, c"}),
    ("# one\nlabels: [a, b]  # two\n", {"do": "phrase", "label": 1, "text": "the b"}),
    ("# one\nlabels: [a, b]  # two\n", {"do": "description", "label": 0, "place": 0, "text": "A text."}),
    *(
        (f"- name: a\n  descriptions: {listed}  # one\n- b  # two\n", edit)
        for listed in ('["one", "two"]', "[one, two]")
        for edit in (
            {"do": "description", "label": 0, "place": 2, "text": "A third."},
            {"do": "description", "label": 0, "place": 1, "text": "A second, too."},
            {"do": "remove description", "label": 0, "place": 0},
            {"do": "remove description", "label": 0, "place": 1},
        )
    ),
]


@pytest.mark.parametrize(("text", "edit"), WITH_COMMENTS, ids=lambda value: str(value)[:40])
def test_bare_names_and_lists_in_brackets_have_room_for_an_edit(tmp_path, text, edit):
    path = tmp_path / "labels.yaml"
    path.write_text(text)
    file = LabelFile(path)
    before = file.draft
    file.edit(edit)
    assert file.draft != before
    assert "# one" in path.read_text()
    assert "# two" in path.read_text()
    assert not file.rewritten
    assert [other.name for other in tmp_path.iterdir()] == ["labels.yaml"]


def test_a_form_without_room_for_an_edit_is_written_anew_beside_a_copy_with_the_comments(tmp_path):
    path = tmp_path / "labels.yaml"
    mine = "# mine\nlabels: {sports: A team wins., money: A bank closes.}\n"
    path.write_text(mine)
    path.with_name("labels.yaml.bak").write_text("the user's own")
    file = LabelFile(path)
    file.edit({"do": "add label", "text": "world"})
    assert file.rewritten == "labels.yaml.bak2"
    assert path.with_name(file.rewritten).read_text() == mine
    assert path.with_name("labels.yaml.bak").read_text() == "the user's own"
    assert LabelSpace.from_file(path).names == ("sports", "money", "world")
    file.edit({"do": "add label", "text": "art"})
    assert file.rewritten  # the file still lacks them
    file.undo()
    file.undo()
    assert path.read_text() == mine
    assert not file.rewritten
    file.redo()
    assert file.rewritten == "labels.yaml.bak2"
    path.write_text(THEIRS)
    file.resolve("theirs")
    assert not file.rewritten


def test_typing_in_one_field_is_one_step_back(label_file):
    file = LabelFile(label_file)
    for text in ("A", "A g", "A goal."):
        file.edit({"do": "description", "label": 0, "place": 0, "text": text}, burst="field 1")
    file.edit({"do": "description", "label": 0, "place": 0, "text": "Another visit."}, burst="field 2")
    file.undo()
    assert file.draft.labels[0].descriptions[0] == "A goal."
    file.undo()
    assert label_file.read_text() == LABELS
    file.redo()
    file.redo()
    assert file.draft.labels[0].descriptions[0] == "Another visit."
    assert not file.can_redo


THEIRS = LABELS.replace("money and markets", "finance")


def test_an_edit_of_another_program_is_not_overwritten(label_file):
    file = LabelFile(label_file)
    label_file.write_text(THEIRS)
    file.edit({"do": "phrase", "label": 0, "text": "sport"})
    assert label_file.read_text() == THEIRS
    conflict = file.conflict()
    assert conflict is not None
    assert conflict.theirs == THEIRS


def test_keeping_mine_writes_it_and_undo_brings_theirs(label_file):
    file = LabelFile(label_file)
    label_file.write_text(THEIRS)
    file.edit({"do": "phrase", "label": 0, "text": "sport"})
    file.resolve("mine")
    assert file.conflict() is None
    assert LabelSpace.from_file(label_file)["sports"].phrase == "sport"
    file.undo()
    assert label_file.read_text() == THEIRS


def test_taking_theirs_shows_it_and_undo_brings_mine(label_file):
    file = LabelFile(label_file)
    label_file.write_text(THEIRS)
    file.edit({"do": "phrase", "label": 0, "text": "sport"})
    file.resolve("theirs")
    assert label_file.read_text() == file.text == THEIRS
    file.undo()
    assert LabelSpace.from_file(label_file)["sports"].phrase == "sport"


def test_a_file_that_is_not_utf8_is_not_taken_for_an_empty_one(label_file):
    file = LabelFile(label_file)
    text = file.text
    theirs = "labels: [für, wider]".encode("cp1252")
    label_file.write_bytes(theirs)
    with pytest.raises(LabelFileError, match="UTF-8"):
        file.resolve("theirs")
    assert label_file.read_bytes() == theirs
    assert file.text == text


def test_a_broken_file_on_disk_is_kept_beside_if_mine_replaces_it(label_file):
    file = LabelFile(label_file)
    label_file.write_bytes(b"labels: [\xff")
    conflict = file.conflict()
    assert conflict is not None
    assert "not UTF-8" in conflict.problem
    file.resolve("mine")
    assert label_file.read_text() == LABELS
    assert label_file.with_name("labels.yaml.other").read_bytes() == b"labels: [\xff"
    label_file.write_bytes(b"labels: [\xfe")
    file.resolve("mine")
    assert label_file.with_name("labels.yaml.other").read_bytes() == b"labels: [\xff"
    assert label_file.with_name("labels.yaml.other2").read_bytes() == b"labels: [\xfe"


def test_a_refused_edit_changes_nothing(label_file):
    file = LabelFile(label_file)
    with pytest.raises(LabelFileError, match="another label is called 'money'"):
        file.edit({"do": "name", "label": 0, "text": "money"})
    with pytest.raises(InputError, match="there is no label 7"):
        file.edit({"do": "name", "label": 7, "text": "x"})
    with pytest.raises(InputError, match="knows no edit 'eat'"):
        file.edit({"do": "eat"})
    assert label_file.read_text() == LABELS
    assert not file.can_undo


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("labels.json", "{}", "edits YAML label files in place"),
        ("labels.yaml", "several: true\nlabels: [a, b]\n", "several is true"),
        ("labels.yaml", "labels: [a, a]\n", "the name is used twice"),
        ("labels.yaml", "label: [a, b]\n", "unknown key 'label'"),
    ],
)
def test_a_file_that_cannot_be_edited_here_is_refused(tmp_path, name, text, said):
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(LabelFileError, match=said):
        LabelFile(path)
