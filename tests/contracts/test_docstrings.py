"""Every public docstring is complete for its kind; doctest runs the examples."""

import inspect
import re

from contracts.source import docstring_gaps, may_be_subclassed, public_things

MAKER = re.compile(r"; made by `(\w+)`")


def test_every_public_docstring_is_complete_for_its_kind():
    gaps = [gap for thing in public_things() for gap in docstring_gaps(thing)]
    assert not gaps, "\n".join([*gaps, "CONTRIBUTING.md, rule 3, says what each kind needs."])


def test_every_concrete_public_class_is_final():
    found = [f"{thing.__module__}.{thing.__qualname__}" for thing in public_things() if may_be_subclassed(thing)]
    assert not found, "\n".join([*found, "Decorate each with @final (CONTRIBUTING.md, rule 11)."])


def test_no_kind_is_left_out():
    names = {thing.__name__ for thing in public_things()}
    assert {"LaConClassifier", "GaussianHead", "LLMScorer", "TrainingConfig", "infonce_rows", "main"} <= names


def test_a_made_by_reference_names_a_public_function():
    functions = {thing.__name__ for thing in public_things() if inspect.isfunction(thing)}
    made = {thing.__name__: MAKER.search(thing.__doc__ or "") for thing in public_things() if inspect.isclass(thing)}
    assert {name: found[1] for name, found in made.items() if found and found[1] not in functions} == {}
