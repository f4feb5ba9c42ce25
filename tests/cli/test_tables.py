"""Files as a German spreadsheet or the hub writes them work in predict, fit --pool, fit --labelled and evaluate."""

import csv
import json

import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from labelspace.corpus import open_table

ROWS = [
    ("the team, at 1,5 percent", "sports"),
    ("das Spiel: „schön“", "sports"),
    ("the bank lost; the market fell", "money"),
    ("Grüße vom Markt\nund von der Bank", "money"),
]


def write(path, delimiter, encoding):
    with path.open("w", newline="", encoding=encoding) as out:
        csv.writer(out, delimiter=delimiter).writerows([("text", "label", "größe"), *((*row, "1,5") for row in ROWS)])
    return path


@pytest.fixture(params=[(";", "cp1252", "cp1252"), ("\t", "utf-16", "utf-16"), (";", "utf-8-sig", "utf-8")])
def spreadsheet(request, tmp_path):
    delimiter, encoding, found = request.param
    return write(tmp_path / "in.csv", delimiter, encoding), delimiter, found


def test_predict_reports_the_dialect_once_and_writes_plain_csv(run, saved, spreadsheet, tmp_path):
    path, delimiter, found = spreadsheet
    out = tmp_path / "out.csv"
    result = run("predict", saved, path, out, "--quiet")
    assert result.exit_code == 0, result.output
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"warning: {path}: read with the delimiter {delimiter!r} and the encoding {found}")
    with out.open(newline="", encoding="utf-8") as lines:
        assert [(row["text"], row["label"], row["größe"]) for row in csv.DictReader(lines)] == [
            (*row, "1,5") for row in ROWS
        ]
    again = run("predict", saved, path, out, "--resume")
    assert again.stdout.startswith(f"kept {out} with 4 rows")


def test_a_dialect_given_by_the_user_is_not_reported(run, saved, spreadsheet):
    path, delimiter, found = spreadsheet
    named = ["--delimiter", "tab" if delimiter == "\t" else delimiter, "--encoding", found]
    result = run("predict", saved, path, *named)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    assert "schön" in result.stdout


@pytest.mark.slow
def test_fit_and_evaluate_read_the_same_file(run, spreadsheet, label_file, tmp_path):
    path, delimiter, found = spreadsheet
    model = tmp_path / "fresh"
    common = ["--encoder", "tests/data/tiny-bert", "--out", model]
    result = run("fit", label_file, "--method", "description", "--pool", path, *common, "--max-steps", 1)
    assert result.exit_code == 0, result.output
    told = [line for line in result.stderr.splitlines() if line.startswith("warning: ")]
    assert [f"the encoding {found}" in line for line in told] == [True]
    tables = ["--delimiter", delimiter, "--encoding", found]
    learnt = run(
        "fit",
        label_file,
        "--labelled",
        path,
        "--epochs",
        1,
        "--set",
        "description_steps=1",
        "--overwrite",
        *common,
        *tables,
    )
    assert learnt.exit_code == 0, learnt.output
    assert "warning: " not in learnt.stderr
    judged = run("evaluate", model, path, "--json", "--no-baselines")
    assert judged.exit_code == 0, judged.output
    assert '"documents": 4' in judged.stdout
    assert run("evaluate", model, path, "--no-baselines", *tables).exit_code == 0


def test_a_wrong_delimiter_is_refused_in_one_line(run, refused, saved, tmp_path):
    path = write(tmp_path / "in.csv", ",", "utf-8")
    line = refused(run("predict", saved, path, "--delimiter", ";"))
    assert "read with the delimiter ';' in utf-8, has no column 'text'" in line
    assert "Its columns: text,label,größe." in line


def test_a_wrong_encoding_is_refused_in_one_line(run, refused, saved, tmp_path):
    path = write(tmp_path / "in.csv", ",", "cp1252")
    assert "not UTF-8" in refused(run("predict", saved, path, "--encoding", "utf-8"))
    assert "encoding must be auto" in refused(run("predict", saved, path, "--encoding", "klingon"))


def test_delimiter_and_encoding_are_refused_for_stdin(run, refused, saved):
    assert "need a file" in refused(run("predict", saved, "-", "--encoding", "cp1252", input="a\n"))


def test_a_workbook_can_be_predicted_evaluated_and_written(run, refused, saved, tmp_path):
    book = openpyxl.Workbook()
    assert book.active is not None
    for row in [("text", "label"), *ROWS]:
        book.active.append(row)
    book.save(tmp_path / "in.xlsx")
    result = run("predict", saved, tmp_path / "in.xlsx", tmp_path / "out.csv", "--quiet")
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    assert run("evaluate", saved, tmp_path / "in.xlsx", "--no-baselines", "--quiet").exit_code == 0
    assert run("predict", saved, tmp_path / "in.xlsx", tmp_path / "out.xlsx", "--quiet").exit_code == 0
    rows = [row for batch in open_table(tmp_path / "out.xlsx").batches() for row in batch.to_pylist()]
    assert [(row["text"], row["label"]) for row in rows] == ROWS
    in_csv = [row for batch in open_table(tmp_path / "out.csv").batches() for row in batch.to_pylist()]
    assert [row["predicted_label"] for row in rows] == [row["predicted_label"] for row in in_csv]
    assert "its other sheets" in refused(
        run("predict", saved, tmp_path / "in.xlsx", tmp_path / "in.xlsx", "--overwrite", "--prefix", "p_")
    )


@pytest.mark.usefixtures("short_search")
def test_parquet_of_the_hub_with_numbered_labels_is_learnt_from_and_evaluated(run, saved, label_file, tmp_path):
    names = ["money", "sports"]
    features = {"text": {"_type": "Value", "dtype": "string"}, "label": {"_type": "ClassLabel", "names": names}}
    texts, labels = zip(*ROWS, strict=True)
    rows = pa.table({"text": texts, "label": [names.index(label) for label in labels]})
    told = {"huggingface": json.dumps({"info": {"features": features}})}
    pq.write_table(rows.replace_schema_metadata(told), tmp_path / "rows.parquet")
    pq.write_table(pa.table({"text": texts, "label": labels}), tmp_path / "named.parquet")
    judged = [
        json.loads(run("evaluate", saved, tmp_path / file, "--json", "--no-baselines").stdout)
        for file in ("rows.parquet", "named.parquet")
    ]
    assert judged[0]["metrics"] == judged[1]["metrics"]
    options = ("--encoder", "tests/data/tiny-bert", "--epochs", 1, "--set", "description_steps=1")
    learnt = run(
        "fit", label_file, "--labelled", tmp_path / "rows.parquet", "--out", tmp_path / "m", *options, "--json"
    )
    assert json.loads(learnt.stdout)["fit"]["labelled"] == 4
