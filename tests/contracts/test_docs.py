"""The pages are true: their code runs, their commands parse, and what they name is there.

Where a page says `all-MiniLM-L6-v2`, the tiny encoder of the repository stands in; nothing else is replaced.
"""

import importlib
from pathlib import Path

import pytest

import labelspace
from contracts.pages import (
    PARSED,
    ROOT,
    RUN,
    all_pages,
    blocks_of,
    command_problem,
    commands_in_prose,
    commands_of,
    dead_names,
    dead_paths,
    not_mentioned,
    options_by_section,
    options_of,
    run_page,
    skips,
    unknown_languages,
)
from contracts.source import python_files
from labelspace.config import CONFIGS

PAGES = all_pages()
DOCS = ROOT / "docs"
# Pages whose commands are run one after the other, with their Python blocks between.
WITH_COMMANDS = {"quickstart.md"}
# They train for tens of seconds; the other pages run before each commit.
SLOW = {"quickstart.md", "few-labels.md", "python.md", "README.md"}


def name_of(page: Path) -> str:
    return page.name


@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=[pytest.mark.slow] * (page.name in SLOW)) for page in PAGES], ids=name_of
)
def test_every_python_block_of_a_page_runs(page, tiny_encoder_folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABELSPACE_CACHE", str(tmp_path / "cache"))  # where a page lets token states be kept
    with_commands = page.name in WITH_COMMANDS
    ran = run_page(page, tiny_encoder_folder, with_commands=with_commands)
    languages = [block.language for block in blocks_of(page)]
    assert ran >= sum(language in RUN for language in languages)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_command_of_a_page_is_one_that_the_application_takes(page):
    commands = [command for block in blocks_of(page) if block.language in PARSED for command in commands_of(block)]
    commands += commands_in_prose(page)
    problems = [f"{command}: {problem}" for command in commands if (problem := command_problem(command.words))]
    assert problems == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_of_a_page_is_in_a_language_that_somebody_checks(page):
    assert unknown_languages(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_only_files_that_are_there(page):
    assert dead_paths(page) == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_a_page_names_only_python_names_that_are_there(page):
    assert dead_names(page) == []


def test_no_example_is_skipped_anywhere():
    files = [*PAGES, *python_files(ROOT / "src")]
    assert [skip for path in files for skip in skips(path)] == []


def test_every_public_name_is_in_the_docs():
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    assert not_mentioned(labelspace.__all__, text) == []


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

    text = (DOCS / page).read_text(encoding="utf-8")
    parameters = [*inspect.signature(getattr(labelspace, name)).parameters]
    assert not_mentioned(parameters, text) == []


def test_every_field_of_the_search_is_in_the_docs():
    text = (DOCS / "python.md").read_text(encoding="utf-8")
    search = next(config for config in CONFIGS if config.__name__ == "SearchConfig")
    assert not_mentioned(list(vars(search())), text) == []


def test_every_error_is_in_the_docs():
    from labelspace import errors

    names = [name for name in vars(errors) if name.endswith(("Error", "Warning"))]
    assert not_mentioned(names, (DOCS / "errors.md").read_text(encoding="utf-8")) == []


def test_every_formula_and_its_test_are_in_the_docs():
    names = [
        name for folder in ("losses", "geometry") for name in importlib.import_module(f"labelspace.{folder}").__all__
    ]
    assert not_mentioned(names, (DOCS / "method.md").read_text(encoding="utf-8")) == []


def test_every_command_is_in_the_docs():
    import typer

    from labelspace.cli.app import app

    commands = list(typer.main.get_command(app).commands)  # pyright: ignore[reportAttributeAccessIssue]
    pages = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    assert [name for name in commands if f"labelspace {name}" not in pages] == []


@pytest.mark.parametrize("command", options_by_section(DOCS / "command-line.md"))
def test_the_command_line_page_names_every_option_and_no_other(command):
    said = options_by_section(DOCS / "command-line.md")[command]
    assert said == options_of(command)


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


def test_the_changelog_knows_this_version():
    assert labelspace.__version__ in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
