"""Parse and run the code blocks of Markdown pages; shared by the docs tests and their guards."""

import functools
import re
import shlex
import subprocess
import textwrap
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

RUN = {"python"}
PARSED = {"console", "bash"}
ONLY_SHOWN = {"text", "yaml", "json", "csv", "toml", "bibtex"}

# The names of the pages' encoder; here the tiny encoder replaces both.
REAL_NAMES = ("sentence-transformers/all-MiniLM-L6-v2", "all-MiniLM-L6-v2")

_FENCE = re.compile(r"^(?P<indent>\s*)(?P<ticks>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
_SHELL = {"|", ">", ">>", "<", "&&", "||", ";", "&", "2>"}


@dataclass(frozen=True)
class Block:
    """One fenced block of a page."""

    page: Path
    line: int
    """The number of its first line of code, from 1."""
    language: str
    code: str

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}"


@dataclass(frozen=True)
class Command:
    """One command line of a page, without pipes and redirections."""

    page: Path
    line: int
    words: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.page.name}:{self.line}: {' '.join(self.words)}"


def all_pages(root: Path = ROOT) -> list[Path]:
    """Return README.md, CONTRIBUTING.md and the pages of the docs."""
    return [root / "README.md", root / "CONTRIBUTING.md", *sorted((root / "docs").rglob("*.md"))]


def blocks_of(page: Path) -> list[Block]:
    """Return the fenced blocks of a page, in order."""
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
    """Return the page without its fenced blocks."""
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
    """Return the command lines of a console block; if any line has a `$` prompt, the others are output."""
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
    """Return the command lines that are indented instead of fenced."""
    fenced = {block.line + offset for block in blocks_of(page) for offset in range(block.code.count("\n"))}
    lines = enumerate(page.read_text(encoding="utf-8").splitlines(), 1)
    return [
        command
        for number, line in lines
        if number not in fenced and re.match(r" {4}(\S.*\| )?labelspace ", line)
        for command in _commands(page, number, line.strip())
    ]


def commands_of_make(*targets: str) -> list[Command]:
    """Return the commands that `make` would run for some targets, those of the application without their folder."""
    told = subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    lines = re.sub(r"\S+/labelspace ", "labelspace ", told.replace("\\\n", " ")).splitlines()
    return [command for line in lines for command in _commands(ROOT / "Makefile", 0, line)]


def _commands(page: Path, line: int, text: str) -> list[Command]:
    """Split a line of a shell into commands, at pipes and redirections."""
    commands: list[list[str]] = [[]]
    for word in shlex.split(text, comments=True):
        if word in _SHELL:
            commands.append([])
        else:
            commands[-1].append(word)
    return [Command(page, line, tuple(words)) for words in commands if words]


def command_problem(words: tuple[str, ...]) -> str:
    """Parse a command line with the application and return its problem, or an empty string."""
    if words[0] == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = re.findall(r"^([a-z][a-z-]*):", makefile, re.MULTILINE)
        targets += [word for word in words if "=" in word and f"$({word.split('=')[0]})" in makefile]
        return "".join(f"the Makefile has no {word!r}; " for word in words[1:] if word not in targets)
    if words[0] != "labelspace":
        return ""
    import typer

    usage_error: Any = typer.BadParameter.__bases__[0]  # its module differs between versions of typer
    command, (name, *rest) = application(), words
    while commands := getattr(command, "commands", None):
        if not rest or rest[0].startswith("-"):
            known = {"--help", "-h", *(name for option in command.params for name in option.opts)}
            return "" if set(rest) <= known else f"no such option {rest[0]!r}"
        name, *rest = rest
        if name not in commands:
            return f"there is no command {name!r}"
        command = commands[name]
    if {"--help", "-h"} & set(rest):
        return ""
    try:
        command.make_context(name, rest)
    except usage_error as error:
        return error.format_message()
    known = getattr(command, "known", ())
    settings = [word.partition("=")[0] for option, word in pairwise(rest) if option == "--set"]
    return "".join(f"there is no setting {setting!r}; " for setting in settings if known and setting not in known)


@functools.cache
def application() -> Any:
    """Return the command-line application, built once because that is slow."""
    import typer

    from labelspace.cli.app import app

    return typer.main.get_command(app)


