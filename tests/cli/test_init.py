"""The command init."""

import io
import sys

import pytest

from labelspace import LabelSpace


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def run_typing(commands, capsys, monkeypatch):
    """Run a command on a terminal where somebody types this; return its exit code, stdout and stderr."""

    def run_typing(typed: str, *args: object):
        monkeypatch.setattr(sys, "stdin", _Terminal(io.BytesIO(typed.encode())))
        return (commands.main(list(map(str, args)), standalone_mode=False), *capsys.readouterr())

    return run_typing


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
        (["new.yaml", "--descriptions-per-label", "0"], "--descriptions-per-label must be"),
        (["new.yaml", "--from", "old.yaml", "--descriptions-per-label", "3"], "--from brings its descriptions"),
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


def test_init_asks_and_enter_takes_the_default(run_typing, tmp_path):
    file = tmp_path / "news.yaml"
    code, stdout, stderr = run_typing("\nsports, money\nworld\n\n\n", "init", file)
    assert code == 0, stderr
    assert stdout == f"wrote {file} with 3 labels\n"
    space = LabelSpace.from_file(file)
    assert (space.name, space.names) == ("news", ("sports", "money", "world"))
    assert space.template == "This text is about {label}."


def test_init_asks_again_after_a_wrong_answer(run_typing, tmp_path):
    file = tmp_path / "news.yaml"
    answers = "my news\nsports\n\nsports\nmoney\n\nno place for it\nA text on {label}.\n"
    code, _, stderr = run_typing(answers, "init", file)
    assert code == 0, stderr
    assert "so far: 1" in stderr
    assert "'sports' is there already" in stderr
    space = LabelSpace.from_file(file)
    assert (space.name, space.names, space.template) == ("my news", ("sports", "money"), "A text on {label}.")


def test_init_that_is_abandoned_writes_nothing(run_typing, tmp_path):
    code, _, stderr = run_typing("news\nsports\n", "init", tmp_path / "news.yaml")
    assert code == 1
    assert "nothing was written" in stderr
    assert list(tmp_path.iterdir()) == []
