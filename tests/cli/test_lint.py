"""The command lint."""

import json

import pytest

BAD = """\
labels:
  - name: sports
    descriptions: ["A match is won by a team.", "a match is won by a team."]
  - name: money
    descriptions: []
"""


@pytest.fixture
def bad_file(tmp_path):
    file = tmp_path / "bad.yaml"
    file.write_text(BAD, encoding="utf-8")
    return file


def test_lint_accepts_a_good_file(run, label_file):
    result = run("lint", label_file)
    assert result.exit_code == 0
    assert result.stdout == f"{label_file}: 2 labels, 6 descriptions: nothing to find fault with\n"


def test_lint_proposes_an_encoder_that_reads_the_language(run, tmp_path):
    file = tmp_path / "labels.yaml"
    german = "Die Bahn ist nicht pünktlich, und der Bus kommt auch zu spät."
    label = f"name: Verkehr\n  descriptions: ['{german}', 'Auf der Straße {german}']"
    file.write_text(f"labels:\n- {label}\n- name: Sport\n", encoding="utf-8")
    assert "--encoder multilingual-e5-base" in run("lint", file).stderr
    file.write_text(
        "labels:\n- name: 体育\n  descriptions: [球队赢了比赛。]\n- name: 财经\n  descriptions: [银行降低利率。]\n",
        encoding="utf-8",
    )
    assert "--encoder multilingual-e5-base" in run("lint", file).stderr
    file.write_text("labels: [sports, money]\n")
    assert "--encoder all-MiniLM-L6-v2" in run("lint", file).stderr


def test_lint_names_errors_first_and_exits_with_1(run, bad_file):
    result = run("lint", bad_file)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "error duplicate-description"
    assert any(line.startswith("  -> ") for line in lines)
    assert lines[-1].endswith("2 labels, 2 descriptions: 1 error, 1 warning, 1 info")
    assert "\x1b" not in result.stdout


def test_strict_makes_warnings_fail(run, tmp_path):
    file = tmp_path / "few.yaml"
    file.write_text("labels: [a, b]\n")
    assert run("lint", file).exit_code == 0
    assert run("lint", file, "--strict").exit_code == 1


def test_many_findings_of_one_kind_are_folded(run, tmp_path):
    file = tmp_path / "many.yaml"
    file.write_text(f"labels: {[f'label {number}' for number in range(9)]}\n")
    folded = run("lint", file).stdout
    assert "no-descriptions (9)" in folded
    assert "and 6 more" in folded
    assert folded.count("->") == 1
    assert "label 8" in run("lint", file, "--all").stdout


def test_lint_prints_json(run, bad_file):
    result = run("lint", bad_file, "--json")
    assert result.exit_code == 1
    told = json.loads(result.stdout)
    assert told["counts"] == {"error": 1, "warning": 1, "info": 1}
    assert told["findings"][0]["code"] == "duplicate-description"
    assert (told["labels"], told["descriptions"]) == (2, 2)


def test_lint_with_an_encoder_finds_texts_that_are_too_long(run, tmp_path, tiny_encoder_folder):
    file = tmp_path / "long.yaml"
    long = " ".join(["word"] * 300)
    file.write_text(f'labels: {{a: ["{long}"], b: ["A short text about something."]}}\n')
    codes = {found["code"] for found in json.loads(run("lint", file, "--json").stdout)["findings"]}
    assert "text-too-long" not in codes
    result = run("lint", file, "--json", "--encoder", tiny_encoder_folder)
    assert "text-too-long" in {found["code"] for found in json.loads(result.stdout)["findings"]}


@pytest.fixture
def pool(tmp_path):
    file = tmp_path / "pool.csv"
    rows = [
        f"the {who} {what} number {row}" for row in range(20) for who in ("team", "bank") for what in ("won", "fell")
    ]
    file.write_text("text\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return file


@pytest.mark.slow
def test_lint_with_a_pool_says_which_descriptions_hurt(run, label_file, pool, tiny_encoder_folder, tmp_path):
    figure = tmp_path / "advice.png"
    result = run("lint", label_file, "--pool", pool, "--encoder", tiny_encoder_folder, "--figure", figure)
    assert result.exit_code == 0
    assert "6 descriptions on 80 documents, the worst first" in result.stdout
    assert result.stdout.count("-> ") >= 6
    assert figure.read_bytes().startswith(b"\x89PNG")
    told = json.loads(run("lint", label_file, "--pool", pool, "--encoder", tiny_encoder_folder, "--json").stdout)
    assert len(told["advice"]["descriptions"]) == 6


def test_lint_refuses_a_pool_that_says_nothing(run, refused, label_file, pool, tiny_encoder_folder, tmp_path):
    own = ("--encoder", tiny_encoder_folder)
    one = tmp_path / "one.csv"
    one.write_text("text\nthe team won\n", encoding="utf-8")
    bare = tmp_path / "bare.yaml"
    bare.write_text("labels: [sports, money]\n", encoding="utf-8")
    for labels, documents, why in (
        (label_file, one, "50 different documents or more. Got 1"),
        (bare, pool, "no label has a description"),
    ):
        result = run("lint", labels, "--pool", documents, *own)
        assert result.exit_code == 2
        (line,) = result.stderr.splitlines()
        assert why in line
        assert f"{labels}: 2 labels" in result.stdout, "what lint found is not lost"
        assert why in refused(run("lint", labels, "--pool", documents, *own, "--json"))
    assert "txet" in refused(run("lint", label_file, "--pool", pool, "--text-column", "txet", *own))
    assert "--pool" in refused(run("lint", label_file, "--figure", tmp_path / "a.png"))
    assert "nowhere" in refused(run("lint", label_file, "--pool", pool, "--figure", tmp_path / "nowhere" / "a.png"))


@pytest.mark.parametrize("option", ["--text-column", "--delimiter", "--encoding", "--dtype"])
def test_lint_refuses_options_that_do_nothing(run, refused, label_file, tiny_encoder_folder, option):
    others = "--encoder or --pool" if option == "--dtype" else "--pool"
    assert f"{option} does nothing without {others}; leave" in refused(run("lint", label_file, option, "float32"))
    if option == "--dtype":
        assert run("lint", label_file, option, "float32", "--encoder", tiny_encoder_folder).exit_code == 0


def test_lint_takes_a_template_for_a_csv_file(run, tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("label,description\na,One two three four.\nb,Five six seven eight.\n")
    assert run("lint", file, "--template", "It is {label}.").exit_code == 0
    assert run("lint", file, "--template", "It is.").exit_code == 2
