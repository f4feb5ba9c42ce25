"""Ten thousand hostile requests: the service lives, answers others rightly, and holds on to nothing."""

import contextlib
import gzip
import json
import random
import socket
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from serve.service import TEXTS, Process, process, request, wait_until

REQUESTS = 10_000
SECRET = "zzyzx"
BODIES: list[tuple[str, Any]] = [
    ("/predict", {"inputs": f"the team {SECRET}"}),
    ("/predict", {"inputs": [f"the team {SECRET}"] * 3, "parameters": {"candidate_labels": ["rain", "sun"]}}),
    (
        "/v1/systemone",
        {"model": "news", "state": {"a": SECRET}, "questions": {"q": {"type": "noul", "instructions": "sports"}}},
    ),
    (
        "/v1/decisions",
        {"model": "news", "input": SECRET, "questions": [{"type": "predicate", "instructions": "sports"}]},
    ),
    ("/v2/models/news/infer", {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [SECRET]}]}),
]
VALUES = [
    "NaN",
    "1e999",
    "-1",
    "null",
    "true",
    "[]",
    "{}",
    '""',
    '"\\ud800"',
    "9" * 300,
    "[" * 500,
    '"' + "x" * 3000 + '"',
    "\x00",
]


def good(draw: random.Random) -> tuple[str, bytes]:
    path, body = draw.choice(BODIES)
    return path, json.dumps(body).encode()


def http(path: str, body: bytes, *headers: str, length: object = None, method: str = "POST") -> bytes:
    size = len(body) if length is None else length
    lines = [
        f"{method} {path} HTTP/1.1",
        "Host: localhost",
        "Content-Type: application/json",
        f"Content-Length: {size}",
        *headers,
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace") + body


def flipped(draw: random.Random) -> bytes:
    """A right body with some bytes changed, cut out or doubled."""
    path, body = good(draw)
    data = bytearray(body)
    for _ in range(draw.randint(1, 6)):
        place = draw.randrange(len(data))
        data[place : place + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 4))
    return http(path, bytes(data))


def replaced(draw: random.Random) -> bytes:
    """A right body in which one value is another one."""
    path, body = good(draw)
    parts = json.loads(body)
    value = draw.choice(VALUES)
    key = draw.choice(list(parts))
    parts[key] = "@@"
    return http(path, json.dumps(parts).replace('"@@"', value).encode("utf-8", "surrogatepass"))


def wrong_length(draw: random.Random) -> bytes:
    path, body = good(draw)
    length = draw.choice(
        [0, 1, len(body) - 1, len(body) + 10, -1, "x", "1e3", 2**64, f"{len(body)}, 1", "", "+5", "0x10"]
    )
    return http(path, body, length=length)


def chunked(draw: random.Random) -> bytes:
    path, body = good(draw)
    head = http(path, b"", "Transfer-Encoding: chunked").replace(b"Content-Length: 0\r\n", b"")
    size = draw.choice([b"%x" % len(body), b"-1", b"zz", b"f" * 20, b"0", b"%x" % (len(body) + 5), b"1;" + b"a" * 5000])
    return head + size + b"\r\n" + body + draw.choice([b"\r\n0\r\n\r\n", b"", b"\r\n", b"0\r\n"])


def headers(draw: random.Random) -> bytes:
    path, body = good(draw)
    return http(
        path,
        body,
        *draw.choice(
            [
                ["X: " + "a" * draw.choice([1000, 70_000])],
                [f"X-{n}: a" for n in range(draw.choice([50, 5000]))],
                ["Content-Encoding: gzip"],
                ["Content-Encoding: zstd"],
                ["Content-Encoding: br, gzip"],
                ["Authorization: Bearer \xff"],
                ["Host: b", "Content-Length: 5"],
                ["Transfer-Encoding: chunked"],
                ["Expect: 100-continue"],
                ["Upgrade: websocket", "Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: eA=="],
                ["Content-Type: text/plain"],
                ["Bad Header: a"],
                ["X: a\x00b"],
                [": empty"],
                ["X: a\n b"],
            ]
        ),
    )


