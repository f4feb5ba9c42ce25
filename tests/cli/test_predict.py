"""The commands predict and explain."""

import json
import shutil

import pyarrow.parquet as pq
import pytest

from labelspace import load
from labelspace.classify import WordsClassifier
from labelspace.cli.printing import harmless
from labelspace.errors import OutputError


def test_predict_writes_a_file_with_predictions(run, saved, documents, tmp_path):
    out = tmp_path / "out.parquet"
    result = run("predict", saved, documents, out)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {out} with 6 rows\n"
    table = pq.read_table(out)
    assert table.column_names == ["text", "label", "predicted_label", "predicted_score", "predicted_probability"]
    texts = table["text"].to_pylist()
    assert table["predicted_label"].to_pylist() == load(saved).predict(texts).tolist()


def test_all_scores_threshold_and_json_can_be_combined(run, saved, documents, tmp_path):
    out = tmp_path / "out.parquet"
    result = run("predict", saved, documents, out, "--all-scores", "--threshold", 1, "--json", "--quiet")
    assert json.loads(result.stdout) == {"path": str(out), "rows": 6, "resumed_at": 0, "abstained": 6}
    assert result.stderr == ""
    assert "predicted_score:sports" in pq.read_table(out).column_names


def test_documents_without_an_answer_are_counted(run, saved, documents, tmp_path):
    result = run("predict", saved, documents, tmp_path / "out.csv", "--threshold", 1)
    assert "(6 without a label)" in result.stdout


def test_an_existing_file_is_kept_without_overwrite(run, refused, saved, documents, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    assert "--overwrite" in refused(run("predict", saved, documents, out))
    assert out.read_text() == "mine"
    assert run("predict", saved, documents, out, "--overwrite").exit_code == 0
    again = run("predict", saved, documents, out, "--resume")
    assert again.stdout == f"kept {out} with 6 rows (all of them from an earlier run; --overwrite predicts anew)\n"


def test_a_second_model_writes_its_predictions_under_another_prefix(run, refused, saved, documents, tmp_path):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    assert run("predict", saved, documents, first).exit_code == 0
    assert "choose another prefix than 'predicted_'" in refused(run("predict", saved, first, second, "--quiet"))
    assert run("predict", saved, first, second, "--prefix", "again_").exit_code == 0
    columns = second.read_text(encoding="utf-8").splitlines()[0].split(",")
    assert {"predicted_label", "again_label", "again_probability"} <= set(columns)


def test_lines_of_stdin_are_answered_in_lines(run, saved):
    result = run("predict", saved, "-", input="the team won\nthe bank\tlost\r\nno newline at the end")
    assert result.exit_code == 0, result.output
    rows = [line.split("\t", 2) for line in result.stdout.splitlines()]
    assert [row[2] for row in rows] == ["the team won", "the bank\tlost", "no newline at the end"]
    model = load(saved)
    names, scores = model.predict([row[2] for row in rows], return_scores=True)
    assert [row[0] for row in rows] == names.tolist()
    assert [float(row[1]) for row in rows] == pytest.approx(scores.max(axis=1), abs=1e-4)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-", "--text-column", "body"), "--text-column needs a file"),
        (("-", "--pair-column", "body"), "--pair-column needs a file"),
        (("-", "--prefix", "my_"), "--prefix names columns of an OUT file"),
    ],
)
def test_an_option_of_files_is_refused_for_lines(run, refused, tmp_path, words, message):
    assert message in refused(run("predict", tmp_path / "model", *words, input="the match\n"))


def test_lines_of_stdin_can_be_answered_in_json(run, saved):
    result = run("predict", saved, "-", "--json", "--all-scores", "--threshold", 1, input="the team won\na loan\n")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["text"] for entry in told] == ["the team won", "a loan"]
    assert told[0]["label"] is None
    assert told[0]["score"] == max(told[0]["scores"].values())
    assert list(told[0]["scores"]) == ["money", "sports"]  # the order of classes_
    sure = load(saved).answers(["the team won", "a loan"]).confidence
    assert [entry["probability"] for entry in told] == pytest.approx(sure.tolist(), abs=1e-4)


