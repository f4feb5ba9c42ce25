"""A label space: its contents, its constructors, and the spaces derived from it."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest

from labelspace.errors import ConfigError, LabelFileError
from labelspace.labels import Label, LabelSpace

NEWS = LabelSpace(
    [
        Label("sports", "sport and games", descriptions=["Results of matches.", "News of teams.", "A race was won."]),
        Label("world", descriptions=["News of nations."]),
        Label("business", verbalizer="Money talks.", descriptions=["Prices.", "Profits.", "Mergers.", "Markets."]),
    ],
    name="news",
    template="News about {label}.",
)


def test_a_space_lists_names_verbalizers_and_descriptions():
    assert NEWS.name == "news"
    assert NEWS.names == ("sports", "world", "business")
    assert NEWS.verbalizers == ("News about sport and games.", "News about world.", "Money talks.")
    assert NEWS.descriptions[1] == ("News of nations.",)
    assert repr(NEWS) == "LabelSpace('news', 3 labels, 8 descriptions)"


def test_a_space_is_a_collection_of_labels_found_by_name():
    assert len(NEWS) == 3
    assert [label.name for label in NEWS] == list(NEWS.names)
    assert NEWS["world"] is NEWS.labels[1]
    assert NEWS.index("business") == 2
    assert "world" in NEWS
    assert "World" not in NEWS
    assert NEWS["world"] in NEWS
    assert 3 not in NEWS


def test_equal_spaces_have_equal_hashes():
    twin = LabelSpace.from_dict(NEWS.to_dict())
    assert twin == NEWS
    assert hash(twin) == hash(NEWS)
    assert twin != LabelSpace(NEWS.labels, name="other", template=NEWS.template)


def test_a_space_survives_copy_and_pickle():
    assert NEWS.index("world") == 1
    assert copy.deepcopy(NEWS) == NEWS
    assert pickle.loads(pickle.dumps(NEWS)) == NEWS


def test_the_error_for_an_unknown_name_suggests_the_closest_one():
    with pytest.raises(LabelFileError, match=r"'news' has no label .* Got the text 'sprots'\. Did you mean 'sports'\?"):
        NEWS["sprots"]
    with pytest.raises(LabelFileError, match=r"'news' has no label of this name\. Got 0, a number"):
        NEWS[0]  # pyright: ignore[reportArgumentType]


def test_a_template_may_contain_escaped_braces():
    space = LabelSpace.from_names(["a", "b"], template='{{"topic": "{label}"}}')
    assert space.verbalizers[0] == '{"topic": "a"}'


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: LabelSpace([]), "a classifier needs at least two labels. Got none"),
        (lambda: LabelSpace([Label("a")]), "a classifier needs at least two labels. Got only 'a'"),
        (lambda: LabelSpace([Label("a"), Label(" a ")]), "label 'a': the name is used twice"),
        (lambda: LabelSpace(["a", "b"]), "labels must be Label objects. Got the text 'a'; LabelSpace.from_names"),
        (lambda: LabelSpace.from_names("ab"), "names must be a list of names. Got the text 'ab'"),
        (lambda: LabelSpace.from_names(["a", "b"], name=""), "name is empty"),
        (lambda: LabelSpace.from_names(["a", "b"], template=""), "template is empty"),
        (lambda: LabelSpace.from_names(["a", "b"], template="About it."), "template has no {label}: 'About it.'"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{label} {"), "an unbalanced brace"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{lable}"), "unknown placeholder {lable}. Did you mean"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{}"), "unknown placeholder {}. Write {label}"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{label!r}"), "unknown placeholder {label!r}"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{label:>9}"), "unknown placeholder {label:>9}"),
        (lambda: LabelSpace.from_names(["a", "b"], template="{label.name}"), "unknown placeholder {label.name}"),
    ],
)
def test_an_invalid_space_is_refused(make, message: str):
    with pytest.raises(LabelFileError) as caught:
        make()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "a label file is a mapping with the key 'labels'. Got an empty document"),
        ("labels", "a label file is a mapping with the key 'labels'. Got the text 'labels'"),
        ({}, "there are no labels; a classifier needs at least two labels"),
        (
            {"lables": ["a", "b"]},
            "unknown key 'lables'. Did you mean 'labels'? Known: name, template, several, outside, labels.",
        ),
        ({"labels": "a, b"}, "labels must be a list, or a mapping from names to descriptions. Got the text 'a, b'"),
        ({"labels": ["a"]}, "a classifier needs at least two labels. Got only 'a'"),
        ({"labels": ["a", "b"], "name": 3}, "name must be text. Got 3, a number"),
        ({"labels": ["a", "b", "a"]}, "labels[2] ('a'): the name is used twice (first at labels[0])"),
        ({"labels": ["a", None]}, "labels[1]: the name is empty"),
        ({"labels": ["a", ["b"]]}, "labels[1]: must be a name or a mapping with the key 'name'. Got a list."),
        ({"labels": ["a", {"phrase": "b"}]}, "labels[1]: has no name"),
        ({"labels": ["a", {"nam": "b"}]}, "labels[1]: unknown key 'nam'. Did you mean 'name'?"),
        ({"labels": ["a", {"name": "b", 3: "x"}]}, "labels[1] ('b'): a key must be text. Got 3, a number"),
        ({"labels": ["a", {"name": "b", "phrase": ["x"]}]}, "labels[1] ('b'): the phrase must be text. Got a list"),
        (
            {"labels": ["a", {"name": "b", "descriptions": [{"Wahlen": "Parteien"}]}]},
            "labels[1] ('b'): description 1 must be text. Got a mapping; put a text that holds ': ' in quotes",
        ),
        (
            {"labels": ["a", {"name": "b", "desciptions": []}]},
            "labels[1] ('b'): unknown key 'desciptions'. Did you mean 'descriptions'?",
        ),
        (
            {"labels": ["a", {"name": "b", "descriptions": ["x", " "]}]},
            "labels[1] ('b'): description 2 is empty; write one or remove it.",
        ),
        ({"labels": {"a": ["x", ""], "b": []}}, "labels['a']: description 2 is empty"),
        ({"lables": ["a", "b"], "nam": "news"}, "unknown key 'lables'. Did you mean 'labels'?"),
        ({"tempate": "On {label}.", "labls": ["a", "b"]}, "unknown key 'tempate'. Did you mean 'template'?"),
        ({"name": "news", "sports": "t"}, "unknown key 'sports'. Known: name, template, several, outside, labels."),
        ({"name": "news", "sports": "t"}, "If these are labels, write them below the key 'labels'."),
        ({"a": {"x"}, "b": {"y"}}, "['a']: descriptions must be a list. Got "),
        ({"labels": {"a": " ", "b": []}}, "labels['a']: description 1 is empty"),
        ({"labels": {"a": 3, "b": []}}, "labels['a']: descriptions must be a list. Got 3, a number"),
        ({"labels": {"a": {"name": "c"}, "b": []}}, "labels['a']: the name is written twice"),
        ({"labels": {False: [], "b": []}}, "labels[False]: the name must be text. Got False, a truth value"),
    ],
)
def test_the_error_for_plain_data_names_the_place(data, message: str):
    with pytest.raises(LabelFileError) as caught:
        LabelSpace.from_dict(data)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_arrays_and_columns_are_lists_of_descriptions():
    column = pd.Series(["a match", "a goal"], index=[7, 9])
    for labels in (
        {"sports": column, "money": np.array(["a bank"])},
        {
            "labels": [
                {"name": "sports", "descriptions": column},
                {"name": "money", "descriptions": np.array(["a bank"])},
            ]
        },
    ):
        assert LabelSpace.from_dict(labels).descriptions == (("a match", "a goal"), ("a bank",))


def test_texts_mixed_with_lists_are_unknown_keys_and_not_labels():
    with pytest.raises(LabelFileError, match="unknown key 'classes'"):
        LabelSpace.from_dict({"classes": ["sports", "business"], "title": "News"})


def test_texts_mixed_with_lists_go_below_the_key_labels_and_the_error_says_so():
    labels = {"sports": "A match was won.", "money": ["A bank.", "A loan."]}
    with pytest.raises(LabelFileError, match=r"some keys hold a text and some a list.*below the key 'labels'"):
        LabelSpace.from_dict(labels)
    assert LabelSpace.from_dict({"labels": labels}).descriptions == (("A match was won.",), ("A bank.", "A loan."))


@pytest.mark.parametrize(
    "data",
    [
        {"labels": [{"name": "a", "descriptions": ["x"]}, {"name": "b"}]},
        {"labels": [{"name": "a", "descriptions": ("x",)}, "b"]},
        {"labels": {"a": ["x"], "b": None}},
        {"labels": {"a": {"descriptions": ["x"]}, "b": {}}},
        {"labels": {"a": "x", "b": None}},
        {"a": ["x"], "b": []},
        {"a": "x", "b": []},
        {"a": "x", "b": None},
        [{"name": "a", "descriptions": ["x"]}, "b"],
    ],
)
def test_every_short_form_means_the_same(data):
    assert LabelSpace.from_dict(data) == LabelSpace([Label("a", descriptions=["x"]), Label("b")])


def test_each_name_may_map_to_a_single_text():
    space = LabelSpace.from_dict({"games": "Results of matches.", "tables": "What stands in a room."})
    assert space.names == ("games", "tables")
    assert space.descriptions == (("Results of matches.",), ("What stands in a room.",))


def test_a_label_may_have_the_name_of_a_key():
    assert LabelSpace.from_dict({"labels": {"name": [], "labels": []}}).names == ("name", "labels")


def test_plain_data_leaves_out_empty_keys():
    assert LabelSpace.from_names(["a", "b"]).to_dict() == {
        "name": "labels",
        "template": "This text is about {label}.",
        "labels": [{"name": "a"}, {"name": "b"}],
    }


def test_a_new_order_must_contain_every_name_once():
    with pytest.raises(LabelFileError, match="the new order leaves out 'business'; give every name once"):
        NEWS.reorder(["world", "sports"])
    with pytest.raises(LabelFileError, match="'world': the name is used twice"):
        NEWS.reorder(["world", "sports", "business", "world"])
    with pytest.raises(LabelFileError, match="Got the text 'art'"):
        NEWS.reorder(["world", "sports", "art"])


def test_adding_and_removing_give_new_spaces():
    bigger = NEWS.add(Label("art"))
    assert bigger.names == ("sports", "world", "business", "art")
    assert bigger.remove("art") == NEWS
    assert NEWS.names == ("sports", "world", "business")
    with pytest.raises(LabelFileError, match="'world': the name is used twice"):
        NEWS.add(Label("world"))
    with pytest.raises(LabelFileError, match="at least two labels"):
        NEWS.remove("world").remove("sports")


@pytest.mark.parametrize("name", ["sports", "world", "business"])
def test_renaming_changes_the_name_and_no_verbalizer(name: str):
    renamed = NEWS.rename(name, " new ")
    assert renamed.index("new") == NEWS.index(name)
    assert name not in renamed
    assert renamed.verbalizers == NEWS.verbalizers
    assert renamed.descriptions == NEWS.descriptions


def test_renaming_to_the_same_name_changes_nothing_and_to_another_label_is_refused():
    assert NEWS.rename("world", "world") == NEWS
    with pytest.raises(LabelFileError, match="label 'world': another label is called 'sports'"):
        NEWS.rename("world", "sports")


def test_at_most_count_descriptions_are_drawn_in_their_order():
    drawn = NEWS.with_descriptions(2, seed=3)
    assert [len(texts) for texts in drawn.descriptions] == [2, 1, 2]
    for few, all_of_them in zip(drawn.descriptions, NEWS.descriptions, strict=True):
        assert list(few) == [text for text in all_of_them if text in few]
    assert NEWS.with_descriptions(9) == NEWS
    assert NEWS.with_descriptions(0).descriptions == ((), (), ())


def test_a_draw_depends_on_the_seed_but_not_on_other_labels():
    draws = {NEWS.with_descriptions(1, seed=seed)["business"] for seed in range(20)}
    assert draws == {Label("business", verbalizer="Money talks.", descriptions=[text]) for text in NEWS.descriptions[2]}
    for seed in range(5):
        alone = NEWS.remove("sports").with_descriptions(2, seed=seed)
        assert alone["business"] == NEWS.with_descriptions(2, seed=seed)["business"]


def test_a_larger_draw_contains_the_smaller_one():
    for seed in range(5):
        small, large = (set(NEWS.with_descriptions(count, seed)["business"].descriptions) for count in (2, 3))
        assert small < large


@pytest.mark.parametrize("count", [-1, 1.5, True, "2"])
def test_an_invalid_count_is_refused(count):
    with pytest.raises(ConfigError, match="count must be a whole number at least 0"):
        NEWS.with_descriptions(count)


@pytest.mark.parametrize("seed", [-1, 1.5, True, "2", None])
def test_an_invalid_seed_is_refused(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number at least 0"):
        NEWS.with_descriptions(1, seed=seed)
