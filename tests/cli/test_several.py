"""Several labels a text on the command line: fit, predict, evaluate, explain."""

import csv
import json

import pytest

from cli.conftest import LABELS
from labelspace import load
from tiny_rows import tiny_rows

RATE = ("--learning-rate", "1e-4")
"""A fixed rate: the tiny encoder has no published one, and to search for one takes most of a fit."""


@pytest.fixture
def labels(tmp_path):
    """A label file that says several: true."""
    file = tmp_path / "several.yaml"
    file.write_text(LABELS.replace("name: news\n", "name: news\nseveral: true\n", 1))
    return file


@pytest.fixture
def pool(tmp_path):
    """A file of 60 documents."""
    file = tmp_path / "pool.csv"
    file.write_text("text\n" + "\n".join(f"{text} {row}" for row, text in enumerate(tiny_rows(60)[0])) + "\n")
    return file


@pytest.fixture
def line(labels, tiny_encoder_folder, tmp_path):
    """The words of a fit, without documents."""
    return ("fit", labels, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model")


@pytest.fixture
def rows(tmp_path):
    """A file of labelled rows: both labels, one, or none."""
    file = tmp_path / "rows.csv"
    texts = tiny_rows(60)[0]
    own = ["sports|money", "sports", ""]
    file.write_text("text,label\n" + "\n".join(f"{text} {row},{own[row % 3]}" for row, text in enumerate(texts)) + "\n")
    return file


@pytest.mark.slow
def test_a_pool_means_the_description_method_and_its_cuts_are_told(run, line, pool, tmp_path):
    result = run(*line, "--pool", pool, "--max-steps", 2, *RATE)
    assert result.exit_code == 0, result.output
    assert "set on 60 unlabelled documents" in result.stdout
    assert type(load(tmp_path / "model")).__name__ == "DescriptionClassifier"
    told = run(*line, "--pool", pool, "--method", "zero-shot", "--set", "labels_per_text=1.2", "--overwrite", "--json")
    cuts = json.loads(told.stdout)["cuts"]
    assert cuts["source"] == "labels_per_text"
    assert cuts["per_text"] == pytest.approx(1.2, abs=0.02)


def test_a_limit_for_none_is_refused_before_any_training(run, refused, labels, pool, tmp_path):
    never = ("--encoder", tmp_path / "never opened", "--out", tmp_path / "model")
    words = refused(run("fit", labels, *never, "--pool", pool, "--none", "auto"))
    assert "--none does nothing where the label file says several: true" in words


def test_predictions_are_evaluated_as_they_are_written(run, line, pool, tmp_path):
    assert run(*line, "--pool", pool, "--max-steps", 2, *RATE).exit_code == 0
    out = tmp_path / "out.csv"
    assert run("predict", tmp_path / "model", pool, out).exit_code == 0
    with out.open(newline="") as file:
        found = [row["predicted_label"] for row in csv.DictReader(file)]
    assert set(found) <= {"", "money", "sports", "money|sports"}
    again = json.loads(
        run("evaluate", tmp_path / "model", out, "--label-column", "predicted_label", "--json", "--quiet").stdout
    )["metrics"]
    assert (again["micro_f1"], again["exact"], again["documents"], again["left_out"]) == (1, 1, 60, 0)
    assert again["labels_per_text"] == again["predicted_per_text"]


def test_all_scores_tell_each_labels_probability_in_json_as_in_a_file(run, line, pool, tmp_path):
    assert run(*line, "--pool", pool, "--max-steps", 2, *RATE).exit_code == 0
    model, out = tmp_path / "model", tmp_path / "out.jsonl"
    assert run("predict", model, pool, out, "--all-scores").exit_code == 0
    filed = [json.loads(row) for row in out.read_text().splitlines()]
    texts = "".join(row["text"] + "\n" for row in filed)
    for more in ([], ["--most-uncertain", 60]):
        found = run("predict", model, "-", "--all-scores", "--json", *more, input=texts)
        told = {row["text"]: row["probabilities"] for row in map(json.loads, found.stdout.splitlines())}
        for row in filed:
            own = {name: row[f"predicted_probability:{name}"] for name in ("money", "sports")}
            assert told[row["text"]] == pytest.approx(own, abs=1e-6)


def test_labelled_rows_set_the_cuts_and_are_evaluated(run, line, rows, tmp_path):
    result = run(*line, "--labelled", rows, "--max-steps", 2, *RATE)
    assert result.exit_code == 0, result.output
    assert "set on 60 labelled rows" in result.stdout
    told = run("evaluate", tmp_path / "model", rows, "--beside", tmp_path / "model").stdout
    assert all(word in told for word in ("micro-F1", "macro-F1", "labels a text", "sports", "money"))
    assert "\n95 % intervals: micro-F1 " in told
    assert "(too few rows)" in told.split("beside: DescriptionClassifier")[2].splitlines()[0]
    assert "cut " in run("explain", tmp_path / "model", "the team won the match").stdout


def test_what_cannot_be_is_refused(run, refused, line, labels, pool, rows, label_file, tiny_encoder_folder, tmp_path):
    assert "and neither is given" in refused(run(*line))
    assert "and both are given" in refused(run(*line, "--pool", pool, "--labelled", rows))
    for method in ("consensus", "lacon", "uncertainty"):
        assert f"--method {method} gives each text one label" in refused(run(*line, "--pool", pool, "--method", method))
    single = ("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "one", "--method", "description")
    assert "labels_per_text needs several" in refused(run(*single, "--set", "labels_per_text=1.2"))
    assert "the cut of each label comes from documents" in refused(run("evaluate", labels, rows))
    assert run(*line, "--pool", pool, "--max-steps", 2, *RATE).exit_code == 0
    model = tmp_path / "model"
    assert "for one label a text" in refused(run("evaluate", model, rows, "--confusion", tmp_path / "a.png"))
    assert "about one label a text" in refused(run("estimate", model, pool))
    for option in ("--threshold", "--min-probability"):
        assert f"{option} is for one label a text; MODEL gives several" in refused(
            run("predict", model, pool, option, 0.1)
        )
    assert "--coverage is for one label a text" in refused(run("predict", model, pool, "--coverage", 1))
    assert "--risk is for one label a text" in refused(run("predict", model, pool, "--risk", 0.1))
    rows.write_text(rows.read_text().replace("sports|money", "sports|monye", 1))
    told = refused(run("evaluate", model, rows))
    assert "rows.csv: row 1: column 'label' holds 'monye', which is no label. Did you mean 'money'?" in told


def test_the_texts_with_a_label_nearest_to_its_cut_are_told_first(run, line, pool, tmp_path):
    assert run(*line, "--pool", pool, "--method", "zero-shot").exit_code == 0
    model = load(tmp_path / "model")
    with pool.open(encoding="utf-8", newline="") as rows:
        texts = [row["text"] for row in csv.DictReader(rows)]
    wanted = [texts[place] for place in model.most_uncertain(texts, 4)]
    asked = ("predict", tmp_path / "model", pool, "--most-uncertain", 4)
    told = [json.loads(row) for row in run(*asked, "--json").stdout.splitlines()]
    assert [row["text"] for row in told] == wanted
    answers = model.answers(wanted)
    assert [row["label"] for row in told] == answers.names.tolist()
    assert [row["probability"] for row in told] == pytest.approx(answers.confidence)
    values = [json.loads(row)["suggestions"] for row in run(*asked, "--argilla").stdout.splitlines()]
    assert [each["label"]["value"] if each else None for each in values] == [
        name.split("|") if name else None for name in answers.names
    ]