def test_argilla_gets_records_with_the_label_as_a_suggestion(run, refused, saved, documents, tmp_path):
    result = run("predict", saved, documents, "--argilla")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    texts = [json.loads(line)["text"] for line in documents.read_text().splitlines()]
    found = load(saved).answers(texts)
    assert [record["fields"] for record in records] == [{"text": text} for text in texts]
    assert [record["suggestions"]["label"]["value"] for record in records] == found.names.tolist()
    assert [record["suggestions"]["label"]["score"] for record in records] == found.confidence.tolist()
    none = run("predict", saved, documents, "--argilla", "--threshold", 1)
    assert {json.dumps(json.loads(line)["suggestions"]) for line in none.stdout.splitlines()} == {"{}"}
    assert "--argilla" in refused(run("predict", saved, documents, tmp_path / "out.csv", "--argilla"))
    assert "--argilla" in refused(run("predict", saved, documents, "--argilla", "--json"))


def test_a_file_can_be_answered_on_stdout(run, saved, documents):
    result = run("predict", saved, documents, "-")
    assert result.exit_code == 0, result.output
    assert len(result.stdout.splitlines()) == 6


def test_many_lines_keep_their_order(run, saved):
    lines = [f"line {number}" for number in range(600)]
    result = run("predict", saved, "-", input="\n".join(lines) + "\n")
    told = [line.split("\t") for line in result.stdout.splitlines()]
    assert [each[2] for each in told] == lines
    _, scores = load(saved).predict(lines, return_scores=True)
    assert [float(each[1]) for each in told] == pytest.approx(scores.max(axis=1), abs=1e-4)


