"""Markdown pages as blocks of code that can be run: what the docs tests and the guards on them share."""

import functools
import re
import shlex
import textwrap
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

RUN = {"python"}
PARSED = {"console", "bash"}
ONLY_SHOWN = {"text", "yaml", "json", "csv", "toml", "bibtex"}

# What the pages call their encoder; here the tiny one stands behind both names.
REAL_NAMES = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
_SHELL = {"|", ">", ">>", "<", "&&", "||", ";", "&", "2>"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    """Of its first line of code, counted from 1."""
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command line of a page, without what a shell would do with it."""

    page: Path
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}: {' '.join(self.words)}"


def all_pages(root: Path = ROOT) -> list[Path]:
    """Every page that people read: README.md, CONTRIBUTING.md and the docs."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """The fenced blocks of a page, in order."""
    lines = page.read_text(encoding="utf-8").splitlines()
    blocks, number = [], 0
    while number < len(lines):
        opened = _FENCE.match(lines[number])
        number += 1
        if opened is None:
            continue
        first = number
        while number < len(lines) and not lines[number].strip().startswith(opened["ticks"]):
            number += 1
        assert number < len(lines), f"{page.name}:{first}: this block is never closed"
        code = textwrap.dedent("\n".join(lines[first:number])) + "\n"
        blocks.append(Block(page, first + 1, opened["language"], code))
        number += 1
    return blocks


def prose_of(page: Path) -> str:
    """The page without its fenced blocks."""
    kept, ticks = [], ""
    for line in page.read_text(encoding="utf-8").splitlines():
        fence = _FENCE.match(line)
        if fence and not ticks:
            ticks = fence["ticks"]
        elif ticks and line.strip().startswith(ticks):
            ticks = ""
        elif not ticks:
            kept.append(line)
    return "\n".join(kept)


def commands_of(block: Block) -> list[Command]:
    """The command lines of a console block; where any line has a `$` prompt, the others are output."""
    lines = block.code.splitlines()
    prompted = any(line.startswith("$ ") for line in lines)
    commands: list[Command] = []
    pending, began = "", 0
    for number, line in enumerate(lines, block.line):
        if not pending:
            if prompted and not line.startswith("$ "):
                continue
            began = number
        pending += line.removeprefix("$ ")
        if pending.endswith("\\"):
            pending = pending[:-1] + " "
            continue
        commands += _commands(block.page, began, pending)
        pending = ""
    return commands


def commands_in_prose(page: Path) -> list[Command]:
    """The command lines that a page shows by indenting them, without a fence."""
    fenced = {block.line + offset for block in blocks_of(page) for offset in range(block.code.count("\n"))}
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    return [
        command
        for number, line in lines
        if number not in fenced and re.match(r" {4}(\S.*\| )?labelspace ", line)
        for command in _commands(page, number, line.strip())
    ]


def _commands(page: Path, line: int, text: str) -> list[Command]:
    """One line of a shell as commands: what stands between pipes and redirections."""
    commands: list[list[str]] = [[]]
    for word in shlex.split(text, comments=True):
        if word in _SHELL:
            commands.append([])
        else:
            commands[-1].append(word)
    return [Command(page, line, tuple(words)) for words in commands if words]


def command_problem(words: tuple[str, ...]) -> str:
    """What is wrong with a command line, parsed by the application itself; empty when nothing is."""
    if words[0] == "make":
        targets = re.findall(r"^([a-z][a-z-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
        return "".join(f"the Makefile has no target {word!r}; " for word in words[1:] if word not in targets)
    if words[0] != "labelspace":
        return ""
    import typer

    usage_error: Any = typer.BadParameter.__bases__[0]  # its home has moved between versions of typer
    group = application()
    if len(words) == 1 or words[1].startswith("-"):
        return "" if set(words[1:]) <= {"--help", "-h", "--version"} else f"no such option {words[1]!r}"
    name, rest = words[1], [word for word in words[2:] if word not in ("--help", "-h")]
    if name not in group.commands:
        return f"there is no command {name!r}"
    if len(rest) < len(words) - 2:
        return ""  # asks for help
    try:
        group.commands[name].make_context(name, rest)
    except usage_error as error:
        return error.format_message()
    return ""


@functools.cache
def application() -> Any:
    """The command line, made once: it takes as long as a page takes to read."""
    import typer

    from labelspace.cli.app import app

    return typer.main.get_command(app)


def options_of(command: str) -> set[str]:
    """The long options that a command of the application takes, or all of it for '', `--help` left out."""
    found = application().commands[command] if command else application()
    # A command of commands has one section for all.
    parts = [found, *getattr(found, "commands", {}).values()] if command else [found]
    given = {option for part in parts for each in part.params for option in (*each.opts, *each.secondary_opts)}
    return {option for option in given if option.startswith("--")} - {"--help"}


def options_by_section(page: Path) -> dict[str, set[str]]:
    """The options that a page speaks of under each heading `## labelspace COMMAND`, and above the first under ''."""
    parts = ["", *re.split(r"^## labelspace ([\w-]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)]
    return {
        name: set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--help"}
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


@contextmanager
def tiny_encoder_stands_in(folder: Path) -> Iterator[None]:
    """For the time of the block the default encoder's names lead to a folder; all else is as it is."""
    from labelspace.encoders import encoder as encoder_module
    from labelspace.encoders import resolve as resolve_module

    real = resolve_module.resolve

    def resolve(name: str, **options: Any) -> Any:
        return real(str(folder) if name in REAL_NAMES else name, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(encoder_module, "resolve", resolve)
        patch.setattr(resolve_module, "resolve", resolve)
        yield


def run_page(page: Path, encoder_folder: Path, *, with_commands: bool = False) -> int:
    """Run a page from top to bottom in one namespace, in the current folder; return how many blocks ran.

    Python blocks run as they stand. With `with_commands` the `labelspace` lines of console blocks run between them,
    in this process, and must exit with 0. A failure names page and line.
    """
    from labelspace.errors import LabelSpaceWarning

    namespace: dict[str, Any] = {"__name__": "__page__"}
    ran = 0
    with tiny_encoder_stands_in(encoder_folder), warnings.catch_warnings():
        # The tiny encoder knows nothing, so its training may well be told to have gone wrong.
        warnings.simplefilter("ignore", LabelSpaceWarning)
        for block in blocks_of(page):
            if block.language in RUN:
                _run_python(block, namespace)
                ran += 1
            elif block.language in PARSED and with_commands:
                for command in commands_of(block):
                    if command.words[0] == "labelspace":
                        _run_command(command)
                        ran += 1
    return ran


def _run_python(block: Block, namespace: dict[str, Any]) -> None:
    # Empty lines in front, so that the line numbers of a traceback are those of the page.
    padded = "\n" * (block.line - 1) + block.code
    try:
        exec(compile(padded, str(block.page), "exec"), namespace)
    except Exception as error:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(block.page)]
        line = frames[-1].lineno if frames else getattr(error, "lineno", block.line)
        raise AssertionError(f"{block.page.name}:{line}: {type(error).__name__}: {error}") from error


def _run_command(command: Command) -> None:
    from labelspace.cli.app import app

    code = app(list(command.words[1:]), standalone_mode=False)
    assert code in (None, 0), f"{command} exits with {code}"


def unknown_languages(page: Path) -> list[str]:
    """Blocks in a language that nobody runs, parses or knows as plain text; `py` or nothing would go unrun."""
    known = RUN | PARSED | ONLY_SHOWN
    return [f"{block}: {block.language or 'no language'}" for block in blocks_of(page) if block.language not in known]


def skips(path: Path) -> list[str]:
    """Lines that ask a runner to leave an example out."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [f"{path.name}:{number}" for number, line in enumerate(lines, 1) if "+SKIP" in line]


def not_mentioned(names: list[str], text: str) -> list[str]:
    """Names that a text never speaks of as code."""
    code = " ".join(re.findall(r"`([^`\n]+)`", text))
    return [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)]


def dead_paths(page: Path, root: Path = ROOT) -> list[str]:
    """Files and folders of this project that a page names, in code spans or links, and that are not there."""
    text = prose_of(page)
    named = re.findall(r"`((?:src|tests|examples|benchmarks|docs)/[\w./-]+)", text)
    links = [
        link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link and not link.startswith("mailto")
    ]
    gone = [name for name in named if not (root / name.rstrip(".")).exists()]
    return gone + [link for link in links if not (page.parent / link).exists()]


def dead_names(page: Path) -> list[str]:
    """Dotted names below `labelspace` in code spans that lead nowhere."""
    import pkgutil

    gone = []
    for name in re.findall(r"`(labelspace(?:\.\w+)+)", prose_of(page)):
        if name == "labelspace.json":  # a file of a saved model
            continue
        try:
            pkgutil.resolve_name(name)
        except (ImportError, AttributeError):
            gone.append(name)
    return gone
