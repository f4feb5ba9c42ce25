"""`labelspace fit --method consensus`: options that reach every view, the summary, and kill -9."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from labelspace import load
from tiny_rows import tiny_rows

ROOT = Path(__file__).parents[2]
NEWS = ROOT.parent / "shared" / "data" / "btzsc" / "agnews"
MINILM = "sentence-transformers/all-MiniLM-L6-v2"
QUICK = ("--set", "view_steps=2")
UNGUARDED = ("--set", "guards=false", "--set", "alpha=0")


@pytest.fixture
def pool(tmp_path):
    """A file of 120 documents."""
    file = tmp_path / "pool.csv"
    file.write_text("text\n" + "\n".join(f"{text} {row}" for row, text in enumerate(tiny_rows(120)[0])) + "\n")
    return file


@pytest.fixture
def line(label_file, pool, tiny_encoder_folder, tmp_path):
    """The words of a fit."""
    start = ("fit", label_file, "--pool", pool, "--encoder", tiny_encoder_folder)
    return (*start, "--out", tmp_path / "model", *QUICK)


@pytest.mark.slow
def test_precision_and_length_reach_the_encoder_the_views_and_the_student(run, line, tiny_encoder_folder, tmp_path):
    compute = ("--dtype", "float32", "--max-tokens", "9", "--device", "cpu", "--offline")
    views = ("--views", f"{tiny_encoder_folder},zero-shot:{tiny_encoder_folder},words")
    assert run(*line, *UNGUARDED, *compute, *views).exit_code == 0
    members = load(tmp_path / "model").head_.members
    assert [(one.encoder_.dtype, one.encoder_.max_tokens) for one in members] == [("float32", 9)] * 3
    other = f"{tiny_encoder_folder}/../{tiny_encoder_folder.name}"
    assert run(*line, *UNGUARDED, *compute, "--student", other, "--overwrite").exit_code == 0
    student = load(tmp_path / "model").encoder_
    assert (student.dtype, student.max_tokens) == ("float32", 9)


def test_an_option_of_another_method_is_refused_and_told_why(run, refused, line):
    assert "does nothing with --method consensus, which --pool means" in refused(run(*line, "--max-steps", 3))


def test_evaluate_shows_each_view_alone_and_the_untrained_encoder(run, line, pool, tmp_path):
    assert run(*line, *UNGUARDED).exit_code == 0
    rows = tmp_path / "rows.csv"
    rows.write_text("text,label\nthe team won,sports\nthe bank lost money,money\n")
    told = json.loads(run("evaluate", tmp_path / "model", rows, "--json", "--quiet").stdout)
    names = [row["name"] for row in told["baselines"]]
    assert names[:2] == ["untrained: nearest verbalizer", "untrained: mean of descriptions"]
    assert [name.partition(":")[0] for name in names[2:]] == ["alone"]
    assert all(row["metrics"] for row in told["baselines"])


def test_remote_code_is_trusted_of_encoder_alone(run, refused, line, own_code_folder):
    said = refused(run(*line, "--trust-remote-code", "--views", own_code_folder, "--quiet"))
    assert "name it with --encoder and --trust-remote-code" in said


def test_the_summary_says_what_the_views_did_in_words(run, line, tiny_encoder_folder):
    result = run(*line, *UNGUARDED, "--views", f"zero-shot:{tiny_encoder_folder},words", "--student", "words")
    assert result.exit_code == 0, result.output
    told = dict(each.split("  ", 1) for each in result.stdout.splitlines())
    assert told["views"].strip() == f"{tiny_encoder_folder}, zero-shot:{tiny_encoder_folder}, words"
    assert told["pool"].strip() == "pool.csv (120 rows), 120 used"
    assert f"of {tiny_encoder_folder} and zero-shot:{tiny_encoder_folder}" in told["agreement"]
    assert "of the answers" in told["levelled"]
    assert (
        f"in the space of {tiny_encoder_folder}" in told["smoothed"] or "in the space of zero-shot" in told["smoothed"]
    )
    assert "%" in told["labels"]
    assert "on 120 documents that it did not learn from" in told["student"]
    assert told["kappa"].strip() == "agreement beyond chance: 0 none, 1 full"


def test_a_step_that_is_left_out_and_a_student_that_does_not_follow_are_told(run, line, tmp_path):
    drawn = tmp_path / "pool.csv"
    drawn.write_text("text\n" + "\n".join(f"w{row * 7919 % 83} w{row * 104729 % 89}" for row in range(40)) + "\n")
    result = run(*line, "--student", "words")
    assert result.exit_code == 0, result.output
    assert "LEFT OUT, would have changed" in result.stdout
    assert "40 documents are too few for 2 labels" in result.stdout
    assert "POORLY" in result.stdout
    assert "warning: the student follows the consensus poorly" in result.stderr


def test_json_holds_the_steps_the_shares_and_how_the_student_follows(run, line):
    result = run(*line, "--student", "words", "--json", "--quiet")
    fit = json.loads(result.stdout)["fit"]
    assert {"kappa", "documents", "held_out", "follows"} <= set(fit["taught"])
    assert {"steps", "shares", "agreement"} <= set(fit["consensus"])
    assert set(fit["steps"][0]) == {"name", "kept", "reason", "changed"}


def test_known_shares_of_the_labels_are_met_on_the_pool(run, refused, line, tmp_path):
    result = run(*line, "--prior", "sports=3，money=1", "--json", "--quiet")  # noqa: RUF001 - a Chinese comma
    assert result.exit_code == 0, result.output
    steps = json.loads(result.stdout)["fit"]["consensus"]["steps"]
    assert [step["reason"] for step in steps if step["name"] == "levelled"] == ["to the shares of the prior"]
    mean = load(tmp_path / "model").head_.shifts
    assert mean[0] != pytest.approx(0)
    for words, told in (
        ("sports=1", "prior must give each label a share (sports, money). Got {'sports': 1.0}"),
        ("sports=1,money=much", "--prior must be LABEL=SHARE,... with numbers. Got 'money=much'"),
        ("sports=0,4,money=0,6", "Got '4' without a label; write shares with a point, as in 0.4."),
        ("sports=1,money=0", "prior['money'] must be a number above 0"),
        ("sports=1,money=1,sports=2", "--prior names 'sports' twice"),
        ("", "prior must give"),
    ):
        assert told in refused(run(*line, "--prior", words, "--overwrite"))
    assert "--prior does nothing with --method zero-shot" in refused(
        run("fit", line[1], "--method", "zero-shot", "--prior", "sports=1,money=1", "--out", tmp_path / "z")
    )


@pytest.mark.parametrize(("none", "way"), [("auto", "left-out"), ("0.9", "coverage")])
def test_none_sets_a_limit_that_predict_honours_and_counts(run, line, tmp_path, none, way):
    result = run(*line, "--none", none, "--json", "--quiet")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert (told["none"]["way"], told["none"]["documents"]) == (way, 120)
    result = run("predict", told["model"], tmp_path / "pool.csv", tmp_path / "out.csv", "--quiet")
    refused = round(told["none"]["share"] * 120)
    assert f"({refused} without a label)" in result.stdout
    every = run("predict", told["model"], tmp_path / "pool.csv", tmp_path / "a.csv", "--coverage", 1)
    assert every.exit_code == 0, every.output
    assert "without" not in every.stdout


def test_a_pool_that_tells_no_limit_leaves_the_model_without_one(run, line, tmp_path):
    few = tmp_path / "pool.csv"
    few.write_text("text\n" + "\n".join(f"{text} {row}" for row, text in enumerate(tiny_rows(40)[0])) + "\n")
    result = run(*line, "--none", "auto", "--quiet")
    assert result.exit_code == 0, result.output
    assert (
        "warning: no limit for 'none of these' is set: a limit for 'none of these' needs 50 different documents"
        in result.stderr
    )
    assert load(tmp_path / "model").none_ is None


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--none", "most"), "--none must be auto or a share such as 0.95. Got 'most' instead."),
        (("--none", "1.5"), "--none must be"),
    ],
)
def test_a_wrong_way_to_set_a_limit_is_refused_at_once(run, refused, line, words, message):
    assert message in refused(run(*line, *words))


@pytest.fixture
def news(tmp_path):
    """The words of a fit of the real MiniLM on 160 real news, with the folder of its checkpoint."""
    file = tmp_path / "news.jsonl"
    texts = pq.read_table(NEWS / "train.parquet", columns=["text"])["text"][:160].to_pylist()
    file.write_text("".join(json.dumps({"text": text}) + "\n" for text in texts), encoding="utf-8")
    start = ("fit", ROOT / "examples" / "agnews.yaml", "--method", "consensus", "--pool", file, "--encoder", MINILM)
    steps = ("--set", "view_steps=2", "--set", "teaching.batch_size=16", "--max-tokens", "32", "--offline")
    return (*start, "--student", MINILM, *steps), tmp_path / "run"


@pytest.mark.slow
@pytest.mark.skipif(not NEWS.is_dir(), reason=f"no AG News at {NEWS}")
def test_a_fit_killed_between_its_views_and_in_its_student_resumes_to_the_same_model(run, stopped, news, tmp_path):
    line, checkpoint = news
    views = ("--views", f"zero-shot:{MINILM},words")
    killed = (*line, *views, "--out", tmp_path / "model", "--checkpoint", checkpoint)
    stopped(killed, checkpoint / "view-0" / "[!.]*" / "labelspace.json", "SIGKILL")  # not in the folder being written
    trained = next((checkpoint / "view-0").glob("*/model.safetensors")).stat().st_mtime_ns
    state = checkpoint / "student" / "state.json"
    stopped((*killed, "--resume"), state, "SIGKILL")
    assert 0 < json.loads(state.read_text())["step"] < 27  # of 27
    assert next((checkpoint / "view-0").glob("*/model.safetensors")).stat().st_mtime_ns == trained
    assert not (tmp_path / "model").exists()
    for words in ((*killed, "--resume"), (*line, *views, "--out", tmp_path / "straight")):
        result = run(*words)
        assert result.exit_code == 0, result.output
    one, two = load(tmp_path / "model"), load(tmp_path / "straight")
    texts = ["The team won the final", "Shares fell after the report", "A new chip for phones", "Talks on the treaty"]
    assert (one.decision_function(texts) == two.decision_function(texts)).all()
    curves = [each.fit_result_.to_dict()["consensus"]["taught"]["training"]["curve"] for each in (one, two)]
    assert curves[0]["losses"] == curves[1]["losses"]
    assert not checkpoint.exists()
