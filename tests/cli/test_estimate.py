"""The command estimate: what it prints, with and without labels, and what it refuses."""

import csv
import json
import sys

import pytest

ROWS = [("the team won the match", "sports"), ("the bank closed early", "money"), ("prices rise again", "money")] * 20


@pytest.fixture
def written(tmp_path):
    """A function that writes the documents, the first ones labelled."""

    def write(labelled=0, *, rows=60, wrong=False):
        path = tmp_path / "documents.csv"
        with path.open("w", newline="") as file:
            table = csv.writer(file)
            table.writerow(["text", "label"])
            for number, (text, label) in enumerate(ROWS[:rows]):
                known = "sprots" if wrong else label
                table.writerow([f"{text} {number}", known if number < labelled else ""])
        return path

    return write


def test_estimate_prints_ranges_and_the_trust_in_each_label(run, saved, written):
    result = run("estimate", saved, written())
    assert result.exit_code == 0, result.output
    for word in ("accuracy 0.", "macro-F1 0.", "60 documents", "with words", "sports", "money", "trust"):
        assert word in result.stdout


def test_estimate_prints_json(run, saved, written):
    result = run("estimate", saved, written(), "--json", "--quiet")
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert told["accuracy"]["low"] <= told["accuracy"]["expected"] <= told["accuracy"]["high"]
    assert {label["name"] for label in told["labels"]} == {"sports", "money"}


def test_labels_of_some_rows_are_used(run, saved, written):
    told = json.loads(run("estimate", saved, written(10), "--label-column", "label", "--json", "--quiet").stdout)
    assert told["labelled"] == 10


def test_an_empty_document_is_told_of_once_and_by_its_row(run, saved, written):
    file = written()
    with file.open("a", encoding="utf-8") as more:
        more.write('"  ",\nthe last one,\n')
    told = run("estimate", saved, file).stderr
    assert told.count("empty or white space") == 1
    assert "row 61" in told


def test_estimate_refuses_what_it_cannot_use(run, refused, saved, written, tmp_path):
    assert "sprots" in refused(run("estimate", saved, written(3, wrong=True), "--label-column", "label"))
    assert "needs 50 different documents or more. Got 9" in refused(run("estimate", saved, written(rows=9)))
    assert "lable" in refused(run("estimate", saved, written(), "--label-column", "lable"))
    assert "nowhere" in refused(run("estimate", tmp_path / "nowhere", written()))


def test_figure_draws_the_estimate_beside_the_report(run, saved, written, tmp_path):
    plain = run("estimate", saved, written())
    result = run("estimate", saved, written(), "--figure", tmp_path / "estimate.pdf")
    assert result.exit_code == 0, result.output
    assert result.stdout == plain.stdout
    assert (tmp_path / "estimate.pdf").read_bytes().startswith(b"%PDF")


def test_a_figure_that_cannot_be_written_is_refused_before_any_work(run, refused, written, tmp_path, monkeypatch):
    model = tmp_path / "missing"  # nobody looks at it before the figure
    line = refused(run("estimate", model, written(), "--figure", tmp_path / "estimate.gif"))
    assert "--figure must end in .png, .svg, .pdf. Got 'estimate.gif' instead." in line
    assert "there is no folder" in refused(run("estimate", model, written(), "--figure", tmp_path / "no" / "a.png"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("estimate", model, written(), "--figure", tmp_path / "estimate.png")
    assert result.exit_code == 1
    assert "--figure needs the package 'matplotlib'" in result.stderr
