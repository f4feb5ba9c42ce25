"""The command evaluate."""

import json

import pytest

from labelspace import ZeroShotClassifier
from labelspace.evaluate import evaluate_table

PNG = b"\x89PNG"


def test_evaluate_prints_figures_table_confusion_and_baselines(run, saved, documents):
    result = run("evaluate", saved, documents)
    assert result.exit_code == 0, result.output
    for word in ("macro-F1", "accuracy", "precision", "recall", "sports", "money", "verbalizer", "descriptions"):
        assert word in result.stdout
    assert "warning" not in result.stderr


def test_evaluate_prints_json(run, saved, documents):
    result = run("evaluate", saved, documents, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert result.stderr == ""
    assert told["baselines"]
    bare = json.loads(run("evaluate", saved, documents, "--json", "--quiet", "--no-baselines").stdout)
    assert not bare["baselines"]


def test_another_model_can_be_measured_beside(
    run, refused, saved, documents, label_file, tiny_encoder_folder, tmp_path
):
    options = ("--method", "zero-shot", "--encoder", tiny_encoder_folder, "--quiet")
    other = tmp_path / "other"
    assert run("fit", label_file, *options, "--out", other).exit_code == 0
    result = run("evaluate", saved, documents, "--beside", other, "--no-baselines", "--json", "--quiet")
    told = json.loads(result.stdout)
    (beside,) = told["baselines"]
    assert told["beside"] == str(other)
    alone = json.loads(run("evaluate", other, documents, "--no-baselines", "--json", "--quiet").stdout)
    assert beside["metrics"] == alone["metrics"]
    assert beside["difference"].keys() == {"macro_f1", "accuracy", "only_this_right", "only_other_right"}
    assert beside["difference"]["accuracy"].keys() == {"value", "low", "high"}
    assert "minus" in run("evaluate", saved, documents, "--beside", other, "--no-baselines").stdout
    assert "nowhere" in refused(run("evaluate", saved, documents, "--beside", tmp_path / "nowhere"))
    assert "--beside takes a saved model. Got the file" in refused(
        run("evaluate", saved, documents, "--beside", label_file)
    )


def test_evaluate_refuses_an_invalid_path_for_a_picture(run, refused, saved, documents, tmp_path):
    assert "nowhere" in refused(run("evaluate", saved, documents, "--confusion", tmp_path / "nowhere" / "x.png"))
    assert ".png, .svg, .pdf" in refused(run("evaluate", saved, documents, "--confusion", tmp_path / "x.gif"))
    both = ("--confusion", tmp_path / "a.png", "--rejection-curve", tmp_path / "a.png")
    assert "name the same file" in refused(run("evaluate", saved, documents, *both))
    line = refused(run("evaluate", saved, documents, "--rejection-curve", tmp_path / "nowhere" / "x.png"))
    assert "there is no folder" in line
    line = refused(run("evaluate", saved, documents, "--rejection-curve", tmp_path / "x"))
    assert "--rejection-curve must end in .png, .svg, .pdf. Got 'x'" in line


def test_evaluate_prints_and_draws_the_rejection_curve(run, saved, documents, tmp_path):
    picture = tmp_path / "rejection.png"
    result = run("evaluate", saved, documents, "--rejection-curve", picture, "--no-baselines")
    assert result.exit_code == 0, result.output
    assert picture.read_bytes().startswith(PNG)
    told = result.stdout[result.stdout.index("accuracy where the least sure are not answered") :]
    lines = told.splitlines()
    assert " ".join(lines[1].split()) == "area 90 % answered 80 % answered 50 % answered"
    starts = ("1 - highest probability", "softmax entropy", "random", "best possible")
    assert len(lines) == 2 + len(starts)
    assert all(line.startswith(start) for line, start in zip(lines[2:], starts, strict=True))


def test_the_rejection_curve_can_be_printed_as_json(run, saved, documents, tmp_path):
    options = ("--rejection-curve", tmp_path / "rejection.svg", "--no-baselines", "--json", "--quiet")
    told = json.loads(run("evaluate", saved, documents, *options).stdout)
    rows = {row["by"]: row for row in told["rejection"]}
    assert list(rows) == ["1 - highest probability", "softmax entropy", "random", "best possible"]
    assert rows["random"]["area"] == pytest.approx(told["metrics"]["accuracy"])
    assert all(set(row["accuracy_at_coverage"]) == {"0.9", "0.8", "0.5"} for row in rows.values())
    plain = json.loads(run("evaluate", saved, documents, "--no-baselines", "--json", "--quiet").stdout)
    assert told.keys() - plain.keys() == {"rejection"}
    assert told["metrics"] == plain["metrics"]


@pytest.mark.slow
def test_the_models_own_uncertainty_has_the_first_rejection_curve(run, documents, tiny_encoder_folder, tmp_path):
    from labelspace import UncertaintyClassifier

    clf = UncertaintyClassifier(encoder=tiny_encoder_folder, epochs=1, cache=None)
    texts = ["the team won", "a loan", "a match", "the market"]
    clf.fit(texts, ["sports", "money"] * 2).set_coverage(0.5, texts, by="uncertainty").save(tmp_path / "model")
    options = ("--rejection-curve", tmp_path / "rejection.svg", "--no-baselines", "--json", "--quiet")
    result = run("evaluate", tmp_path / "model", documents, *options)
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert [row["by"] for row in told["rejection"]][:2] == ["the model's uncertainty", "1 - highest probability"]
    assert [band["level"] for band in told["difficulty"]] == ["easy", "semi-hard", "hard"]
    assert sum(band["documents"] for band in told["difficulty"]) == told["metrics"]["documents"]
    plain = run("evaluate", tmp_path / "model", documents, *options[:3]).stdout
    assert plain.splitlines()[-4:-2] == [
        "errors by the model's uncertainty",
        next(line for line in plain.splitlines() if line.startswith("easy       below 0.8")),
    ]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["labelled", "zero-shot"])