def bytes_only(draw: random.Random) -> bytes:
    return draw.choice(
        [
            draw.randbytes(draw.choice([1, 10, 1000, 50_000])),
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
            bytes.fromhex("16030100c8010000c40303") + draw.randbytes(190),
            b"GET /\r\n",
            b"GET / HTTP/9.9\r\n\r\n",
            b"\r\n" * 500,
            b"POST /predict HTTP/1.1\r\n",
            b"A" * 100_000,
            b"\x00" * 5000,
            b"GET " + b"/a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"GET /%%%00%ff%zz?" + draw.randbytes(20).hex().encode() + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"DELETE http://x/predict HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"OPTIONS * HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"CONNECT a:1 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
    )


def bombs(draw: random.Random) -> bytes:
    return http("/predict", BOMB if draw.random() < 0.5 else BOMB[: len(BOMB) // 2], "Content-Encoding: gzip")


def pipelined(draw: random.Random) -> bytes:
    return b"".join(http(*good(draw)) for _ in range(draw.randint(2, 20)))


def cut(draw: random.Random) -> bytes:
    whole = http(*good(draw))
    return whole[: draw.randrange(len(whole))]


BOMB = gzip.compress(b'{"inputs": "' + b" " * 20_000_000 + b'"}')
KINDS = [flipped, replaced, wrong_length, chunked, headers, bytes_only, pipelined, cut, flipped, replaced]


def attack(port: int, number: int) -> bytes:
    """Send one hostile request in one of several ways to end the connection; return what came back."""
    draw = random.Random(number)
    data = bombs(draw) if number % 100 == 0 else draw.choice(KINDS)(draw)
    end = draw.choice(["close", "reset", "half", "wait", "wait", "slow"])
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection, contextlib.suppress(OSError):
        if end == "slow":
            for start in range(0, min(len(data), 60), 20):
                connection.sendall(data[start : start + 20])
            data = data[60:]
        connection.sendall(data)
        if end == "reset":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif end == "half":
            connection.shutdown(socket.SHUT_WR)
        if end in ("wait", "half"):
            connection.settimeout(0.05)
            return connection.recv(65536)
    return b""


def statuses(port: int, numbers: range) -> set[str]:
    with ThreadPoolExecutor(12) as pool:
        found = pool.map(lambda number: attack(port, number), numbers)
        return {each[9:12].decode("ascii", "replace") for each in found if each}


@pytest.mark.slow
def test_ten_thousand_hostile_requests_change_nothing(folder: Path, news: Any, tmp_path: Path):
    expected = [dict(zip(news.classes_, row, strict=True)) for row in news.predict_proba(TEXTS)]

    def right(found: Process) -> bool:
        with httpx.Client(base_url=found.url, timeout=30, trust_env=False) as client:
            told = client.post("/predict", json={"inputs": TEXTS}).json()
        pairs = [
            ({part["label"]: part["score"] for part in each}, own) for each, own in zip(told, expected, strict=True)
        ]
        return all(each == pytest.approx(own, abs=1e-5) for each, own in pairs)

    with process(tmp_path / "log", folder) as found:
        assert right(found)
        files = found.files
        seen = statuses(found.port, range(2000))  # to warm up
        memory = found.memory
        for start in range(2000, REQUESTS, 2000):
            seen |= statuses(found.port, range(start, start + 2000))
            assert right(found)
        wait_until(lambda: found.files <= files + 2)  # every connection is closed
        assert found.memory < memory + 40
        assert found.running.poll() is None
    assert {"200", "400", "422"} <= seen
    assert not {status for status in seen if status.startswith("5")}, seen
    log = (tmp_path / "log").read_text(encoding="utf-8", errors="replace")
    assert "Traceback" not in log
    assert SECRET not in log


@pytest.mark.slow
def test_connections_that_do_nothing_hold_nobody_up(folder: Path, tmp_path: Path):
    whole = request("/predict", {"inputs": TEXTS[0]})
    with process(tmp_path / "log", folder) as found, contextlib.ExitStack() as stack:
        for number in range(300):
            idle = stack.enter_context(socket.create_connection(("127.0.0.1", found.port), timeout=10))
            idle.sendall(whole[: number % len(whole)])
        with httpx.Client(base_url=found.url, timeout=10, trust_env=False) as client:
            for _ in range(20):
                assert client.post("/predict", json={"inputs": TEXTS[0]}).status_code == 200
