"""evaluate."""

import json

import pytest

PNG = b"\x89PNG"


def test_evaluate_prints_figures_table_confusion_and_baselines(run, saved, documents):
    result = run("evaluate", saved, documents)
    assert result.exit_code == 0, result.output
    for word in ("macro-F1", "accuracy", "precision", "recall", "sports", "money", "verbalizer", "descriptions"):
        assert word in result.stdout
    assert "warning" not in result.stderr


def test_evaluate_as_json(run, saved, documents):
    result = run("evaluate", saved, documents, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert told["baselines"]
    bare = json.loads(run("evaluate", saved, documents, "--json", "--quiet", "--no-baselines").stdout)
    assert not bare["baselines"]


def test_evaluate_draws_the_confusion(run, saved, documents, tmp_path):
    picture = tmp_path / "confusion.png"
    assert run("evaluate", saved, documents, "--confusion", picture).exit_code == 0
    assert picture.read_bytes().startswith(PNG)


def test_evaluate_refuses_a_picture_that_cannot_be(run, refused, saved, documents, tmp_path):
    assert "nowhere" in refused(run("evaluate", saved, documents, "--confusion", tmp_path / "nowhere" / "x.png"))
    assert ".png, .svg, .pdf" in refused(run("evaluate", saved, documents, "--confusion", tmp_path / "x.gif"))


def test_a_label_file_is_evaluated_without_training(run, label_file, documents, tiny_encoder_folder):
    result = run("evaluate", label_file, documents, "--encoder", tiny_encoder_folder, "--anchor", "verbalizer")
    assert result.exit_code == 0, result.output
    assert "macro-F1" in result.stdout


@pytest.mark.parametrize("option", ["--encoder", "--anchor", "--dtype"])
def test_what_a_saved_model_brings_itself_is_not_taken_from_the_command_line(run, refused, saved, documents, option):
    assert f"{option} goes with a label file" in refused(run("evaluate", saved, documents, option, "verbalizer"))


def test_other_columns(run, saved, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("review,topic\nthe team won,sports\na loan,money\n")
    result = run("evaluate", saved, file, "--text-column", "review", "--label-column", "topic")
    assert result.exit_code == 0, result.output
