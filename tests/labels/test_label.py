"""A label: its contents and its refusals."""

import dataclasses

import pytest

from labelspace.errors import LabelFileError
from labelspace.labels import Label
from labelspace.labels.label import cut


def test_a_label_strips_its_texts_and_stores_a_tuple():
    label = Label("  sports ", phrase=" games ", descriptions=[" Results.\n", "News."])
    assert label == Label(name="sports", phrase="games", descriptions=("Results.", "News."))
    assert label.descriptions == ("Results.", "News.")


def test_a_label_takes_any_iterable_of_descriptions():
    assert Label("a", descriptions=(text for text in ["x", "y"])).descriptions == ("x", "y")


def test_a_label_is_frozen_and_hashable():
    label = Label("sports")
    with pytest.raises(dataclasses.FrozenInstanceError):
        label.name = "world"  # pyright: ignore[reportAttributeAccessIssue]
    assert len({label, Label("sports"), Label("world")}) == 2


@pytest.mark.parametrize(
    ("label", "verbalizer"),
    [
        (Label("sports"), "About sports."),
        (Label("sports", phrase="games"), "About games."),
        (Label("sports", phrase="{games}"), "About {games}."),
        (Label("sports", phrase="games", verbalizer="Who won?"), "Who won?"),
    ],
)
def test_the_verbalizer_is_the_labels_own_or_the_filled_template(label: Label, verbalizer: str):
    assert label.verbalize("About {label}.") == verbalizer


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": " "}, "label: the name is empty; write one or remove it."),
        ({"name": None}, "label: the name is empty"),
        ({"name": 5}, 'label: the name must be text. Got 5, a number; write it in quotes: "5".'),
        ({"name": True}, "Got True, a truth value"),
        ({"name": "two\nlines"}, "the name must be one line"),
        ({"name": "a", "phrase": ""}, "label 'a': the phrase is empty"),
        ({"name": "a", "verbalizer": 3.5}, "label 'a': the verbalizer must be text. Got 3.5, a number"),
        ({"name": "a", "descriptions": "text"}, "label 'a': descriptions must be a list. Got the text 'text'"),
        ({"name": "a", "descriptions": None}, "label 'a': descriptions must be a list. Got nothing"),
        ({"name": "a", "descriptions": {"x": "y"}}, "label 'a': descriptions must be a list. Got a mapping"),
        ({"name": "a", "descriptions": ["x", ""]}, "label 'a': description 2 is empty"),
        ({"name": "a", "descriptions": ["x", ["y"]]}, "label 'a': description 2 must be text. Got a list"),
        ({"name": "a", "descriptions": [object]}, "label 'a': description 1 must be text. Got <class 'object'> (type)"),
        ({"name": "a", "descriptions": ["\ud83d"]}, "label 'a': description 1 holds half a character"),
    ],
)
def test_a_label_refuses_values_that_are_not_text(arguments: dict, message: str):
    with pytest.raises(LabelFileError) as caught:
        Label(**arguments)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_long_texts_are_cut_in_messages():
    assert len(cut("word " * 50)) <= 60
    assert cut("short") == "short"