def test_empty_lines_are_kept_with_one_warning(run, saved):
    result = run("predict", saved, "-", input="one\n\n\ntwo\n")
    assert len(result.stdout.splitlines()) == 4
    assert result.stderr.count("warning:") == 1
    assert "stdin: line 2" in result.stderr


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["-", "out.csv"], "leave OUT out"),
        (["-", "--resume"], "--resume"),
        (["-", "--all-scores"], "--json"),
        (["-", "--top", "2"], "--json"),
        (["DOCUMENTS", "out.csv", "--top", "0"], "--top"),
        (["DOCUMENTS", "out.csv", "--top", "2", "--all-scores"], "choose one"),
        (["DOCUMENTS", "out.csv", "--resume", "--overwrite"], "choose one"),
        (["DOCUMENTS", "out.csv", "--threshold", "nan"], "threshold"),
        (["DOCUMENTS", "out.xls"], ".parquet"),
        (["DOCUMENTS", "nowhere/out.csv"], "nowhere"),
        (["nothing.csv", "out.csv"], "nothing.csv"),
        (["DOCUMENTS", "out.csv", "--device", "abacus"], "device"),
        (["DOCUMENTS", "out.csv", "--workers", 0], "--workers must be"),
        (["DOCUMENTS", "--workers", 2], "--workers needs an OUT file"),
    ],
)
def test_predict_refuses_invalid_options(run, refused, saved, documents, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    args = [documents if arg == "DOCUMENTS" else arg for arg in args]
    assert said in refused(run("predict", saved, *args, input="a text\n"))
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk_exits_with_1_and_an_interrupt_suggests_resume(run, saved, documents, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OutputError("out.csv: cannot be written (the disk is full).") from OSError(28, "full")

    monkeypatch.setattr("labelspace.classify.predict_file", full)
    result = run("predict", saved, documents, tmp_path / "out.csv")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "error: out.csv: cannot be written (the disk is full).\n"

    def interrupted(*_, **__):
        (tmp_path / "out.csv.parts").mkdir()
        raise KeyboardInterrupt

    monkeypatch.setattr("labelspace.classify.predict_file", interrupted)
    result = run("predict", saved, documents, tmp_path / "out.csv")
    assert result.exit_code == 130
    assert "--resume" in result.stderr


def test_a_missing_text_far_down_leaves_no_output(run, refused, saved, tmp_path):
    rows = [{"text": "the team won"}] * 3000 + [{"text": None}]
    (tmp_path / "in.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    said = refused(run("predict", saved, tmp_path / "in.jsonl", tmp_path / "out.csv", "--quiet"))
    assert "in.jsonl: row 3001 is missing" in said
    assert [path.name for path in tmp_path.iterdir()] == ["in.jsonl"]


COMMANDS = [
    ["predict", "MODEL", "DOCUMENTS"],
    ["explain", "MODEL", "a text"],
    ["evaluate", "MODEL", "DOCUMENTS"],
    ["figures", "MODEL", "DOCUMENTS", "--out", "OUT", "--only", "similarity"],
]


def _command(words, **places):
    return [places.get(word, word) for word in words]


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_model_saved_with_an_absent_device_opens_on_the_best_present_one(
    run, refused, saved, documents, tmp_path, words
):
    folder = shutil.copytree(saved, tmp_path / "model")
    header = json.loads((folder / "labelspace.json").read_text())
    assert header["encoding"]["device"] == "auto"
    header["encoding"]["device"] = "cuda:99"
    (folder / "labelspace.json").write_text(json.dumps(header))
    command = _command(words, MODEL=folder, DOCUMENTS=documents, OUT=tmp_path / "figures")
    for given in ([], ["--device", "cpu"]):
        assert run(*command, *given).exit_code == 0
    assert "use 'auto' or 'cpu'" in refused(run(*command, "--device", "cuda:99"))


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_a_model_with_remote_code_needs_trust_remote_code(run, refused, own_code_model, documents, tmp_path, words):
    command = _command(words, MODEL=own_code_model, DOCUMENTS=documents, OUT=tmp_path / "figures")
    assert "allow it with trust_remote_code=True or --trust-remote-code" in refused(run(*command))
    result = run(*command, "--trust-remote-code")
    assert result.exit_code == 0, result.output


def test_explain_prints_a_verdict_with_margin_for_each_text(run, saved):
    result = run("explain", saved, "the team won the match", "a loan", "--top", 1)
    assert result.exit_code == 0, result.output
    assert result.stdout.startswith("the team won the match\n  -> ")
    assert result.stdout.count("margin") == 2


def test_on_a_terminal_a_text_gives_no_orders(monkeypatch):
    """Codes in a document could clear the screen, or write to the clipboard; a pipe gets them as they are."""
    text = "a\x1b]0;title\x07 b\x9bJ\tc\nd \u200d\u00e9"
    assert harmless(text) == text
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    assert harmless(text) == "a\\x1b]0;title\\x07 b\\x9bJ\tc\nd \u200d\u00e9"


def test_explain_prints_json(run, saved):
    told = json.loads(run("explain", saved, "the team won", "--json", "--nearest", 1).stdout)
    assert told[0]["text"] == "the team won"
    assert len(told[0]["top"]) == 2
    assert len(told[0]["top"][0]["nearest"]) == 1


@pytest.mark.parametrize("args", [["--top", "0"], ["--nearest", "-1"], ["--threshold", "3"]])
def test_explain_refuses_invalid_options(run, refused, saved, args):
    refused(run("explain", saved, "a text", *args))


LONG = "the team won the match. " * 40


def test_long_texts_may_be_read_in_windows_and_the_cost_is_told(run, saved, tmp_path):
    source = tmp_path / "long.csv"
    source.write_text(f"text\n{LONG}\na loan\n", encoding="utf-8")
    plain = run("predict", saved, source, tmp_path / "cut.csv", "--all-scores")
    assert "windows" not in plain.stderr
    result = run("predict", saved, source, tmp_path / "out.csv", "--all-scores", "--long-texts", "windows")
    assert result.exit_code == 0, result.output
    assert "note: 1 of 2 texts is longer than 128 tokens; it is read in windows, about" in result.stderr
    cut, read = ((tmp_path / name).read_text(encoding="utf-8").splitlines() for name in ("cut.csv", "out.csv"))
    assert (cut[1] == read[1], cut[2] == read[2]) == (False, True)
    lines = run("predict", saved, "-", "--long-texts", "windows", input=f"{LONG}\na loan\n")
    assert "note: 1 of 2 texts is longer" in lines.stderr
    quiet = run("predict", saved, source, tmp_path / "quiet.csv", "--long-texts", "windows", "--quiet")
    assert quiet.stderr == ""


def test_windows_on_a_limit_that_was_set_on_cut_texts_are_warned_of(run, saved, tmp_path):
    pool = [f"the {who} won {row}" for who in ("team", "bank", "coach") for row in range(20)]
    clf = load(saved).set_none(pool)
    folder = clf.save(tmp_path / "limited")
    said = "warning: the limit for 'none of these' was set with long_texts='cut'"
    assert said in run("predict", folder, "-", "--long-texts", "windows", input="a loan\n").stderr
    for rest in ([], ["--long-texts", "cut"]):
        assert said not in run("predict", folder, "-", *rest, input="a loan\n").stderr


def test_explain_takes_texts_and_no_file(run, refused, saved, tmp_path):
    file = tmp_path / "report.txt"
    file.write_text("the team won")
    assert f"{file} is a file, and explain takes texts" in refused(run("explain", saved, file))
    for text in ("report.txt", f"read {file}", "a" * 5000 + ".txt", "ends with a point."):
        assert run("explain", saved, text).exit_code == 0


def test_explain_names_the_window(run, saved):
    told = run("explain", saved, LONG, "--long-texts", "windows")
    assert "\n  window " in told.stdout
    assert "\n  window " not in run("explain", saved, LONG).stdout


@pytest.mark.parametrize("command", ["predict", "explain", "evaluate"])
def test_models_without_windows_and_wrong_words_are_refused(command, run, refused, saved, documents, tmp_path):
    rest = {"predict": (documents, tmp_path / "out.csv"), "explain": ("a text",), "evaluate": (documents,)}[command]
    said = refused(run(command, saved, *rest, "--long-texts", "window"))
    assert said == "error: long_texts must be one of 'cut', 'windows'. Got 'window' instead."
    pool = ["the team won", "a match was lost", "the bank closed", "prices rise"]
    WordsClassifier(["sports", "money"]).fit(pool, ["sports", "sports", "money", "money"]).save(tmp_path / "words")
    said = refused(run(command, tmp_path / "words", *rest, "--long-texts", "windows"))
    assert said == "error: --long-texts is not for a WordsClassifier; leave it out."


def test_the_top_labels_of_a_file_stand_in_columns_of_their_own(run, saved, documents, tmp_path):
    out = tmp_path / "out.parquet"
    assert run("predict", saved, documents, out, "--top", 2, "--quiet").exit_code == 0
    table = pq.read_table(out)
    assert table.column_names[-4:] == [
        "predicted_label:1",
        "predicted_probability:1",
        "predicted_label:2",
        "predicted_probability:2",
    ]
    names, _ = load(saved).predict_top(table["text"].to_pylist(), k=2)
    assert table["predicted_label:2"].to_pylist() == names[:, 1].tolist()


def test_the_top_labels_of_a_line_are_a_list_in_json(run, saved):
    result = run("predict", saved, "-", "--json", "--top", 2, input="the team won\na loan\n")
    names, probabilities = load(saved).predict_top(["the team won", "a loan"], k=2)
    for line, own, sure in zip(result.stdout.splitlines(), names.tolist(), probabilities.tolist(), strict=True):
        found = json.loads(line)["top"]
        assert [entry["label"] for entry in found] == own
        assert [entry["probability"] for entry in found] == pytest.approx(sure)
