"""predict with a model that measures uncertainty: --coverage, --risk and --most-uncertain."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from labelspace import UncertaintyClassifier, load
from tiny_rows import tiny_rows

TEXTS, NAMES = tiny_rows(40, seed=3, doubtful=0.3)
pytestmark = pytest.mark.filterwarnings("ignore:fit held out 9 rows")


@pytest.fixture
def source(tmp_path):
    """Forty documents with an id each."""
    file = tmp_path / "documents.jsonl"
    rows = [{"id": row, "text": text} for row, text in enumerate(TEXTS)]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return file


@pytest.fixture(scope="module")
def unsure(doubting):
    """The uncertainty of each document, and the order by uncertainty."""
    model = load(doubting)
    return model.predict_uncertainty(TEXTS), model.most_uncertain(TEXTS).tolist()


# ---- coverage and risk


def test_predict_writes_the_uncertainty_as_a_column(run, doubting, source, tmp_path, unsure):
    result = run("predict", doubting, source, tmp_path / "out.parquet")
    assert result.exit_code == 0, result.output
    table = pq.read_table(tmp_path / "out.parquet")
    added = ["predicted_label", "predicted_score", "predicted_probability", "predicted_uncertainty"]
    assert table.column_names == ["id", "text", *added]
    assert table["predicted_uncertainty"].to_pylist() == pytest.approx(unsure[0].tolist(), abs=1e-5)


@pytest.mark.parametrize(("option", "share"), [("--coverage", 0.5), ("--risk", 0.5)])
def test_the_limit_is_set_on_the_held_out_record_of_the_model(run, doubting, source, tmp_path, option, share):
    result = run("predict", doubting, source, tmp_path / "out.parquet", option, share)
    assert result.exit_code == 0, result.output
    model = load(doubting)
    expected = (model.set_coverage(share) if option == "--coverage" else model.set_risk(share)).predict(TEXTS)
    found = pq.read_table(tmp_path / "out.parquet")["predicted_label"].to_pylist()
    assert found == expected.tolist()
    silent = found.count(None)
    assert 0 < silent < 40
    assert f"({silent} without a label)" in result.stdout
    assert ("warning: fit held out 9 rows, too few for a coverage" in result.stderr) == (option == "--coverage")
    assert load(doubting).limit_ is None, "the saved model does not change"


def test_a_line_without_an_answer_has_an_empty_label(run, doubting, source):
    lines = run("predict", doubting, source, "--coverage", 0.5).stdout.splitlines()
    assert [line.split("\t")[0] or None for line in lines] == load(doubting).set_coverage(0.5).predict(TEXTS).tolist()
    told = run("predict", doubting, source, "--coverage", 0.5, "--json").stdout.splitlines()
    assert [json.loads(line)["label"] for line in told] == [line.split("\t")[0] or None for line in lines]


def test_full_coverage_overrides_a_saved_limit(run, doubting, source, tmp_path):
    limited = load(doubting).set_coverage(0.2).save(tmp_path / "limited")
    one, other = (run("predict", limited, source, *more).stdout.splitlines() for more in ((), ("--coverage", 1)))
    assert any(line.startswith("\t") for line in one)
    assert len(other) == len(one)
    assert not any(line.startswith("\t") for line in other)


@pytest.mark.parametrize("kind", ["threshold", "min_probability"])
def test_full_coverage_overrides_a_saved_threshold_too(run, doubting, saved, source, tmp_path, kind):
    limited = load(saved if kind == "threshold" else doubting).set_params(**{kind: 0.999}).save(tmp_path / "limited")
    one, other = (run("predict", limited, source, *more).stdout.splitlines() for more in ((), ("--coverage", 1)))
    assert any(line.startswith("\t") for line in one)
    assert other
    assert not any(line.startswith("\t") for line in other)


def test_explain_says_if_a_text_is_too_uncertain(run, doubting, tmp_path):
    limited = load(doubting).set_coverage(0.1).save(tmp_path / "limited")
    silent = [text for text, name in zip(TEXTS, load(limited).predict(TEXTS), strict=True) if name is None]
    assert "none of these (too uncertain)" in run("explain", limited, silent[0]).stdout


# ---- --most-uncertain


def test_the_most_uncertain_documents_are_printed_first(run, doubting, source, unsure):
    result = run("predict", doubting, source, "--most-uncertain", 5)
    assert result.exit_code == 0, result.output
    rows = [line.split("\t") for line in result.stdout.splitlines()]
    doubt, order = unsure
    model, texts = load(doubting), [TEXTS[place] for place in order[:5]]
    assert [row[3] for row in rows] == texts
    assert [float(row[0]) for row in rows] == pytest.approx(model.predict_proba(texts).max(axis=1), abs=1e-4)
    assert [float(row[1]) for row in rows] == pytest.approx(doubt[order[:5]], abs=1e-4)
    assert [row[2] for row in rows] == model.predict(texts).tolist()


def test_all_lines_of_stdin_are_read_before_the_order_is_decided(run, doubting, unsure):
    result = run("predict", doubting, "-", "--most-uncertain", 1, input="\n".join([*TEXTS, "the team\tand the bank"]))
    model = load(doubting)
    every = [*TEXTS, "the team\tand the bank"]
    assert result.stdout.split("\t", 3)[3] == every[model.most_uncertain(every)[0]] + "\n"


def test_the_most_uncertain_documents_can_be_printed_as_json(run, doubting, source, unsure):
    result = run("predict", doubting, source, "--most-uncertain", 3, "--json", "--all-scores", "--quiet")
    told = [json.loads(line) for line in result.stdout.splitlines()]
    assert result.stderr == ""
    assert [entry["text"] for entry in told] == [TEXTS[place] for place in unsure[1][:3]]
    assert list(told[0]) == ["probability", "uncertainty", "label", "score", "scores", "text"]
    assert list(told[0]["scores"]) == ["money", "sports", "world"]
    assert told[0]["score"] == max(told[0]["scores"].values())
    plain = run("predict", doubting, source, "--most-uncertain", 3, "--json").stdout.splitlines()
    assert list(json.loads(plain[0])) == ["probability", "uncertainty", "label", "score", "text"]
    in_order = [json.loads(line) for line in run("predict", doubting, source, "--json").stdout.splitlines()]
    assert [entry["uncertainty"] for entry in in_order] == pytest.approx(unsure[0], abs=1e-4)


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_the_most_uncertain_rows_are_written_with_all_columns(run, doubting, source, tmp_path, unsure, suffix):
    out = tmp_path / f"out.{suffix}"
    result = run("predict", doubting, source, out, "--most-uncertain", 5)
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {out} with 5 rows\n"
    if suffix == "csv":
        rows = list(csv.DictReader(out.read_text(encoding="utf-8").splitlines()))
    elif suffix == "parquet":
        rows = pq.read_table(out).to_pylist()
    else:
        rows = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    added = ["predicted_label", "predicted_score", "predicted_probability", "predicted_uncertainty"]
    assert list(rows[0]) == ["id", "text", *added]
    assert [int(row["id"]) for row in rows] == unsure[1][:5]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([source.name, out.name])


def test_asking_for_more_rows_than_there_are_gives_all(run, doubting, source, tmp_path, unsure):
    out = tmp_path / "out.parquet"
    result = run("predict", doubting, source, out, "--most-uncertain", 1000, "--coverage", 0.5, "--json")
    told, table = json.loads(result.stdout), pq.read_table(out)
    assert table["id"].to_pylist() == unsure[1]
    labels = table["predicted_label"].to_pylist()
    assert told == {"path": str(out), "rows": 40, "resumed_at": 0, "abstained": labels.count(None)}
    assert 0 < told["abstained"] < 40


def test_an_existing_file_is_kept_without_overwrite(run, refused, doubting, source, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("mine")
    assert "--overwrite" in refused(run("predict", doubting, source, out, "--most-uncertain", 2))
    assert out.read_text() == "mine"
    assert run("predict", doubting, source, out, "--most-uncertain", 2, "--overwrite").exit_code == 0
    assert len(out.read_text().splitlines()) == 3


def test_an_interrupt_writes_nothing(run, doubting, source, tmp_path, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    before = sorted(tmp_path.rglob("*"))
    monkeypatch.setattr(UncertaintyClassifier, "answer_blocks", interrupted)
    result = run("predict", doubting, source, tmp_path / "out.csv", "--most-uncertain", 2)
    assert (result.exit_code, result.stdout) == (130, "")
    assert "nothing was written" in result.stderr
    assert sorted(tmp_path.rglob("*")) == before


# ---- refusals


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["--coverage", "0.5", "--risk", "0.1"], "--coverage and --risk set the same limit; choose one"),
        (
            ["--coverage", "1", "--threshold", "0.5"],
            "--coverage 1 takes the limits away, and --threshold sets one; leave one out",
        ),
        (["--coverage", "0"], "--coverage must be a number above 0 and at most 1. Got 0.0"),
        (["--coverage", "1.5"], "--coverage must be a number above 0 and at most 1"),
        (["--coverage", "nan"], "--coverage must be a number"),
        (["--coverage", "half"], "--coverage"),
        (["--risk", "-0.1"], "--risk must be a number above 0"),
        (["--risk", "1"], "--risk must be a number above 0 and below 1. Got 1.0"),
        (["--risk", "0.01"], "a risk of 0.01 cannot be promised with confidence 0.95: of 9 rows"),
        (["--most-uncertain", "0"], "--most-uncertain must be a whole number at least 1. Got 0"),
        (["--most-uncertain", "2.5"], "--most-uncertain"),
        (["out.csv", "--most-uncertain", "2", "--resume"], "leave --resume out"),
        (["--most-uncertain", "2", "--all-scores"], "--json"),
        (["out.xls", "--most-uncertain", "2"], ".parquet"),
        (["nowhere/out.csv", "--most-uncertain", "2"], "nowhere"),
        (["out.csv", "--most-uncertain", "2", "--text-column", "txt"], "no column 'txt'"),
    ],
)
def test_invalid_shares_and_numbers_are_refused(run, refused, doubting, source, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    assert said in refused(run("predict", doubting, source, *args, "--quiet"))
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("args", [["--coverage", "0.5"], ["--risk", "0.1"]], ids=str)
@pytest.mark.parametrize("target", ["-", "out.csv"])
def test_a_model_that_measures_no_uncertainty_is_refused(
    run, refused, saved, source, tmp_path, monkeypatch, args, target
):
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    line = refused(run("predict", saved, source, target, *args))
    assert f"{args[0]} needs a model that measures uncertainty, and MODEL is a DescriptionClassifier; fit one" in line
    assert f"fit --pool FILE --none {'0.5' if args[0] == '--coverage' else 'auto'}" in line
    assert sorted(tmp_path.rglob("*")) == before


def test_a_model_of_descriptions_gives_its_least_probable_answers(run, saved, source, tmp_path):
    model = load(saved)
    texts = [TEXTS[place] for place in model.most_uncertain(TEXTS, 3)]
    sure = model.predict_proba(texts).max(axis=1)
    rows = [line.split("\t") for line in run("predict", saved, source, "--most-uncertain", 3).stdout.splitlines()]
    assert [row[1:] for row in rows] == [list(row) for row in zip(model.predict(texts), texts, strict=True)]
    assert [float(row[0]) for row in rows] == pytest.approx(sure, abs=1e-4)
    told = [
        json.loads(line) for line in run("predict", saved, source, "--most-uncertain", 3, "--json").stdout.splitlines()
    ]
    assert [list(each) for each in told] == [["probability", "label", "score", "text"]] * 3
    assert [each["text"] for each in told] == texts
    done = run("predict", saved, source, tmp_path / "out.csv", "--most-uncertain", 3)
    assert done.exit_code == 0, done.output
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as lines:
        assert [row["text"] for row in csv.DictReader(lines)] == texts


def test_a_model_without_uncertainty_orders_by_entropy(run, refused, source, tiny_encoder_folder, tmp_path):
    clf = UncertaintyClassifier(encoder=tiny_encoder_folder, epochs=1, cache=None, config={"uncertain": False})
    model = clf.fit(TEXTS[:6], NAMES[:6]).save(tmp_path / "model")
    told = run("predict", model, source, "--most-uncertain", 2).stdout.splitlines()
    assert [line.split("\t", 3)[3] for line in told] == [TEXTS[place] for place in clf.most_uncertain(TEXTS, 2)]
    line = refused(run("predict", model, source, "--coverage", 0.5))
    assert "there is no record of rows held out" in line
    table = run("predict", model, source, tmp_path / "out.parquet")
    assert table.exit_code == 0, table.output
    assert np.abs(pq.read_table(tmp_path / "out.parquet")["predicted_uncertainty"].to_numpy()).max() == 0
