"""What all commands share: help, exit codes, stdout and stderr, interrupts and errors of the system."""

import gc
import json
import os
import shlex
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from labelspace import __version__
from labelspace.classify.saved import opening
from labelspace.cli import app as application
from labelspace.cli.app import exit_code
from labelspace.cli.options import still_free
from labelspace.cli.printing import note, one_line, print_json, tell
from labelspace.errors import (
    InputError,
    LabelSpaceError,
    LabelSpaceWarning,
    MissingDependencyError,
    OutputError,
    TrainingError,
)
from labelspace.header import CLASSIFIER

COMMANDS = [
    "init",
    "lint",
    "draft",
    "encoders",
    "fit",
    "predict",
    "evaluate",
    "estimate",
    "explain",
    "figures",
    "export",
    "serve",
    "studio",
    "prefinetune",
    "train-nli",
    "bench",
]
HEAVY = ("torch", "transformers", "sentence_transformers", "sklearn", "pyarrow", "numpy", "matplotlib")


def test_the_commands_are_as_listed(commands):
    assert list(commands.commands) == COMMANDS


def test_every_option_has_help(commands):
    every = list(commands.commands.values())
    every += [part for command in every for part in getattr(command, "commands", {}).values()]
    for command in every:
        assert command.help
        for parameter in command.params:
            assert getattr(parameter, "help", None), f"{command.name}: {parameter.name}"


def test_pythons_collector_pauses_while_a_model_opens_and_goes_on_after_an_error_too(run, saved, tmp_path, monkeypatch):
    running: list[bool] = []
    load = opening.open_to_answer
    monkeypatch.setattr(
        opening, "open_to_answer", lambda *args, **options: running.append(gc.isenabled()) or load(*args, **options)
    )
    for folder, code in ((saved, 0), (tmp_path / "missing", 2)):
        assert run("explain", folder, "a text").exit_code == code
        assert gc.isenabled()
    assert running == [False, False]


def test_a_command_ends_without_a_last_look_for_garbage():
    at_exit = "import atexit, gc; atexit.register(lambda: print(gc.get_freeze_count() > 0))"
    code = f"{at_exit}; from labelspace.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"labelspace {__version__}\nTrue\n"


def test_a_command_that_imported_triton_leaves_it_no_objects_to_report_as_leaks():
    at_exit = "import atexit, gc, sys; atexit.register(lambda: print(gc.get_freeze_count()))"
    code = f"{at_exit}; sys.modules['triton'] = sys; from labelspace.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code, "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"labelspace {__version__}\n0\n"


def test_version(run):
    result = run("--version")
    assert (result.exit_code, result.stdout, result.stderr) == (0, f"labelspace {__version__}\n", "")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_of_a_command(run, command):
    result = run(command, "--help")
    assert result.exit_code == 0
    assert "Usage: labelspace" in result.stdout
    assert result.stderr == ""


def test_without_a_command_the_help_is_shown_with_exit_code_2(run):
    result = run()
    assert result.exit_code == 2
    assert "figures" in result.output


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["fot"], "Did you mean 'fit'?"),
        (["fit"], "Missing argument 'LABELS'"),
        (["fit", "labels.yaml"], "Missing option '--out'"),
        (["lint", "--stict", "x.yaml"], "--stict"),
        (["fit", "labels.yaml", "--out", "m", "--max-steps", "many"], "--max-steps"),
        (["--verison"], "--verison"),
        (
            ["fit", "l.yaml", "--pool", "a.csv", "--pool", "b.csv"],
            "--pool is there 2 times; give one file, or",
        ),
        (["fit", "l.yaml", "--labelled", "a.csv", "--labelled", "b.csv"], "--labelled is there 2 times"),
        (["lint", "l.yaml", "--pool", "a.csv", "--pool", "b.csv"], "--pool is there 2 times"),
        (["evaluate", "m", "a.csv", "--beside", "m1", "--beside", "m2"], "--beside is there 2 times; give one model."),
    ],
)
def test_wrong_use_is_one_line(run, refused, args, said):
    line = refused(run(*args))
    assert said in line
    assert "--help" in line


def test_of_another_option_given_twice_the_last_counts(run, saved):
    words = ("explain", saved, "a text", "--json", "--top")
    one, two, last = (json.loads(run(*words, *rest).stdout) for rest in ((1,), (2,), (2, "--top", 1)))
    assert last == one != two


@pytest.mark.parametrize("args", [["--help"], ["--version"], ["fit", "--help"], ["lint", "LABELS"], ["encoders"]])
@pytest.mark.slow
def test_light_commands_load_nothing_heavy(args, tmp_path, label_file, one_thread):
    # `encoders` may import huggingface_hub to look into its cache, but none of these.
    code = f"""
import atexit, sys
atexit.register(lambda: print([name for name in {HEAVY} if name in sys.modules], file=sys.stderr))
from labelspace.cli import main
main()
"""
    args = [str(label_file) if arg == "LABELS" else arg for arg in args]
    done = subprocess.run([sys.executable, "-c", code, *args], capture_output=True, text=True, env=one_thread)
    assert done.returncode == 0, done.stderr
    assert done.stderr.splitlines()[-1] == "[]"


def test_a_process_exits_with_the_code_of_the_error(own_process, tmp_path):
    done = own_process("lint", tmp_path / "nothing.yaml")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_stdout_is_reported_in_one_line(command_line, one_thread):
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            command_line("encoders"), stdout=full, stderr=subprocess.PIPE, text=True, check=False, env=one_thread
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device.\n"


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
@pytest.mark.parametrize("streams", ["2>/dev/full", ">&- 2>&- <&-"])
def test_work_goes_on_where_nobody_reads_or_writes(streams, command_line, one_thread, label_file):
    told = f"{shlex.join(command_line('lint', str(label_file)))} {streams}"
    done = subprocess.run(["sh", "-c", told], capture_output=True, text=True, check=False, env=one_thread)
    assert done.returncode == 0
    assert "Traceback" not in done.stderr
    assert ("2 labels" in done.stdout) == (streams == "2>/dev/full")


