"""Bold marks the best of a row, and a dagger marks results of code that cannot be checked out."""

import importlib
import re
import subprocess
from pathlib import Path
from types import ModuleType

import pandas as pd
import pytest

from contracts.pages import stale_blocks
from labelspace.evaluate.provenance import provenance

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def load(monkeypatch):
    """Import a script or a module of benchmarks/."""
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    return importlib.import_module


@pytest.fixture
def commits(load) -> ModuleType:
    return load("commits")


def test_bold_marks_the_best_of_a_row(load):
    layout = load("layout")
    assert layout.bold_best(["0.775", "0.823", "0.790 ± 0.010"]) == ["0.775", "**0.823**", "0.790 ± 0.010"]
    assert layout.bold_best(["0.500", "0.844 ± 0.000", "0.844"]) == ["0.500", "**0.844 ± 0.000**", "**0.844**"]


@pytest.mark.parametrize("block", ["results", "results-search", "results-mpnet", "results-mpnet-search"])
def test_the_tables_of_results_bold_the_best_number(load, block):
    figures_of_row = slice(1, 5 if block == "results" else 4)
    for line in load("tables").BLOCKS[block]().splitlines()[2:]:
        cells = [cell.strip() for cell in line.strip("|").split("|")][figures_of_row] if line.startswith("|") else []
        figures = [float(cell.strip("*").split()[0]) for cell in cells]
        assert [cell.startswith("**") for cell in cells] == [figure == max(figures) for figure in figures], line


PAGES = {
    "study": "study.md",
    "lacon": "lacon.md",
    "uncertainty": "uncertainty-study.md",
    "prefinetune": "prefinetuning-study.md",
}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_of_a_study_has_every_table_and_figure_and_no_other(load, name):
    page, study = (ROOT / "docs" / PAGES[name]).read_text(encoding="utf-8"), load(f"{name}.plan").STUDY
    opened, closed = re.findall(r"<!-- ([\w-]+) -->", page), re.findall(r"<!-- /([\w-]+) -->", page)
    assert opened == closed
    assert sorted(opened) == sorted(
        set(study.blocks) - {"study-ranges", "lacon-curve", "lacon-setfit-default"}
    )  # on other pages
    drawn = {figure for figure in re.findall(r"\]\(figures/([\w-]+)\.png\)", page) if figure in study.figures}
    assert drawn == set(study.figures)


def test_the_tables_of_settings_and_options_match_the_commands_and_configurations(load):
    stale = stale_blocks(load("settings_tables").BLOCKS, [ROOT / "README.md", *(ROOT / "docs").glob("*.md")])
    assert not stale, "\n".join([*stale, "Run: python benchmarks/tables.py"])


def test_the_page_of_the_benchmark_has_every_table_of_the_study_of_heads(load):
    page = (ROOT / "docs" / "btzsc.md").read_text(encoding="utf-8")
    assert [block for block in load("nli.plan").STUDY.blocks if f"<!-- {block} -->" not in page] == []


@pytest.mark.parametrize("name", ["lacon", "uncertainty", "prefinetune", "nli"])
def test_without_results_a_table_says_so_and_no_figure_is_drawn(load, plant, tmp_path, name):
    study = load(f"{name}.plan").STUDY
    plant(name, [])
    assert [block for block, make in study.blocks.items() if "not run yet" not in make()] == []
    assert [path for draw in study.figures.values() for path in draw(tmp_path / "none.png")] == []


def test_a_rank_is_not_bold(load):
    assert "**" not in load("tables").BLOCKS["btzsc-places"]()


def test_a_result_of_changed_code_or_of_a_missing_commit_is_marked(commits):
    (lost, *_) = commits.LOST
    known = "a" * 40
    for other, title in ((known, "AG News"), (f"{known}-dirty", "AG News†"), (lost, "AG News†"), (None, "AG News†")):
        assert commits.marked("AG News", pd.DataFrame({"provenance.commit": [known, other]})) == title


def test_a_table_with_a_mark_explains_it_once_and_one_without_does_not(load):
    layout = load("layout")
    marked = layout.markdown(["", "score"], [["AG News†", "1"], ["Emotion†", "2"]])
    assert marked.splitlines()[:4] == ["|  | score |", "|---|---:|", "| AG News† | 1 |", "| Emotion† | 2 |"]
    assert marked.splitlines()[4:] == ["", layout.DAGGER_NOTE]
    assert "†" not in layout.markdown(["", "score"], [["AG News", "1"]])


def test_results_are_counted_by_the_state_of_their_commit(commits, tmp_path):
    (lost, *_) = commits.LOST
    table = commits.Table(tmp_path / "study.jsonl")
    for name, commit in {"a": "a" * 40, "b": "b" * 40 + "-dirty", "c": lost}.items():
        table.add("main", name, {}, provenance={**provenance(data=""), "commit": commit})
    table.add("compared", "a", {}, provenance=provenance(data=""))  # of runs that are counted already
    (tmp_path / "btzsc.jsonl").write_text(f'{{"provenance": {{"commit": "{"a" * 40}"}}}}\n' * 2)
    assert commits.counts(tmp_path) == {
        commits.SINGLE: {commits.COMMITTED: 2},
        "study": {commits.COMMITTED: 1, commits.CHANGED: 1, commits.GONE: 1},
    }


def test_the_list_of_lost_commits_agrees_with_git(commits):
    history = commits.history()
    if history is None:
        pytest.skip("no whole history here to ask")
    asked = {name: dict(found) for name, found in commits.counts(history=history).items()}
    assert asked == {name: dict(found) for name, found in commits.counts().items()}, "see LOST in benchmarks/commits.py"
    assert commits.LOST.isdisjoint(history)


def test_without_a_whole_history_git_is_not_asked(commits, tmp_path):
    assert commits.history(tmp_path) is None
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.org", "-C"]
    first = tmp_path / "first"
    subprocess.run(["git", "init", "--quiet", str(first)], check=True)
    for message in ("one", "two"):
        subprocess.run([*git, str(first), "commit", "--quiet", "--allow-empty", "-m", message], check=True)
    assert len(commits.history(first)) == 2
    shallow = tmp_path / "shallow"
    subprocess.run(["git", "clone", "--quiet", "--depth", "1", first.as_uri(), str(shallow)], check=True)
    assert commits.history(shallow) is None
