"""Every public class and function says what its kind has to say; doctest runs the examples."""

import inspect
import re

from contracts.source import docstring_gaps, public_things

MAKER = re.compile(r"; made by `(\w+)`")


def test_every_public_class_and_function_says_what_its_kind_has_to_say():
    assert [gap for thing in public_things() for gap in docstring_gaps(thing)] == []


def test_no_kind_is_left_out():
    names = {thing.__name__ for thing in public_things()}
    assert {"LaConClassifier", "GaussianHead", "LLMScorer", "TrainingConfig", "infonce_rows", "main"} <= names


def test_what_is_made_by_another_function_names_one_that_is_public():
    functions = {thing.__name__ for thing in public_things() if inspect.isfunction(thing)}
    made = {thing.__name__: MAKER.search(thing.__doc__ or "") for thing in public_things() if inspect.isclass(thing)}
    assert {name: found[1] for name, found in made.items() if found and found[1] not in functions} == {}
