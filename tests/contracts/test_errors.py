"""One error tree: every error is ours, inherits a built-in error, and prints one line."""

import copy
import inspect

import pytest

from contracts.source import asserts_on_arguments, foreign_raises, messages_of_several_lines, violations
from labelspace import LabelSpace, errors
from labelspace.errors import LabelSpaceError, MissingDependencyError

CLASSES = [
    thing
    for thing in vars(errors).values()
    if inspect.isclass(thing) and issubclass(thing, LabelSpaceError) and thing is not LabelSpaceError
]
TOO_WIDE = (Exception, BaseException, object)


def test_every_error_inherits_a_built_in_error():
    def builtin(error):
        return [base for base in error.__mro__ if base.__module__ == "builtins" and base not in TOO_WIDE]

    assert [error.__name__ for error in CLASSES if not builtin(error)] == []


def test_every_error_prints_its_message_and_nothing_else():
    made = [error("p", "e", "This") if error is MissingDependencyError else error("one line") for error in CLASSES]
    assert [str(error) for error in made] == [error.args[0] for error in made]


def test_every_error_travels_between_processes():
    made = [error("p", "e", "This") if error is MissingDependencyError else error("one line") for error in CLASSES]
    assert [str(copy.copy(error)) for error in made] == [str(error) for error in made], "a copy is made as by pickle"


def test_every_error_is_in_the_drawing_at_the_top_of_its_file():
    assert [error.__name__ for error in CLASSES if f"── {error.__name__} " not in (errors.__doc__ or "")] == []


def test_a_missing_package_names_the_command_that_installs_it():
    error = MissingDependencyError("umap-learn", "plot", "The map")
    assert str(error) == "The map needs the package 'umap-learn'; install it with: pip install 'labelspace[plot]'"


def test_no_file_raises_a_built_in_error():
    found = violations(foreign_raises)
    assert not found, "\n".join(found)


def test_no_file_checks_its_input_by_assert():
    found = violations(asserts_on_arguments)
    assert not found, "\n".join(found)


def test_no_message_has_a_line_break():
    found = violations(messages_of_several_lines)
    assert not found, "\n".join(found)


def bad_calls() -> dict[str, tuple[type[Exception], object]]:
    """Return common mistakes that need no encoder: the built-in error that a user may catch, and the call."""
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
        "no such table": (ValueError, lambda: open_table("no/such/file.csv", text_column="text")),
        "no such encoder": (FileNotFoundError, lambda: resolve("nobody/nothing", offline=True)),
        "remote code": (PermissionError, lambda: check_remote_code("gte-base-en-v1.5", trust_remote_code=False)),
        "no package": (ImportError, lambda: import_optional("no_such", package="p", extra="e", purpose="This")),
    }


@pytest.mark.parametrize("what", bad_calls())
def test_a_mistake_gets_one_line_that_also_says_what_to_do(what):
    builtin, call = bad_calls()[what]
    with pytest.raises(LabelSpaceError) as caught:
        call()  # pyright: ignore[reportCallIssue]
    message = str(caught.value)
    assert isinstance(caught.value, builtin)
    assert "\n" not in message
    assert len(message) > 20
    assert message.rstrip().endswith((".", "'", "yaml", "]"))
