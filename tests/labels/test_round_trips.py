"""Round trips of any label space: plain data, files and orders."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from labelspace.labels import Label, LabelSpace

AWKWARD = [
    "no",
    "1e3",
    "0x1F",
    "null",
    "~",
    "=",
    "<<",
    "- a list",
    "key: value",
    "# no comment",
    'it\'s "quoted" \\ and {braced}',
    "two\nlines\n\n  and an indented one",
    "\ttab inside\t.",
    "line\u2028separator \x85 next",
    "byte order \ufeff mark",
    "smile \U0001f600 中文 é",
    "word " * 60 + "end",
    "x" * 300,
    "\x00\x07\x7f and \uffff",
    "a  b   c",
    "\u00a0x",
]


texts = st.text(min_size=1, max_size=30).filter(lambda text: text.strip())
names = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12).filter(str.strip)
labels = st.builds(
    Label,
    name=names,
    phrase=st.none() | texts,
    verbalizer=st.none() | texts,
    descriptions=st.lists(texts, max_size=4),
)
spaces = st.builds(
    LabelSpace,
    st.lists(labels, min_size=2, max_size=6, unique_by=lambda label: label.name),
    name=names,
    template=st.sampled_from(["{label}", "About {label}.", "{{{label}}} or {label}: \u2028 'x'"]),
)


@given(spaces)
@settings(max_examples=30)
def test_plain_data_gives_back_an_equal_space(space: LabelSpace):
    assert LabelSpace.from_dict(space.to_dict()) == space


@given(spaces, st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_reordering_changes_no_label(space: LabelSpace, random):
    order = list(space.names)
    random.shuffle(order)
    other = space.reorder(order)
    assert other.names == tuple(order)
    assert dict(zip(other.names, other.verbalizers, strict=True)) == dict(
        zip(space.names, space.verbalizers, strict=True)
    )
    assert other.reorder(space.names) == space


@pytest.mark.parametrize("extension", ["yaml", "yml", "json"])
def test_a_file_preserves_awkward_texts(tmp_path, extension: str):
    space = LabelSpace([Label("no", descriptions=AWKWARD), *(Label(f"n{i}", text) for i, text in enumerate(AWKWARD))])
    space.to_file(tmp_path / f"labels.{extension}")
    assert LabelSpace.from_file(tmp_path / f"labels.{extension}") == space


@given(space=spaces)
@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_file_gives_back_an_equal_space(tmp_path, space: LabelSpace):
    for extension in ("yaml", "json"):
        space.to_file(tmp_path / f"labels.{extension}")
        assert LabelSpace.from_file(tmp_path / f"labels.{extension}") == space