def stale_blocks(blocks: Mapping[str, Callable[[], str]], pages: Iterable[Path]) -> list[str]:
    """Return the generated blocks that differ from the text between their markers on a page, or are on no page."""
    found = []
    texts = {page.name: page.read_text(encoding="utf-8") for page in pages}
    for block, make in blocks.items():
        start, end = f"<!-- {block} -->\n", f"\n<!-- /{block} -->"
        told = {name: text.split(start)[1].split(end)[0] for name, text in texts.items() if start in text}
        found += [f"{name}: the block {block} is stale" for name, text in told.items() if text != make()]
        found += [] if told else [f"the block {block} is on no page"]
    return found


def options_of(command: str) -> set[str]:
    """Return the long options of a command, or of all commands for '', without `--help`."""
    found = application().commands[command] if command else application()
    # A command with subcommands has one section for all.
    parts = [found, *getattr(found, "commands", {}).values()] if command else [found]
    given = {option for part in parts for each in part.params for option in (*each.opts, *each.secondary_opts)}
    return {option for option in given if option.startswith("--")} - {"--help"}


def options_by_section(page: Path) -> dict[str, set[str]]:
    """Return the options named under each heading `## labelspace COMMAND`; those above the first are under ''."""
    parts = ["", *re.split(r"^## labelspace ([\w-]+)$", page.read_text(encoding="utf-8"), flags=re.MULTILINE)]
    return {
        name: set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", text)) - {"--help"}
        for name, text in zip(parts[::2], parts[1::2], strict=True)
    }


@contextmanager
def tiny_encoder_stands_in(folder: Path) -> Iterator[None]:
    """Resolve the default encoder's names to a folder within the block; change nothing else."""
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

    Python blocks run unchanged. With `with_commands`, the `labelspace` lines of console blocks run between them in this
    process, and must exit with 0. A failure names the page and line.
    """
    from labelspace.errors import LabelSpaceWarning

    namespace: dict[str, Any] = {"__name__": "__page__"}
    ran = 0
    with tiny_encoder_stands_in(encoder_folder), warnings.catch_warnings():
        # The tiny encoder has random weights, so training may warn that it has gone wrong.
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
    # Leading empty lines make the line numbers of a traceback those of the page.
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
    """Return blocks in a language that is neither run, parsed nor plain text; `py` or none would not run."""
    known = RUN | PARSED | ONLY_SHOWN
    return [f"{block}: {block.language or 'no language'}" for block in blocks_of(page) if block.language not in known]


def skips(path: Path) -> list[str]:
    """Return lines that tell a runner to skip an example."""
    lines = path.read_text(encoding="utf-8").splitlines()
    return [f"{path.name}:{number}" for number, line in enumerate(lines, 1) if "+SKIP" in line]


def not_mentioned(names: list[str], text: str) -> list[str]:
    """Return the names that a text never mentions as code."""
    code = " ".join(re.findall(r"`([^`\n]+)`", text))
    return [name for name in names if not re.search(rf"(?<!\w){re.escape(name)}(?!\w)", code)]


def dead_paths(page: Path, root: Path = ROOT) -> list[str]:
    """Return missing files and folders of this project that a page names in code spans or links.

    A name in a code span begins at the root or in `src/labelspace`, where a module may stand without its ending.
    """
    text = prose_of(page)
    package = ROOT / "src" / "labelspace"
    folders = [path.name for path in package.iterdir() if path.is_dir()]
    named = re.findall(rf"`((?:src|tests|examples|benchmarks|docs|{'|'.join(folders)})/[\w./-]+)", text)
    links = [
        link for link in re.findall(r"\]\(([^)#\s]+)", text) if "://" not in link and not link.startswith("mailto")
    ]
    places = {name: (root / name.rstrip("."), package / name.rstrip("."), package / f"{name}.py") for name in named}
    gone = [name for name, tried in places.items() if not any(place.exists() for place in tried)]
    return gone + [link for link in links if not (page.parent / link).exists()]


def dead_names(page: Path) -> list[str]:
    """Return dotted names below `labelspace` in code spans that do not exist."""
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
