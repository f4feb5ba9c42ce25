"""docs/command-line.md names every command and every option, and none that is not there."""

import re
from pathlib import Path

import pytest
import typer

from labelspace.cli.app import app

PAGE = (Path(__file__).parents[2] / "docs" / "command-line.md").read_text(encoding="utf-8")
GROUP = typer.main.get_command(app)
COMMANDS = GROUP.commands  # pyright: ignore[reportAttributeAccessIssue]


def _sections() -> dict[str, str]:
    parts = re.split(r"^## labelspace (\S+)$", PAGE, flags=re.MULTILINE)
    return {"": parts[0], **dict(zip(parts[1::2], parts[2::2], strict=True))}


def _options(command) -> set[str]:
    if command is not GROUP and hasattr(command, "commands"):  # a command of commands has one section for all
        return set().union(*(_options(part) for part in command.commands.values()))
    flags = {flag for parameter in command.params for flag in parameter.opts if flag.startswith("--")}
    return flags - {"--help"}


def _named(text: str) -> set[str]:
    return set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))


def test_every_command_has_a_section_in_the_order_of_the_help():
    assert list(_sections())[1:] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_the_options_of_a_section_are_those_of_the_command(name):
    assert _named(_sections()[name]) == _options(COMMANDS[name])


def test_the_head_of_the_page_names_what_all_share():
    assert _named(_sections()[""]) - {"--help", "--json", "--quiet"} == _options(GROUP)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_section_begins_with_an_example(name):
    assert f"    labelspace {name}" in _sections()[name].split("\n\n")[1]


def test_exit_codes_are_those_of_the_app():
    from labelspace.cli import app as application

    told = set(re.findall(r"^\| (\d+) \|", PAGE, flags=re.MULTILINE))
    assert {"0", "1", "2", str(application.INTERRUPTED), str(application.READER_GONE)} == told
