"""Under load: a kill and a restart, an orderly end, and a minute of it; no answer is lost, swapped or wrong."""

import gc
import random
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from serve.service import process, reachable, wait_until
from serve.test_clients import unique

pytestmark = pytest.mark.slow


class Checked:
    """Texts, each with the answer of its own; clients ask for them and check what they are told."""

    def __init__(self, classifier: Any, texts: int) -> None:
        self.texts = [unique(number) for number in range(texts)]
        shares = classifier.predict_proba(self.texts)
        self.expected = [dict(zip(classifier.classes_.tolist(), row, strict=True)) for row in shares.tolist()]
        assert len({tuple(each.values()) for each in self.expected}) > texts * 0.9  # a swapped answer is seen
        self.right, self.wrong, self.errors = 0, list[Any](), list[str]()
        self._lock = threading.Lock()

    def ask(self, http: httpx.Client, number: int) -> None:
        """Ask for one text and note how it went."""
        row = number % len(self.texts)
        try:
            found = http.post("/predict", json={"inputs": self.texts[row]})
        except httpx.TransportError as error:
            with self._lock:
                self.errors.append(type(error).__name__)
            time.sleep(0.05)
            return
        told = {part["label"]: part["score"] for part in found.json()[0]} if found.status_code == 200 else found.text
        fits = isinstance(told, dict) and told == pytest.approx(self.expected[row], abs=1e-5)
        with self._lock:
            self.right += fits
            if not fits:
                self.wrong.append((found.status_code, self.texts[row], told))

    def clients(self, port: int, count: int, going: Callable[[], bool], pause: float = 0) -> None:
        """Let clients ask, each over a connection of its own, as long as it goes; one that fails connects again."""

        def one(client: int) -> None:
            number = client
            with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=30, trust_env=False) as http:
                while going():
                    self.ask(http, number)
                    number += count
                    time.sleep(pause)

        with ThreadPoolExecutor(count) as pool:
            list(pool.map(one, range(count)))


def test_a_kill_under_load_and_a_restart_give_errors_but_never_a_wrong_answer(folder: Path, news: Any, tmp_path: Path):
    checked = Checked(news, 2000)
    until = [float("inf")]
    # A client that connects to a free port of those that the system gives to clients may meet itself.
    port = next(port for port in random.Random().choices(range(20_000, 30_000), k=100) if not reachable(port))
    with process(tmp_path / "log", folder, port=port) as first:
        asking = threading.Thread(target=checked.clients, args=(port, 8, lambda: time.monotonic() < until[0], 0.001))
        asking.start()
        try:
            wait_until(lambda: checked.right > 200)
            first.running.send_signal(signal.SIGKILL)
            assert first.running.wait(20) == -signal.SIGKILL
            wait_until(lambda: len(checked.errors) > 8)
            before = checked.right
            with process(tmp_path / "log", folder, port=port):
                wait_until(lambda: checked.right > before + 200)
                failed = len(checked.errors)
                wait_until(lambda: checked.right > before + 400)
                assert len(checked.errors) == failed  # once it runs again, nothing fails
                until[0] = 0
                asking.join(30)
        finally:
            until[0] = 0
            asking.join(60)
    assert checked.wrong == []
    assert set(checked.errors) <= {"ConnectError", "ReadError", "RemoteProtocolError", "WriteError"}


def test_what_has_begun_is_answered_after_sigterm_and_then_the_service_ends(folder: Path, news: Any, tmp_path: Path):
    many = [[unique(client * 2000 + number) for number in range(1000)] for client in range(12)]
    expected = [news.predict(texts).tolist() for texts in many]
    with process(tmp_path / "log", folder, "--max-waiting", 20_000) as found, ThreadPoolExecutor(12) as pool:

        def one(texts: list[str]) -> list[str]:
            with httpx.Client(base_url=found.url, timeout=60, trust_env=False) as http:
                told = http.post("/predict", json={"inputs": texts})
            assert told.status_code == 200
            return [each[0]["label"] for each in told.json()]

        with httpx.Client(base_url=found.url, timeout=60, trust_env=False) as http:

            def begun() -> bool:
                lines = [line.split() for line in http.get("/metrics").text.splitlines() if not line.startswith("#")]
                counts = {line[0]: float(line[1]) for line in lines}
                waiting = counts["labelspace_waiting_documents"]
                # One request is with the encoder, and in neither count.
                return waiting >= 3000 and waiting + counts["labelspace_documents_total"] >= 11_000

            asked = [pool.submit(one, texts) for texts in many]
            wait_until(begun)
        found.running.send_signal(signal.SIGTERM)
        assert [each.result() for each in asked] == expected
        assert found.running.wait(20) in (0, -signal.SIGTERM)
        with pytest.raises(httpx.ConnectError):
            httpx.get(f"{found.url}/healthz", trust_env=False)
    assert "Traceback" not in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_minute_at_half_load_loses_and_swaps_nothing_and_memory_stays(folder: Path, news: Any, tmp_path: Path):
    checked = Checked(news, 4000)
    with process(tmp_path / "log", folder) as found:

        def run(seconds: float, pause: float) -> float:
            before, until = checked.right, time.monotonic() + seconds
            checked.clients(found.port, 8, lambda: time.monotonic() < until, pause)
            return (checked.right - before) / seconds

        full = run(5, 0)
        pause = 8 / full  # as long as an answer took: half of the load
        run(15, pause)
        memory, files = found.memory, found.files
        half = run(35, pause)
        gc.collect()
        assert checked.wrong == checked.errors == []
        assert half > full / 20  # the clients did work; how fast is the machine's matter
        assert found.memory < memory + 20
        wait_until(lambda: found.files <= files)
        with httpx.Client(base_url=found.url, trust_env=False) as http:
            lines = http.get("/metrics").text.splitlines()
        counted = next(line for line in lines if line.startswith("labelspace_documents_total"))
        assert float(counted.split()[1]) == checked.right  # each text was read once
