"""The commands init and lint."""

import io
import json
import sys

import pytest

from labelspace import LabelSpace


def test_init_writes_a_label_file_from_names(run, tmp_path):
    file = tmp_path / "topics.yaml"
    result = run("init", file, "--names", "sports, money", "--names", "world", "--template", "About {label}.")
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {file} with 3 labels\n"
    assert f"labelspace lint {file}" in result.stderr
    space = LabelSpace.from_file(file)
    assert (space.name, space.names, space.template) == ("topics", ("sports", "money", "world"), "About {label}.")


def test_a_quoted_name_of_init_may_hold_a_comma(run, tmp_path):
    run("init", tmp_path / "a.yaml", "--names", 'war, "food, drink"', "--names", "it's 5\" wide")
    assert LabelSpace.from_file(tmp_path / "a.yaml").names == ("war", "food, drink", "it's 5\" wide")


@pytest.mark.parametrize(
    "names", ["配送\uff0c登录\uff0c退款", "配送、登录、退款", "配送\uff0c登录, 退款", "配送\u060c登录\u060c 退款"]
)
def test_names_of_init_may_stand_between_the_commas_of_other_scripts(run, tmp_path, names):
    run("init", tmp_path / "a.yaml", "--names", names)
    assert LabelSpace.from_file(tmp_path / "a.yaml").names == ("配送", "登录", "退款")


def test_a_name_of_init_keeps_a_mark_that_is_no_comma_of_the_list(run, tmp_path):
    run("init", tmp_path / "a.yaml", "--names", "食品、饮料\uff0c服装", "--names", '"配送\uff0c登录"')
    assert LabelSpace.from_file(tmp_path / "a.yaml").names == ("食品、饮料", "服装", "配送\uff0c登录")
    run("init", tmp_path / "b.yaml", "--names", '"食品,饮料"、服装、6" 屏幕')
    assert LabelSpace.from_file(tmp_path / "b.yaml").names == ("食品,饮料", "服装", '6" 屏幕')


def test_init_takes_over_the_labels_of_a_spreadsheet(run, refused, tmp_path):
    (tmp_path / "old.csv").write_text("\ufefflabel;description;;\nsports;Teams play.;;\nno;;;\n;;;\n", encoding="utf-8")
    command = ("init", tmp_path / "new.yaml", "--from", tmp_path / "old.csv", "--template", "On {label}.")
    assert "with 2 labels" in run(*command).stdout
    written = LabelSpace.from_file(tmp_path / "new.yaml")
    assert (written.names, written["sports"].descriptions) == (("sports", "no"), ("Teams play.",))
    assert written.verbalizers == ("On sports.", "On no.")
    assert "--overwrite" in refused(run(*command))
    assert "leave one out" in refused(run(*command, "--overwrite", "--names", "a,b"))


def test_init_keeps_an_existing_file_without_overwrite(run, refused, label_file):
    before = label_file.read_text()
    assert "--overwrite" in refused(run("init", label_file, "--names", "a,b"))
    assert label_file.read_text() == before
    assert run("init", label_file, "--names", "a,b", "--overwrite").exit_code == 0
    assert LabelSpace.from_file(label_file).names == ("a", "b")


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["new.yaml"], "--names"),
        (["new.yaml", "--names", "one"], "two"),
        (["new.yaml", "--names", "one,one"], "one"),
        (["new.yaml", "--names", "a,b", "--template", "no place"], "{label}"),
        (["new.csv", "--names", "a,b"], ".yaml"),
        (["new.yaml", "--names", "a,b", "--descriptions-per-label", "0"], "--descriptions-per-label must be"),
    ],
)
def test_init_refuses_invalid_options(run, refused, tmp_path, monkeypatch, args, said):
    monkeypatch.chdir(tmp_path)
    assert said in refused(run("init", *args))
    assert list(tmp_path.iterdir()) == []


def test_init_reports_a_missing_folder_in_one_line(run, tmp_path):
    result = run("init", tmp_path / "nothing" / "labels.yaml", "--names", "a,b")
    assert result.exit_code == 1
    assert result.stderr.count("\n") == 1


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


def _type(monkeypatch, text):
    # CliRunner replaces stdin, so pretend that it is a terminal.
    monkeypatch.setattr("labelspace.cli.labels._on_a_terminal", lambda: True)
    return text


def test_init_asks_and_enter_takes_the_default(run, tmp_path, monkeypatch):
    file = tmp_path / "news.yaml"
    result = run("init", file, input=_type(monkeypatch, "\nsports, money\nworld\n\n\n"))
    assert result.exit_code == 0, result.output
    assert result.stdout == f"wrote {file} with 3 labels\n"
    space = LabelSpace.from_file(file)
    assert (space.name, space.names) == ("news", ("sports", "money", "world"))
    assert space.template == "This text is about {label}."


def test_init_asks_again_after_a_wrong_answer(run, tmp_path, monkeypatch):
    file = tmp_path / "news.yaml"
    answers = "my news\nsports\n\nsports\nmoney\n\nno place for it\nA text on {label}.\n"
    result = run("init", file, input=_type(monkeypatch, answers))
    assert result.exit_code == 0, result.output
    assert "so far: 1" in result.stderr
    assert "'sports' is there already" in result.stderr
    space = LabelSpace.from_file(file)
    assert (space.name, space.names, space.template) == ("my news", ("sports", "money"), "A text on {label}.")


def test_init_that_is_abandoned_writes_nothing(run, tmp_path, monkeypatch):
    result = run("init", tmp_path / "news.yaml", input=_type(monkeypatch, "news\nsports\n"))
    assert result.exit_code == 1
    assert "nothing was written" in result.stderr
    assert list(tmp_path.iterdir()) == []


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


def test_questions_are_asked_only_on_a_terminal(monkeypatch):
    from labelspace.cli.labels import _on_a_terminal

    monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO()))
    assert _on_a_terminal()
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    assert not _on_a_terminal()
