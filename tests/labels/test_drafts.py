"""Drafts in label files: what is refused, and where they stand in the user's own text."""

import re

import pytest

from labelspace import LabelSpace
from labelspace.labels.drafts import Draft, marked_file, problem_of, with_drafts

MARK = "draft by llm:m, prompt 1, seed 0"
MONEY = Draft("money", 'Banks say: "loans", and #more.')
SPORTS = [Draft("sports", "A team wins late."), Draft("sports", "Goals, not votes.", against="money")]

OWN = """\
# my labels
labels:   # two of them
  - name: "sports"   # first
    descriptions:
      # the best one
      - A match is won
        by a team.   # plain, two lines
      # - "Another side of it"

  - name: money
    phrase: cash
"""

FORMS = {
    "own": OWN,
    "no indent": "labels:\n- name: sports\n  descriptions:\n  - a\n- descriptions:\n  - b\n  name: money",
    "room left by init": "labels:\n- name: sports\n  descriptions:\n    # - x\n- name: money\n  descriptions:\n",
    "mapping": "labels:\n  sports:\n    - 'it''s a'\n  money:\n    phrase: cash\n    descriptions:\n      - b\n",
    "bare mapping": "sports:\n- a\nmoney:\n- |\n  two\n  lines\n\n",
    "bare mapping to mappings": "sports:\n  descriptions:\n    - a\nmoney:\n  phrase: cash\n",
    "a list of lines last": "labels:\n- name: sports\n  not:\n  - a\n\n- name: money\n  not:\n    - b\n",
    "a list below a mapping": "labels:\n  sports:\n    - x\n  money:\n    not:\n      - b\n  other:\n    - c\n",
    "bare names": "# all\nlabels:\n  - sports   # games\n  - 'money'\n  - name: other\n    descriptions: [x]\n",
    "a bare list of names": "- sports\n# cash\n- money",
    "single texts": "sports: a  # games\nmoney: 'b:\n  c'\n",
    "single texts below labels": "labels:\n  sports: a\n  # cash\n  money:\n    descriptions:\n      - b\n",
    "block at the end": "labels:\n- name: sports\n- name: money\n  descriptions:\n    - >-\n      folded\n      text",
}
ANEW = {
    "names": "labels: [sports, money]\n",
    "flow": "labels:\n  - {name: sports}\n  - name: money\n    descriptions: [a, b]\n",
    "a text in lines": "sports: a\nmoney: |\n  two\n  lines\n",
    "not, in brackets": "labels: [{name: sports, not: [a, b]}, {name: money, not: [c]}]\n",
    "empty list": "labels:\n  - name: sports\n    descriptions: []\n  - name: money\n",
}


def written(tmp_path, text, drafts, name="labels.yaml"):
    """Return the space, the text with drafts, and whether the user's text was kept; check what it reads as."""
    file = tmp_path / name
    file.write_text(text, encoding="utf-8")
    space = LabelSpace.from_file(file)
    result, own = marked_file(file, space, drafts, MARK)
    (tmp_path / "out.yaml").write_text(result, encoding="utf-8")
    assert LabelSpace.from_file(tmp_path / "out.yaml") == with_drafts(space, drafts)
    return result, own


def test_the_users_comments_order_and_quotes_stay_and_each_draft_has_a_mark(tmp_path):
    result, own = written(tmp_path, OWN, [*SPORTS, MONEY])
    assert own
    added = [
        (8, f"      # {MARK}\n"),
        (8, '      - "A team wins late."\n'),
        (8, f"      # {MARK}, against money\n"),
        (8, '      - "Goals, not votes."\n'),
    ]
    lines = OWN.splitlines(keepends=True)
    lines[7:7] = [line for _, line in added]
    end = ["    descriptions:\n", f"      # {MARK}\n", '      - "Banks say: \\"loans\\", and #more."\n']
    assert result == "".join(lines + end)


def test_line_ends_of_windows_stay(tmp_path):
    result, own = written(tmp_path, OWN.replace("\n", "\r\n"), [*SPORTS, MONEY])
    assert own
    assert result.count("\n") == result.count("\r\n") > OWN.count("\n")


@pytest.mark.parametrize("form", FORMS)
def test_drafts_stand_in_every_form_that_has_lines(tmp_path, form):
    result, own = written(tmp_path, FORMS[form], [*SPORTS, MONEY])
    assert own
    assert result.count(f"# {MARK}") == 3
    assert all(comment in result for comment in re.findall("#.*", FORMS[form]))


@pytest.mark.parametrize("form", ANEW)
def test_a_file_without_room_for_lines_is_written_anew(tmp_path, form):
    result, own = written(tmp_path, ANEW[form], [*SPORTS, MONEY])
    assert not own
    assert result.count(f"# {MARK}") == 3


def test_a_csv_file_becomes_yaml(tmp_path):
    result, own = written(tmp_path, "label,description\nsports,a\nmoney,b\n", [MONEY], "labels.csv")
    assert not own
    assert f"# {MARK}" in result


def test_without_drafts_the_text_stays_as_it_is(tmp_path):
    assert written(tmp_path, OWN, []) == (OWN, True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Too few words", "fewer than 4 words"),
        ("word " * 100, "more than 400 characters"),
        ("A  MATCH is won.", "in the label file already"),
        ("So: this text is about 'Sports'!", "or nearly"),
        ("This text is about sports.", "in the label file already"),
        ("A Match is LOST.", "in the label file already"),
        ("A recipe of a cake.", "in the label file already"),
        ("They ask for MONEY in the end.", "names the label 'money'"),
        ("The sports page of a paper.", None),
    ],
)
def test_a_draft_that_cannot_be_used_says_why(text, problem):
    sports = {"name": "sports", "not": ["A match is lost."]}
    money = {"name": "money", "descriptions": ["A match is won."]}
    space = LabelSpace.from_dict({"labels": [sports, money], "outside": ["A recipe of a cake."]})
    found = problem_of(space, Draft("sports", text))
    assert found is problem is None or problem in found
