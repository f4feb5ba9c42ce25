"""One error tree: every error is ours, is a built-in too, and speaks in one line."""

import inspect
from pathlib import Path

import pytest

from contracts.source import SRC, asserts_on_arguments, foreign_raises, messages_of_several_lines, python_files
from labelspace import LabelSpace, errors
from labelspace.errors import LabelSpaceError, MissingDependencyError

CLASSES = [
    thing
    for thing in vars(errors).values()
    if inspect.isclass(thing) and issubclass(thing, LabelSpaceError) and thing is not LabelSpaceError
]
CHECKED = [path for path in python_files() if path.name not in ("errors.py", "config.py")]


def in_package(path: Path) -> str:
    return str(path.relative_to(SRC))


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_is_ours_and_a_built_in_one(error):
    assert issubclass(error, LabelSpaceError)
    builtins = [base for base in error.__mro__ if base.__module__ == "builtins"]
    assert [base for base in builtins if base not in (Exception, BaseException, object)]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_prints_its_message_and_nothing_else(error):
    made = error("pkg", "extra", "This") if error is MissingDependencyError else error("one line")
    assert "\n" not in str(made)
    assert str(made) == made.args[0]


@pytest.mark.parametrize("error", CLASSES, ids=lambda error: error.__name__)
def test_an_error_stands_in_the_drawing_at_the_top_of_its_file(error):
    assert f"── {error.__name__} " in (errors.__doc__ or "")


def test_a_missing_package_names_the_command_that_installs_it():
    error = MissingDependencyError("umap-learn", "plot", "The map")
    assert str(error) == "The map needs the package 'umap-learn'; install it with: pip install 'labelspace[plot]'"


@pytest.mark.parametrize("path", CHECKED, ids=in_package)
def test_no_file_raises_a_built_in_error(path):
    assert foreign_raises(path) == []


@pytest.mark.parametrize("path", python_files(), ids=in_package)
def test_no_file_checks_its_input_by_assert(path):
    assert asserts_on_arguments(path) == []


@pytest.mark.parametrize("path", python_files(), ids=in_package)
def test_no_message_has_a_line_break(path):
    assert messages_of_several_lines(path) == []


def bad_calls() -> dict[str, tuple[type[Exception], object]]:
    """Things that users get wrong, without an encoder: what the built-in is that they may catch, and the call."""
    from labelspace.checks import import_optional
    from labelspace.config import TrainingConfig
    from labelspace.corpus import as_documents, as_targets, open_table
    from labelspace.encoders.resolve import check_remote_code, resolve

    space = LabelSpace.from_names(["sports", "world"])
    return {
        "one label": (ValueError, lambda: LabelSpace.from_names(["only"])),
        "a name twice": (ValueError, lambda: LabelSpace.from_names(["a", "a"])),
        "an unknown key": (ValueError, lambda: LabelSpace.from_dict({"labels": [{"nam": "a"}, {"name": "b"}]})),
        "no such label file": (ValueError, lambda: LabelSpace.from_file("no/such/file.yaml")),
        "no such label": (ValueError, lambda: space["sport"]),
        "no number": (ValueError, lambda: TrainingConfig(temperature="warm")),  # pyright: ignore[reportArgumentType]
        "one text": (ValueError, lambda: as_documents("one text")),
        "a document that is None": (ValueError, lambda: as_documents(["fine", None])),
        "an unknown label": (ValueError, lambda: as_targets(["sprots"], space.names, n_documents=1)),
        "no such table": (ValueError, lambda: open_table("no/such/file.csv", text="text")),
        "no such encoder": (FileNotFoundError, lambda: resolve("nobody/nothing", offline=True)),
        "remote code": (PermissionError, lambda: check_remote_code("gte-base-en-v1.5", trust_remote_code=False)),
        "no package": (ImportError, lambda: import_optional("no_such", package="p", extra="e", purpose="This")),
    }


@pytest.mark.parametrize("what", bad_calls())
def test_a_mistake_gets_one_line_that_says_more_than_what_was_wrong(what):
    builtin, call = bad_calls()[what]
    with pytest.raises(LabelSpaceError) as caught:
        call()  # pyright: ignore[reportCallIssue]
    message = str(caught.value)
    assert isinstance(caught.value, builtin)
    assert "\n" not in message
    assert len(message) > 20
    assert message.rstrip().endswith((".", "'", "yaml", "]"))
