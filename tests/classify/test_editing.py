"""Adding, renaming or removing a label changes no other score, and the result says when to retrain."""

from collections.abc import Callable
from typing import Any

import pytest

from classify.conftest import METHODS, TEXTS, columns_of
from labelspace import Label, LabelSpace
from labelspace.errors import ConfigError, LabelFileError

Maker = Callable[..., Any]

each_method = pytest.mark.parametrize("method", METHODS)
FILM = {"name": "film", "descriptions": ["A film, and how great it is."]}


@each_method
def test_adding_a_label_changes_no_other_score(method: str, fitted: Maker):
    clf = fitted(method)
    before = clf.decision_function(TEXTS)
    clf.add_label(FILM)
    after = clf.decision_function(TEXTS)
    assert (columns_of(clf, after, ["money", "sports", "world"]) == before).all()
    assert list(clf.classes_) == ["film", "money", "sports", "world"]
    assert list(clf.label_space_.names) == ["sports", "money", "world", "film"]
    assert clf.predict(["film film film"]).shape == (1,)


def test_a_label_that_is_only_a_name_is_refused(fitted: Maker):
    with pytest.raises(ConfigError, match=r"a Label, or a mapping .* Got the text 'film'"):
        fitted("zero-shot").add_label("film")


@each_method
def test_an_added_label_scores_as_if_it_had_been_there_from_the_start(method: str, fitted: Maker):
    clf = fitted(method)
    clf.add_label(Label(FILM["name"], descriptions=FILM["descriptions"]))
    anew = clf.scores(TEXTS, LabelSpace(clf.label_space_, name="anew"))
    assert (columns_of(clf, clf.decision_function(TEXTS), clf.label_space_.names) == anew).all()


@each_method
def test_removing_a_label_changes_no_other_score(method: str, fitted: Maker):
    clf = fitted(method)
    before = columns_of(clf, clf.predict(TEXTS, return_scores=True)[1], ["sports", "world"])
    change = clf.remove_label("money")
    assert (columns_of(clf, clf.predict(TEXTS, return_scores=True)[1], ["sports", "world"]) == before).all()
    assert list(clf.classes_) == ["sports", "world"]
    assert not change.retrain


@each_method
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_renaming_a_label_changes_no_score_at_all(method: str, dtype: str, fitted: Maker):
    clf = fitted(method, dtype, anchor="both")  # verbalizers and descriptions both count
    before = columns_of(clf, clf.decision_function(TEXTS), ["sports", "money", "world"])
    change = clf.rename_label("sports", "Sport & Games")
    assert (columns_of(clf, clf.decision_function(TEXTS), ["Sport & Games", "money", "world"]) == before).all()
    assert list(clf.classes_) == ["Sport & Games", "money", "world"]
    assert not change.retrain
    # The same holds when the vectors are computed again from the texts.
    assert (clf.scores(TEXTS, LabelSpace(clf.label_space_, template="{label}")) != before).any()
    fresh = LabelSpace(clf.label_space_, name="anew", template=clf.label_space_.template)
    assert (clf.scores(TEXTS, fresh) == before).all()


@each_method
def test_white_space_around_a_new_name_is_removed(method: str, fitted: Maker):
    clf = fitted(method)
    before = columns_of(clf, clf.decision_function(TEXTS), ["sports", "money", "world"])
    clf.rename_label("sports", " Sport ")
    assert (columns_of(clf, clf.decision_function(TEXTS), ["Sport", "money", "world"]) == before).all()


def test_the_next_fit_uses_the_edited_labels(fitted: Maker):
    clf = fitted("zero-shot")
    clf.add_label(FILM)
    clf.remove_label("money")
    assert list(clf.fit().classes_) == ["film", "sports", "world"]
    assert clf.get_params()["labels"].names == ("sports", "world", "film")


def test_the_callers_label_space_is_not_edited(fitted: Maker, space: LabelSpace):
    clf = fitted("zero-shot", labels=space)
    clf.add_label(FILM)
    assert space.names == ("sports", "money", "world")


# ---- advice


def test_a_label_far_from_the_others_needs_no_retraining(fitted: Maker):
    clf = fitted("zero-shot", anchor="descriptions")
    change = clf.add_label({"name": "film", "descriptions": ["☃ 北京 zyxw qqq jj xx 77 88"]})
    assert not change.retrain, change.reason
    assert str(change) == f"no retraining needed: {change.reason}"


def test_adding_a_label_that_attracts_descriptions_of_others_advises_retraining(fitted: Maker):
    """Its text is one of the two descriptions of another label, whose anchor is the mean of both."""
    clf = fitted("zero-shot", anchor="descriptions")
    change = clf.add_label({"name": "games", "descriptions": ["Results of matches and games."]})
    assert change.retrain
    assert "draws 1 descriptions away" in change.reason
    assert str(change).startswith("retraining is advised: ")


def test_adding_a_label_whose_descriptions_lie_nearer_to_another_advises_retraining(fitted: Maker):
    """Its anchor is its verbalizer, and its description equals the verbalizer of another label."""
    clf = fitted("zero-shot", anchor="verbalizer")
    change = clf.add_label(
        {"name": "odd", "verbalizer": "☃ 北京 zyxw", "descriptions": ["War, peace and elections."]},
    )
    assert change.retrain
    assert change.reason.startswith("1 of the 1 descriptions of 'odd' lie nearer to another label")


def test_adding_a_label_without_descriptions_advises_retraining(fitted: Maker):
    change = fitted("zero-shot").add_label({"name": "film"})
    assert change.retrain
    assert "has no description" in change.reason


# ---- refusals


def test_a_refused_edit_changes_nothing(fitted: Maker):
    clf = fitted("zero-shot")
    before = clf.decision_function(TEXTS)
    for edit, message in (
        (lambda: clf.add_label({"name": "money"}), "used twice"),
        (lambda: clf.add_label({"name": "film", "desciptions": ["x"]}), "descriptions"),
        (lambda: clf.add_label({"descriptions": ["x"]}), "name"),
        (lambda: clf.rename_label("sprots", "x"), "Did you mean 'sports'"),
        (lambda: clf.rename_label("sports", "money"), "another label is called"),
        (lambda: clf.remove_label("film"), "has no label .*'film'"),
    ):
        with pytest.raises(LabelFileError, match=message):
            edit()
    assert list(clf.classes_) == ["money", "sports", "world"]
    assert clf.label_space_.names == ("sports", "money", "world")
    assert (clf.decision_function(TEXTS) == before).all()


def test_the_last_two_labels_cannot_be_removed(fitted: Maker):
    clf = fitted("zero-shot")
    clf.remove_label("money")
    with pytest.raises(LabelFileError):
        clf.remove_label("world")
    assert list(clf.classes_) == ["sports", "world"]
