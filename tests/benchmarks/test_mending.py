"""Descriptions rewritten by advice: each replaces one of its label file, and nothing else changes."""

import importlib

import pytest

from labelspace import LabelSpace


@pytest.fixture
def mending(store):
    return importlib.import_module("mending")


@pytest.mark.parametrize("task", ["agnews", "rottentomatoes", "emotion", "banking77_cards", "banking77"])
def test_what_was_rewritten_is_in_the_label_file_and_all_else_stays(mending, task):
    space = LabelSpace.from_file(mending.ROOT / "examples" / mending.SOURCES[task].label_file)
    after = mending.mended(space, task)
    pairs = [
        (one, other)
        for before, now in zip(space.descriptions, after.descriptions, strict=True)
        for one, other in zip(before, now, strict=True)
    ]
    assert [(one, other) for one, other in pairs if one != other]
    assert len([1 for one, other in pairs if one != other]) == len(mending.changes(task)) <= 3
    assert (after.names, after.verbalizers) == (space.names, space.verbalizers)


def test_a_description_that_is_not_there_is_named(mending):
    space = LabelSpace.from_dict({"Business": ["other"], "Sports": ["texts"], "Sci/Tech": ["here"]})
    with pytest.raises(SystemExit, match="Business has no description"):
        mending.mended(space, "agnews")