def test_every_saved_model_has_a_rejection_curve(run, label_file, documents, tiny_encoder_folder, tmp_path, method):
    more = ("--labelled", documents, "--epochs", 1) if method == "labelled" else ("--method", method)
    fitted = run("fit", label_file, "--encoder", tiny_encoder_folder, "--out", tmp_path / "model", *more)
    assert fitted.exit_code == 0, fitted.output
    result = run("evaluate", tmp_path / "model", documents, "--rejection-curve", tmp_path / "rejection.png")
    assert result.exit_code == 0, result.output
    assert (tmp_path / "rejection.png").exists()


def test_a_label_file_can_be_evaluated_without_training(run, label_file, documents, tiny_encoder_folder):
    options = ("--encoder", tiny_encoder_folder, "--no-baselines", "--json", "--quiet")
    for anchor in ("verbalizer", "descriptions"):
        alone = ZeroShotClassifier(label_file, tiny_encoder_folder, anchor=anchor).fit()
        expected = evaluate_table(alone, documents, baselines=False).metrics
        told = json.loads(run("evaluate", label_file, documents, *options, "--anchor", anchor).stdout)
        assert told["metrics"] == pytest.approx(expected.to_dict())
    told = json.loads(run("evaluate", label_file, documents, *options, "--threshold", "1").stdout)
    assert told["metrics"]["coverage"] == 0


@pytest.mark.parametrize("option", ["--encoder", "--anchor", "--dtype"])
def test_options_for_a_label_file_are_refused_with_a_saved_model(run, refused, saved, documents, option):
    assert f"{option} goes with a label file" in refused(run("evaluate", saved, documents, option, "verbalizer"))


def test_rows_without_a_label_count_as_texts_that_fit_none(run, saved, documents, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text(documents.read_text(encoding="utf-8").replace('"money"', "null"), encoding="utf-8")
    options = ("--threshold", "1", "--no-baselines", "--json", "--quiet")
    told = json.loads(run("evaluate", saved, rows, *options, "--count-none").stdout)
    fit_none = told["per_label"][-1]
    assert (fit_none["label"], fit_none["recall"], told["metrics"]["left_out"]) == ("none of these", 1.0, 0)
    without = json.loads(run("evaluate", saved, rows, *options).stdout)
    assert without["metrics"]["left_out"] == fit_none["support"] > 0
    picture = tmp_path / "confusion.png"
    assert run("evaluate", saved, rows, "--count-none", "--confusion", picture).exit_code == 0
    assert picture.read_bytes().startswith(PNG)


def test_the_columns_of_a_file_can_be_chosen(run, saved, tmp_path):
    file = tmp_path / "rows.csv"
    file.write_text("review,topic\nthe team won,sports\na loan,money\n")
    result = run("evaluate", saved, file, "--text-column", "review", "--label-column", "topic")
    assert result.exit_code == 0, result.output
