"""A running service for tests: the real server on a free port, in a thread of the test's process or as the command."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from labelspace.config import ServingConfig
from labelspace.serve.app import make_app
from labelspace.serve.listening import listen
from labelspace.serve.room import Served
from labelspace.serve.run import server_of

TEXTS = [
    "the team won the match in the last minute",
    "the bank said that prices will rise next year",
    "the minister asked the court for time",
    "police said nothing",
    "my card is not working and I want my money back now please",
    "Müller in Zürich 北京 ☃ مرحبا بالعالم 👩‍👩‍👧",
]


@dataclass(frozen=True)
class Service:
    """Where a service listens, and a client of it."""

    url: str
    http: httpx.Client

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def post(self, path: str, body: Any, **more: Any) -> httpx.Response:
        """Send JSON."""
        return self.http.post(path, json=body, **more)

    def send(self, path: str, body: bytes | str, **headers: str) -> httpx.Response:
        """Send bytes as JSON; `content_encoding` and the like are headers."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self.http.post(path, content=body, headers={"content-type": "application/json"} | named)

    def ask(self, text: str, model: str | None = None) -> list[dict[str, Any]]:
        """Return the labels of a text, the likeliest first."""
        found = self.post("/predict" if model is None else f"/predict/{model}", {"inputs": text})
        assert found.status_code == 200, found.text
        return found.json()[0]


@contextlib.contextmanager
def serving(
    models: dict[str, Any], config: ServingConfig | None = None, *, created: int = 0, **options: Any
) -> Iterator[Service]:
    """Serve fitted classifiers by their names."""
    config = config or ServingConfig()
    served = [
        Served(name, classifier, created=created, max_options=config.max_options) for name, classifier in models.items()
    ]
    with running(make_app(served, config, **options)) as service:
        yield service


def client_of(url: str) -> httpx.Client:
    """Return a client of this machine, without the certificates of others, which take 18 ms to load."""
    return httpx.Client(base_url=url, timeout=60, trust_env=False, verify=False)


@contextlib.contextmanager
def running(app: Any) -> Iterator[Service]:
    """Serve an application as the command does, but in a thread."""
    bound = listen("127.0.0.1", 0)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    with client_of(url) as client:
        try:
            wait_until(lambda: server.started or not thread.is_alive())
            yield Service(url, client)
        finally:
            server.should_exit = True
            thread.join(60)
            bound.close()
    assert not thread.is_alive()


def wait_until(true: Any, seconds: float = 20) -> None:
    """Wait until something is so; fail if it does not become so in time."""
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until, "it did not happen in time"
        time.sleep(0.005)


def raw(service: Service, data: bytes, *, seconds: float = 10) -> bytes:
    """Send bytes over a socket of their own; return what comes back until the server closes, or nothing more comes."""
    with socket.create_connection(("127.0.0.1", service.port), timeout=seconds) as connection:
        connection.sendall(data)
        parts = []
        with contextlib.suppress(TimeoutError, ConnectionError):
            while part := connection.recv(65536):
                parts.append(part)
        return b"".join(parts)


def request(path: str, body: Any = None, *, method: str = "POST", headers: Sequence[str] = ()) -> bytes:
    """Return the bytes of a request."""
    data = b"" if body is None else json.dumps(body).encode()
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json", *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(data)}", "", ""]).encode() + data


@dataclass(frozen=True)
class Process:
    """The command as a process of its own, and where it listens."""

    running: subprocess.Popen[bytes]
    port: int
    log: Path

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def memory(self) -> float:
        """Resident memory in MB."""
        return psutil.Process(self.running.pid).memory_info().rss / 2**20

    @property
    def files(self) -> int:
        """Open files, sockets among them."""
        return psutil.Process(self.running.pid).num_fds()


@contextlib.contextmanager
def process(log: Path, *words: object, port: int = 0) -> Iterator[Process]:
    """Run `labelspace serve` until the block ends; its stderr goes to the log."""
    line = [sys.executable, "-c", "from labelspace.cli import main; main()", "serve", *map(str, words)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    with log.open("ab") as file:
        before = log.stat().st_size
        with subprocess.Popen([*line, "--port", str(port)], stdout=file, stderr=file, env=environment) as started:
            try:
                wait_until(lambda: (started.poll() is not None) or b" at http://" in log.read_bytes()[before:], 120)
                said = log.read_text(encoding="utf-8")[before:]
                assert started.poll() is None, said
                found = Process(started, int(said.rpartition("http://")[2].split()[0].rpartition(":")[2]), log)
                wait_until(lambda: reachable(found.port))
                yield found
            finally:
                if started.poll() is None:
                    started.kill()


def reachable(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True
