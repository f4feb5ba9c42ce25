"""`labelspace studio`: what it refuses, and that it serves a page to the one who has the address."""

import json
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from cli.conftest import DOCUMENTS, LABELS, command


@pytest.fixture
def files(tmp_path):
    """A label file and documents."""
    labels, documents = tmp_path / "labels.yaml", tmp_path / "docs.csv"
    labels.write_text(LABELS)
    documents.write_text(
        "text\n" + "".join(f"{text.replace(',', '')} {row}\n" for text, _ in DOCUMENTS for row in range(10))
    )
    return labels, documents


@pytest.mark.slow
def test_the_page_is_served_at_the_printed_address_and_ctrl_c_ends_it(files, tiny_encoder_folder):
    labels, documents = files
    words = command("studio", labels, "--pool", documents, "--encoder", tiny_encoder_folder, "--port", 0, "--no-open")
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S{32}", address)
            with urllib.request.urlopen(address, timeout=30) as answer:
                assert "<title>labelspace studio</title>" in answer.read().decode()
                cookie = answer.headers["set-cookie"].partition(";")[0]
            home = address.partition("/?")[0]
            asked = urllib.request.Request(f"{home}/api/state", headers={"cookie": cookie})
            with urllib.request.urlopen(asked, timeout=30) as answer:
                assert [label["name"] for label in json.load(answer)["labels"]] == ["sports", "money"]
            with pytest.raises(urllib.error.HTTPError, match="403") as refused:
                urllib.request.urlopen(f"{home}/api/state", timeout=30)
            refused.value.close()
        finally:
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=60)
    assert process.returncode == 0, said
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["labels.json", "--pool", "docs.csv"], "edits YAML label files in place"),
        (["labels.yaml", "--pool", "missing.csv"], "missing.csv"),
        (["nowhere/labels.yaml", "--pool", "docs.csv"], "there is no folder nowhere; make it first"),
        (["labels.yaml", "--pool", "docs.csv", "--text-column", "body"], "body"),
        (["labels.yaml", "--pool", "docs.csv", "--limit", "0"], "--limit must be a whole number at least 5"),
        (["labels.yaml", "--pool", "docs.csv", "--port", "70000"], "--port must be a whole number"),
        (["labels.yaml"], "Missing option '--pool'"),
    ],
)
def test_wrong_use_is_one_line(run, files, tiny_encoder_folder, monkeypatch, arguments, said):
    monkeypatch.chdir(files[0].parent)
    files[0].with_suffix(".json").write_text("{}")
    result = run("studio", *arguments, "--encoder", tiny_encoder_folder, "--no-open")
    assert result.exit_code == 2
    assert said in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_port_in_use_is_told_before_the_encoder_is_opened(run, files):
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        options = ["--encoder", "no/such-encoder", "--offline", "--no-open", "--port", port]
        result = run("studio", files[0], "--pool", files[1], *options)
    assert result.exit_code == 2
    assert f"cannot serve at 127.0.0.1:{port} (Address already in use)" in result.stderr


def test_without_the_extra_the_install_command_is_told(run, files, monkeypatch):
    monkeypatch.setitem(sys.modules, "starlette", None)
    result = run("studio", files[0], "--pool", files[1])
    assert result.exit_code == 1
    assert "pip install 'labelspace[serve]'" in result.stderr
