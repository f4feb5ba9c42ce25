"""Pairs of texts on the command line: two columns of a file, from fit to evaluate."""

import csv
import json

import pytest

from labelspace import load

PAIRS = [
    ("It rains.", "The street is wet.", "follows"),
    ("It rains.", "The sun shines.", "does not"),
    ("He ran.", "He moved.", "follows"),
    ("She sang.", "She was silent.", "does not"),
]
COLUMNS = ("--text-column", "premise", "--pair-column", "hypothesis")


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    file = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out).writerows([("premise", "hypothesis", "label"), *PAIRS])
    return file


@pytest.fixture(scope="module")
def judge(run, rows, tiny_encoder_folder):
    """A model fitted on pairs by the command line; do not write into it."""
    labels = rows.with_name("labels.yaml")
    labels.write_text("labels: [follows, does not]\n", encoding="utf-8")
    out = rows.with_name("judge")
    given = ("--encoder", tiny_encoder_folder, "--dtype", "float32", "--epochs", 1)
    result = run("fit", labels, "--out", out, "--labelled", rows, *COLUMNS, *given)
    assert result.exit_code == 0, result.output
    assert f"predict {out} documents.csv predicted.csv {' '.join(COLUMNS)}" in result.stderr
    return out


def test_predict_on_a_file_of_pairs_equals_predict_in_python(run, judge, rows, tmp_path):
    result = run("predict", judge, rows, tmp_path / "out.csv", *COLUMNS)
    assert result.exit_code == 0, result.output
    with (tmp_path / "out.csv").open(encoding="utf-8") as lines:
        found = [row["predicted_label"] for row in csv.DictReader(lines)]
    pairs = [pair[:2] for pair in PAIRS]
    assert found == load(judge).predict(pairs).tolist()
    lines = run("predict", judge, rows, *COLUMNS).stdout.splitlines()
    assert [tuple(line.split("\t")[2:]) for line in lines] == pairs
    told = [json.loads(line) for line in run("predict", judge, rows, *COLUMNS, "--json").stdout.splitlines()]
    assert [(entry["text"], entry["pair"]) for entry in told] == pairs


def test_the_most_uncertain_pairs_are_told_with_both_texts(run, judge, rows, tmp_path):
    pairs = [pair[:2] for pair in PAIRS]
    wanted = [pairs[place] for place in load(judge).most_uncertain(pairs, 2)]
    asked = ("predict", judge, rows, *COLUMNS, "--most-uncertain", 2)
    assert [tuple(line.split("\t")[2:]) for line in run(*asked).stdout.splitlines()] == wanted
    told = [json.loads(line) for line in run(*asked, "--json").stdout.splitlines()]
    assert [(entry["text"], entry["pair"]) for entry in told] == wanted
    records = [json.loads(line)["fields"] for line in run(*asked, "--argilla").stdout.splitlines()]
    assert [(fields["text"], fields["text_pair"]) for fields in records] == wanted
    done = run("predict", judge, rows, tmp_path / "out.csv", *COLUMNS, "--most-uncertain", 2)
    assert done.exit_code == 0, done.output
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as lines:
        assert [(row["premise"], row["hypothesis"]) for row in csv.DictReader(lines)] == wanted


def test_a_model_of_pairs_is_evaluated_without_baselines(run, judge, rows):
    result = run("evaluate", judge, rows, *COLUMNS, "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    right = load(judge).predict([pair[:2] for pair in PAIRS]) == [pair[2] for pair in PAIRS]
    assert told["metrics"]["accuracy"] == pytest.approx(right.mean())
    assert [baseline["metrics"] for baseline in told["baselines"]] == [None, None]


def test_models_of_pairs_and_of_texts_refuse_each_others_files(run, judge, saved, rows, tmp_path):
    for model, columns, said in (
        (judge, COLUMNS[:2], "the model was fitted on pairs of texts. Got texts instead"),
        (saved, COLUMNS, "the model was fitted on texts. Got pairs of texts instead"),
    ):
        for command in (
            ("predict", model, rows, tmp_path / "out.csv"),
            ("predict", model, rows),
            ("evaluate", model, rows),
        ):
            result = run(*command, *columns)
            assert (result.exit_code, said in result.stderr) == (2, True), result.output
    assert not (tmp_path / "out.csv").exists()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--pair-column", "hypotesis"), "Did you mean 'hypothesis'?"),
        (("--pair-column", "hypothesis", "--method", "uncertainty"), "--pair-column does nothing with --method uncert"),
    ],
)
def test_an_invalid_pair_column_is_refused_before_the_encoder_opens(run, label_file, rows, tmp_path, more, said):
    given = ("--labelled", rows, "--text-column", "premise", "--encoder", tmp_path / "nowhere")
    result = run("fit", label_file, "--out", tmp_path / "model", *given, *more)
    assert (result.exit_code, said in result.stderr) == (2, True), result.stderr


def test_lines_of_stdin_cannot_be_pairs(run, judge):
    result = run("predict", judge, "-", "--pair-column", "hypothesis", input="a line")
    assert (result.exit_code, "a line of stdin is one text" in result.stderr) == (2, True)


def test_explain_takes_texts_two_by_two(run, judge):
    texts = ("the team won", "a match was played", "rain", "sun")
    result = run("explain", judge, *texts, "--json")
    assert result.exit_code == 0, result.output
    assert [told["text"] for told in json.loads(result.stdout)] == ["the team won | a match was played", "rain | sun"]
    result = run("explain", judge, *texts[:3])
    assert (result.exit_code, "texts come in twos. Got 3 instead" in result.stderr) == (2, True), result.output
