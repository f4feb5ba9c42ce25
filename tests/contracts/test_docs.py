"""The docs are correct: their code runs, their commands parse, and the names in them exist.

The tiny encoder of the repository replaces `all-MiniLM-L6-v2`; nothing else is replaced.
"""

import importlib
import re
import shutil
from pathlib import Path

import pytest

import labelspace
from contracts.pages import (
    PARSED,
    ROOT,
    RUN,
    all_pages,
    application,
    blocks_of,
    command_problem,
    commands_in_prose,
    commands_of,
    commands_of_make,
    dead_names,
    dead_paths,
    not_mentioned,
    options_by_section,
    options_of,
    run_page,
    skips,
    unknown_languages,
)
from contracts.source import changes, violations
from labelspace.config import CONFIGS

PAGES = all_pages()
DOCS = ROOT / "docs"
COMMAND_LINE = DOCS / "command-line.md"
# Pages whose commands and Python blocks run in order.
WITH_COMMANDS = {"quickstart.md"}
# They train for tens of seconds; the other pages run before each commit.
SLOW = {"quickstart.md", "export.md", "few-labels.md", "python.md", "README.md"}


def name_of(page: Path) -> str:
    return page.name


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES], ids=name_of
)
def test_every_python_block_of_a_page_runs(page, tiny_encoder_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))  # for pages that cache token states
    with_commands = page.name in WITH_COMMANDS
    ran = run_page(page, tiny_encoder_folder, with_commands=with_commands)
    languages = [block.language for block in blocks_of(page)]
    assert ran >= sum(language in RUN for language in languages)


def test_every_command_of_the_pages_and_of_make_bench_parses():
    blocks = [block for page in PAGES for block in blocks_of(page) if block.language in PARSED]
    commands = [command for block in blocks for command in commands_of(block)]
    commands += [command for page in PAGES for command in commands_in_prose(page)]
    if shutil.which("make"):
        commands += commands_of_make("bench")
    problems = [f"{command}: {problem}" for command in commands if (problem := command_problem(command.words))]
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("rule", [unknown_languages, dead_paths, dead_names, skips], ids=lambda rule: rule.__name__)
def test_no_page_breaks_the_rule_on(rule):
    broken = [f"{page.name}: {found}" for page in PAGES for found in rule(page)]
    assert not broken, "\n".join(broken)


def test_no_docstring_has_an_example_that_is_skipped():
    skipped = violations(skips)
    assert not skipped, "\n".join(skipped)


def check_mentioned(names: list[str], page: str) -> None:
    missing = not_mentioned(names, (DOCS / page).read_text(encoding="utf-8"))
    assert not missing, f"docs/{page} never mentions as code: {', '.join(missing)}"


def test_every_public_name_is_in_the_docs():
    check_mentioned(labelspace.__all__, "python.md")


@pytest.mark.parametrize(
    ("name", "page"),
    [
        ("DescriptionClassifier", "python.md"),
        ("LaConClassifier", "few-labels.md"),
        ("UncertaintyClassifier", "uncertainty.md"),
    ],
)
def test_every_parameter_of_the_classifiers_is_in_the_docs(name, page):
    import inspect

    check_mentioned([*inspect.signature(getattr(labelspace, name)).parameters], page)


def test_every_field_of_the_search_is_in_the_docs():
    search = next(config for config in CONFIGS if config.__name__ == "SearchConfig")
    check_mentioned(list(vars(search())), "python.md")


def test_every_error_is_in_the_docs():
    from labelspace import errors

    names = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
    check_mentioned(names, "errors.md")


def test_every_formula_and_its_test_are_in_the_docs():
    names = [
        name for folder in ("losses", "geometry") for name in importlib.import_module(f"labelspace.{folder}").__all__
    ]
    check_mentioned(names, "method.md")


def test_the_command_line_page_lists_exactly_the_commands_and_options():
    said = options_by_section(COMMAND_LINE)
    said[""] -= {"--json", "--quiet", "--out", "--labels", "--set", "--settings"}  # options that several commands share
    assert list(said) == ["", *application().commands]
    offered = {command: sorted(options_of(command)) for command in said}
    found = changes(offered, {command: sorted(options) for command, options in said.items()})
    assert not found, "\n".join([*found, "Name each in docs/command-line.md, under the heading of its command."])


def test_every_section_of_the_command_line_begins_with_an_example():
    sections = re.split(r"^## (labelspace \S+)$", COMMAND_LINE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    examples = dict(zip(sections[::2], sections[1::2], strict=True))
    assert [name for name, text in examples.items() if f"    {name}" not in text.split("\n\n")[1]] == []


def test_exit_codes_are_those_of_the_application():
    from labelspace.cli import app

    told = set(re.findall(r"^\| (\d+) \|", COMMAND_LINE.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert told == {"0", "1", "2", str(app.INTERRUPTED), str(app.READER_GONE)}


def test_every_folder_of_the_package_is_in_the_drawing():
    text = (DOCS / "architecture.md").read_text(encoding="utf-8")
    source = ROOT / "src" / "labelspace"
    folders = [path.name for path in source.iterdir() if (path / "__init__.py").exists()]
    assert [name for name in folders if f"`{name}/`" not in text] == []


def test_every_page_is_in_the_navigation():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if f" {page}\n" not in navigation] == []


def test_the_citation_names_this_version_and_five_papers():
    import yaml

    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert citation["version"] == labelspace.__version__
    assert len(citation["references"]) == 5
    assert all(reference["title"] and reference["authors"] for reference in citation["references"])


def test_the_changelog_has_this_version():
    assert labelspace.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
