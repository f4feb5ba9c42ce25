"""`labelspace fit` with a hosted model as a view: its price, --limit, and kill -9."""

import signal
import subprocess
import threading
import time

import pytest

from families.endpoint_server import Server

TEXTS = [
    f"the {who} {what} the {which}"
    for who in ("team", "bank", "player", "price", "match", "market")
    for what in ("won", "lost", "closed", "opened")
    for which in ("game", "money", "cup", "rate")
]

pytestmark = pytest.mark.usefixtures("no_key_in_environment")


@pytest.fixture
def words(label_file, tiny_encoder_folder, tmp_path):
    """Return the words of a command that fits with a hosted view."""
    pool = tmp_path / "pool.csv"
    pool.write_text("text\n" + "\n".join(TEXTS) + "\n")

    def made(url, *more):
        fixed = ["fit", label_file, "--method", "consensus", "--pool", pool, "--student", "words"]
        views = ["--encoder", tiny_encoder_folder, "--set", "view_steps=1", "--views", f"words,openai:m@{url}"]
        return [*fixed, *views, "--out", tmp_path / "model", *more]

    return made


@pytest.mark.slow
def test_the_command_tells_the_calls_and_limit_bounds_them(run, words):
    with Server() as server:
        found = run(*words(server.url, "--limit", "7", "--set", "price=0.5"))
        assert found.exit_code == 0, found.output
        assert len(server.texts) == 7
        assert f"note: openai:m@{server.url}: 7 calls, about" in found.stderr
        assert "at 0.5 per million" in found.stderr
        quiet = run(*words(server.url, "--limit", "7", "--overwrite", "--quiet"))
    assert quiet.exit_code == 0
    assert "calls" not in quiet.stderr


def test_limit_is_one_setting_with_slow_documents_and_goes_with_consensus_alone(
    run, refused, words, label_file, tmp_path
):
    line = refused(run(*words("http://localhost/v1", "--limit", "7", "--set", "slow_documents=8")))
    assert line == "error: --set slow_documents and --limit are one setting; leave one out."
    line = refused(run("fit", label_file, "--out", tmp_path / "m", "--limit", "7"))
    assert line.startswith("error: --limit does nothing with --method description")
    assert "at least 1" in refused(run(*words("http://localhost/v1", "--limit", "0")))


def test_a_wrong_key_ends_the_command_with_one_line(run, words, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with Server(fails=lambda body: 401) as server:
        found = run(*words(server.url, "--quiet"))
    (line,) = found.stderr.splitlines()
    assert found.exit_code == 2
    assert "refuses a key (401)" in line
    assert "secret" not in found.output
    assert len(server.bodies) == 1


@pytest.mark.slow
def test_after_kill_nine_the_second_run_asks_only_the_rest(command_line, one_thread, words, tmp_path):
    go_on = threading.Event()
    with Server(fails=lambda body: None if len(server.bodies) <= 72 or go_on.wait(60) else 500) as server:
        line = command_line(*words(server.url, "--checkpoint", tmp_path / "run"))
        deadline = time.monotonic() + 120
        with subprocess.Popen(line, stdout=-1, stderr=-1, text=True, env=one_thread) as killed:
            # The server holds its answers back, so that the command cannot end before it is killed.
            while len(list((tmp_path / "run").glob("scores/*/*.safetensors"))) < 2 and time.monotonic() < deadline:
                time.sleep(0.01)
            killed.send_signal(signal.SIGKILL)
            _, said = killed.communicate(timeout=60)
        assert killed.returncode == -signal.SIGKILL, said
        go_on.set()
        while server.now:
            time.sleep(0.01)
        before = set(server.texts)
        server.bodies.clear()
        done = subprocess.run(
            [*line, "--resume"], capture_output=True, text=True, check=False, env=one_thread, timeout=120
        )
    assert done.returncode == 0, done.stderr
    # The answers of whole blocks of 32 are kept.
    assert len(server.texts) == len(TEXTS) - 64
    assert len(before - set(server.texts)) == 64
    assert before | set(server.texts) == set(TEXTS)
    assert "32 calls, " in done.stderr
    assert "64 of 96 documents are answered already" in done.stderr