@pytest.mark.skipif(os.name == "nt", reason="needs a shell")
def test_a_command_that_would_ask_and_has_no_stdin_says_what_to_pass(command_line, one_thread, tmp_path):
    told = f"{shlex.join(command_line('init', str(tmp_path / 'labels.yaml')))} <&-"
    done = subprocess.run(["sh", "-c", told], capture_output=True, text=True, check=False, env=one_thread)
    assert (done.returncode, len(done.stderr.splitlines())) == (2, 1)
    assert done.stderr.startswith("error: no labels; give them as --names")


def test_an_encoding_without_a_letter_prints_its_number(command_line, one_thread, label_file):
    file = label_file.rename(label_file.with_name("labels \N{MONEY BAG}.yaml"))
    own = {**one_thread, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command_line("lint", str(file)), capture_output=True, check=False, env=own)
    assert done.returncode == 0, done.stderr
    assert rb"labels \U0001f4b0.yaml: 2 labels" in done.stdout


def test_what_appeared_while_a_command_worked_is_not_replaced(saved, tmp_path, capsys):
    place = tmp_path / "model"
    assert still_free(place, CLASSIFIER, overwrite=False) == place
    shutil.copytree(saved, place)
    (tmp_path / "model-2").mkdir()
    assert still_free(place, CLASSIFIER, overwrite=True) == place
    assert still_free(place, CLASSIFIER, overwrite=False) == tmp_path / "model-3"
    assert capsys.readouterr().err.startswith(f"warning: {place} has appeared meanwhile")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "mine.txt").touch()
    assert still_free(tmp_path / "other", CLASSIFIER, overwrite=True) == tmp_path / "other-2"


@pytest.mark.skipif(os.name == "nt", reason="signals differ there")
def test_a_second_ctrl_c_right_after_the_first_does_not_stop_the_saving(one_thread):
    code = """
import os, signal, time
from labelspace import cli
cli._interrupt_once()
try:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(60)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGINT)
    time.sleep(0.01)
    print("saved")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=one_thread)
    assert done.stdout == "saved\n", done.stderr


@pytest.mark.slow
def test_each_line_of_a_pipe_is_answered_at_once_and_a_closed_pipe_is_not_an_error(command_line, one_thread, saved):
    with subprocess.Popen(
        command_line("predict", saved, "-"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=one_thread,
    ) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        for text in (b"the team won", b"the bank lost"):
            process.stdin.write(text + b"\n")
            process.stdin.flush()
            assert process.stdout.readline().endswith(b"\t" + text + b"\n")
        process.stdout.close()
        try:
            process.stdin.write(b"the team won\n" * 20_000)
            process.stdin.close()
        except BrokenPipeError:
            pass
        assert process.stderr.read() == b""
    assert process.returncode == application.READER_GONE


def _refused_by_the_system() -> OutputError:
    error = OutputError("out.csv: cannot be written (the disk is full).")
    error.__cause__ = OSError(28, "No space left on device")
    return error


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError("bad"), 2),
        (LabelSpaceError("bad"), 2),
        (OutputError("there is no folder x"), 2),
        (_refused_by_the_system(), 1),
        (TrainingError("the loss is nan"), 1),
        (MissingDependencyError("umap-learn", "plot", "The map"), 1),
    ],
)
def test_wrong_use_exits_with_2_and_other_failures_with_1(error, code):
    assert exit_code(error) == code


@pytest.fixture
def trial(monkeypatch, commands):
    """Return a function that replaces what the command `encoders` does."""
    return lambda function: monkeypatch.setattr(commands.commands["encoders"], "callback", lambda **_: function())


def test_only_our_own_warnings_are_shown_each_in_one_line(run, trial):
    def noisy() -> None:
        warnings.warn("two\nlines", LabelSpaceWarning, stacklevel=1)
        warnings.warn("not yours", DeprecationWarning, stacklevel=1)
        warnings.simplefilter("always")  # some libraries do this when imported
        warnings.warn("not yours either", UserWarning, stacklevel=1)
        note("by the way")

    trial(noisy)
    before = list(warnings.filters)
    result = run("encoders")
    assert result.exit_code == 0
    assert result.stderr.splitlines() == ["warning: two lines", "note: by the way"]
    assert warnings.filters == before


def test_an_interrupt_exits_with_130(run, trial):
    def interrupted() -> None:
        raise KeyboardInterrupt

    trial(interrupted)
    result = run("encoders")
    assert (result.exit_code, result.stderr) == (130, "interrupted.\n")


def test_a_system_error_is_reported_in_one_line(run, trial):
    def broken() -> None:
        Path("no such folder/file").read_text()

    trial(broken)
    result = run("encoders")
    assert (result.exit_code, result.stderr) == (1, "error: no such folder/file: No such file or directory.\n")


def test_a_bug_shows_its_traceback(run, trial):
    def bug() -> None:
        raise ZeroDivisionError

    trial(bug)
    with pytest.raises(ZeroDivisionError):
        run("encoders")


def test_printed_json_holds_no_nan(capsys):
    print_json({"loss": float("nan"), "rates": (1.0, float("inf"))}, indent=None)
    tell(one_line(" a\n b"))
    out, err = capsys.readouterr()
    assert out == '{"loss": null, "rates": [1.0, null]}\n'
    assert err == "a b\n"
