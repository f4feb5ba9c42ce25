"""Docstrings: the fixed order for formulas, an example for every public name, all of them run by doctest."""

import importlib
import inspect

import pytest

import labelspace
from contracts.source import docstring_problems, undocumented

FORMULAS = [
    getattr(importlib.import_module(module), name)
    for module in ("labelspace.losses", "labelspace.geometry")
    for name in importlib.import_module(module).__all__
    if inspect.isfunction(getattr(importlib.import_module(module), name))  # what a formula takes or gives is a class
]
# They draw or arrange, and compute no formula of a paper.
HELPERS = {"sample_pairs"}
FOLDERS = ("labels", "corpus", "encoders", "losses", "geometry", "training", "classify", "evaluate", "cli")


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_a_formula_has_the_sections_in_the_fixed_order(function):
    assert docstring_problems(function, formula=function.__name__ not in HELPERS) == []


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_a_formula_names_every_argument(function):
    text = inspect.getdoc(function) or ""
    section = text[text.index("Args:") : text.index("Returns:")]
    missing = [name for name in inspect.signature(function).parameters if f"    {name}: " not in section]
    assert missing == []


@pytest.mark.parametrize("function", FORMULAS, ids=lambda function: function.__name__)
def test_a_formula_names_the_error_it_raises(function):
    text = inspect.getdoc(function) or ""
    assert "ShapeError: " in text


@pytest.mark.parametrize("name", [name for name in labelspace.__all__ if not name.startswith("__")])
def test_a_public_name_has_a_docstring_with_an_example(name):
    thing = getattr(labelspace, name)
    text = vars(thing)["__doc__"] if inspect.isclass(thing) else thing.__doc__
    assert text, "a docstring of its own, not an inherited one"
    if inspect.isclass(thing) and issubclass(thing, Exception):
        return
    members = "".join(member.__doc__ or "" for member in vars(thing).values() if inspect.isroutine(member))
    assert ">>>" in text + (members if inspect.isclass(thing) else "")


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_public_class_function_and_method_has_a_docstring(folder):
    assert undocumented(importlib.import_module(f"labelspace.{folder}")) == []


@pytest.mark.parametrize("name", ["DescriptionClassifier", "UncertaintyClassifier", "ZeroShotClassifier", "Encoder"])
def test_a_class_documents_every_parameter(name):
    thing = getattr(labelspace, name)
    text = inspect.getdoc(thing) or ""
    missing = [parameter for parameter in inspect.signature(thing).parameters if f"\n    {parameter}: " not in text]
    assert missing == []
