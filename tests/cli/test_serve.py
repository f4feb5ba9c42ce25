"""The command serve."""

import json
import shutil
import signal
import socket
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from labelspace import load
from labelspace.errors import ConfigError
from labelspace.serve.listening import is_own_machine, listen
from labelspace.serve.run import read_keys
from serve.service import process

TEXTS = ["the team won the match", "the bank lost money"]


def test_a_port_belongs_to_who_started_first():
    with listen("127.0.0.1", 0) as first, pytest.raises(ConfigError, match=r"choose another --port"):
        listen("127.0.0.1", first.getsockname()[1])


@pytest.mark.slow
def test_models_are_served_under_the_names_of_their_folders_to_who_brings_a_key(saved: Path, tmp_path: Path):
    other = shutil.copytree(saved, tmp_path / "other model")
    keys = tmp_path / "keys.txt"
    keys.write_text("first-key\n\n  second-key  \n", encoding="utf-8")
    line = (saved, other, "--api-key-file", keys, "--log-texts", "--max-characters", 100)
    with (
        process(tmp_path / "log", *line) as found,
        httpx.Client(base_url=found.url, timeout=60, trust_env=False) as http,
    ):
        assert f"note: serving model, other model at {found.url}" in found.log.read_text(encoding="utf-8")
        assert http.get("/healthz").json() == {"status": "ready", "models": ["model", "other model"]}
        assert http.post("/predict/model", json={"inputs": TEXTS}).status_code == 401
        http.headers["Authorization"] = "Bearer second-key"
        for name in ("model", "other%20model"):
            told = http.post(f"/predict/{name}", json={"inputs": TEXTS}).json()
            assert [each[0]["label"] for each in told] == load(saved).predict(TEXTS).tolist()
        assert http.post("/predict/model", json={"inputs": "a" * 101}).status_code == 413
        assert [model["created"] for model in http.get("/v1/models").json()["data"]] == [
            int(folder.stat().st_mtime) for folder in (saved, other)
        ]
        logged = [json.loads(line) for line in found.log.read_text(encoding="utf-8").splitlines() if line[0] == "{"]
        assert [(each["model"], each["text"]) for each in logged] == [
            (name, text) for name in ("model", "other model") for text in TEXTS
        ]
        found.running.send_signal(signal.SIGTERM)
        assert found.running.wait(30) in (0, -signal.SIGTERM)
    said = found.log.read_text(encoding="utf-8")
    assert "Traceback" not in said
    assert "second-key" not in said


@pytest.mark.slow
def test_who_serves_to_every_machine_without_a_key_is_warned_and_ctrl_c_ends_it(saved: Path, tmp_path: Path):
    with process(tmp_path / "log", saved, "--host", "0.0.0.0") as found:
        told = httpx.post(f"{found.url}/predict", json={"inputs": TEXTS[0]}, trust_env=False)
        assert told.status_code == 200
        found.running.send_signal(signal.SIGINT)
        assert found.running.wait(30) in (0, 130)
    said = found.log.read_text(encoding="utf-8")
    assert "warning: whoever reaches 0.0.0.0 may ask this service; ask for a key with --api-key-file." in said
    assert "Traceback" not in said
    assert TEXTS[0] not in said


def test_what_is_no_model_is_refused(run: Any, refused: Any, saved: Path, tmp_path: Path):
    assert "nothing" in refused(run("serve", tmp_path / "nothing", "--port", 0))
    (tmp_path / "empty").mkdir()
    assert "empty" in refused(run("serve", saved, tmp_path / "empty", "--port", 0))


def test_two_models_of_one_name_are_refused(run: Any, refused: Any, saved: Path, tmp_path: Path):
    (tmp_path / "model").mkdir()
    said = refused(run("serve", saved, tmp_path / "model", "--port", 0))
    assert "two models are called 'model'" in said
    assert "two models are called 'model'" in refused(run("serve", saved, saved / ".", "--port", 0))


def test_a_port_that_is_taken_is_refused_before_the_model_is_opened(run: Any, refused: Any, tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        assert f"cannot serve at 127.0.0.1:{port} (Address already in use)" in refused(
            run("serve", tmp_path / "nothing", "--port", port)
        )


def test_a_host_that_is_not_of_this_machine_is_refused(run: Any, refused: Any, saved: Path):
    for host in ("192.0.2.1", "no-such-host.invalid", "", "a" * 300, "host name"):
        assert f"cannot serve at {host}:" in refused(run("serve", saved, "--port", 0, "--host", host))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "cannot be read"),
        (b"", "holds no key"),
        (b" \n\t\n", "holds no key"),
        (b"good\ntwo words\n", "key 2 has white space"),
        ("schlüssel".encode(), "key 1 has white space or other than ASCII"),
        (b"\xff\xfe", "cannot be read"),
        (b"a\x00b", "key 1"),
    ],
)
def test_a_wrong_key_file_is_refused(run: Any, refused: Any, saved: Path, tmp_path: Path, content: Any, said: str):
    file = tmp_path / "keys.txt"
    if content is not None:
        file.write_bytes(content)
    assert said in refused(run("serve", saved, "--port", 0, "--api-key-file", file))


def test_keys_are_the_lines_of_a_file(tmp_path: Path):
    file = tmp_path / "keys.txt"
    file.write_text("\ufeffone\r\n two \n\n#three\n", encoding="utf-8")
    assert read_keys(file) == ["one", "two", "#three"]


def test_an_own_machine_is_one_that_no_other_reaches():
    own = ["127.0.0.1", "127.5.5.5", "::1", "localhost"]
    others = ["0.0.0.0", "::", "192.168.0.1", "example.org", ""]
    assert [is_own_machine(host) for host in (*own, *others)] == [True] * 4 + [False] * 5


def test_limits_are_checked(run: Any, refused: Any, saved: Path):
    assert "max_waiting" in refused(run("serve", saved, "--port", 0, "--max-waiting", 0))
    assert "max_characters" in refused(run("serve", saved, "--port", 0, "--max-characters", -1))
    assert run("serve", saved, "--port", 70000).exit_code == 2
    assert run("serve").exit_code == 2


@pytest.mark.parametrize("package", ["starlette", "uvicorn", "prometheus_client"])
def test_without_a_package_the_command_to_install_it_is_told(
    run: Any, saved: Path, monkeypatch: pytest.MonkeyPatch, package: str
):
    monkeypatch.setitem(sys.modules, package, None)
    result = run("serve", saved)
    assert result.exit_code == 1
    assert "labelspace[serve]" in result.stderr
