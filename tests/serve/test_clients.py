"""Many clients at once: each gets the answer of its own text; a full queue, and clients that go away."""

import asyncio
import copy
import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.classify import Answers
from labelspace.config import ServingConfig
from labelspace.serve.app import make_app
from labelspace.serve.batching import Batcher, BusyError, Job
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.measures import Measures
from labelspace.serve.room import Room, Served
from serve.service import TEXTS, Service, client_of, request, running, serving, wait_until

WORDS = ["bank", "team", "match", "minister", "market", "game", "price", "coach", "police", "court", "money", "goal"]


def unique(number: int) -> str:
    """Return a text that no other number has, with another answer than its neighbours."""
    picked = [WORDS[(number // len(WORDS) ** place) % len(WORDS)] for place in range(4)]
    return f"the {picked[0]} and the {picked[1]} of {picked[2]} {picked[3]} {number}"


def test_each_of_64_clients_gets_the_answers_of_its_own_texts(service: Service, classifiers: dict[str, Any]):
    names = ["news", "several", "words", "lacon", "doubting", "joint"]

    def one(client: int) -> list[tuple[str, str, dict[str, float]]]:
        found = []
        with client_of(service.url) as http:
            for turn in range(4):
                name, text = names[(client + turn) % len(names)], unique(client * 4 + turn)
                parts = http.post(f"/predict/{name}", json={"inputs": text}).json()[0]
                found.append((name, text, {part["label"]: part["score"] for part in parts}))
        return found

    with ThreadPoolExecutor(64) as pool:
        found = [each for client in pool.map(one, range(64)) for each in client]
    assert len({text for _, text, _ in found}) == 256
    for name in names:
        mine = [(text, told) for other, text, told in found if other == name]
        clf = classifiers[name]
        for row, (_, told) in zip(clf.predict_proba([text for text, _ in mine]), mine, strict=True):
            assert told == pytest.approx(dict(zip(clf.classes_, row, strict=True)), abs=1e-5)


def test_requests_that_wait_together_run_together(news: Any):
    with serving({"news": news}) as found:
        with ThreadPoolExecutor(32) as pool:
            list(pool.map(lambda number: found.ask(unique(number)), range(320)))
        counts = {line.split()[0]: float(line.split()[1]) for line in metrics(found) if not line.startswith("#")}
    assert counts["labelspace_documents_total"] == 320
    assert counts["labelspace_run_documents_count"] < 200


def metrics(service: Service) -> list[str]:
    return service.http.get("/metrics").text.splitlines()


class Gate:
    """A classifier that answers when it is let; it counts the texts that it read."""

    def __init__(self, classifier: Any) -> None:
        self.open, self.entered, self.read = threading.Event(), threading.Event(), []
        self._classifier = classifier

    def __getattr__(self, name: str) -> Any:
        return getattr(self._classifier, name)

    def answers(self, documents: Any) -> Any:
        self.entered.set()
        self.open.wait(20)
        self.read += list(documents)
        return self._classifier.answers(documents)


@pytest.fixture
def gate(news: Any) -> Iterator[Gate]:
    found = Gate(news)
    yield found
    found.open.set()


def waiting(service: Service) -> int:
    [line] = [line for line in metrics(service) if line.startswith("labelspace_waiting_documents ")]
    return int(float(line.split()[1]))


def test_a_full_queue_answers_503_and_when_to_come_again(gate: Gate):
    with serving({"news": gate}, ServingConfig(max_waiting=3)) as found, ThreadPoolExecutor(8) as pool:
        first = pool.submit(found.ask, "the first")
        assert gate.entered.wait(20)
        others = [pool.submit(found.ask, f"the {number}") for number in range(3)]
        wait_until(lambda: waiting(found) == 3)
        choice = {"type": "choice", "criteria": {"sports": None, "money": None, "world": None}}
        for path, body in (
            ("/predict", {"inputs": "one more"}),
            ("/v1/systemone", {"model": "news", "state": "a", "questions": {"q": choice}}),
            ("/v2/models/news/infer", {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": ["a"]}]}),
        ):
            refused = found.post(path, body)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
            assert "3 texts wait already" in refused.text
        assert found.http.get("/healthz").status_code == found.http.get("/readyz").status_code == 200
        gate.open.set()
        assert [each.result()[0]["label"] for each in (first, *others)]
        assert found.ask("and then it works")
    assert "one more" not in gate.read


def test_what_a_client_asked_that_has_gone_is_never_read_and_holds_no_place(gate: Gate):
    with serving({"news": gate}, ServingConfig(max_waiting=3)) as found, ThreadPoolExecutor(8) as pool:
        first = pool.submit(found.ask, "the first")
        assert gate.entered.wait(20)
        gone = []
        for number in range(3):
            connection = socket.create_connection(("127.0.0.1", found.port))
            connection.sendall(request("/predict", {"inputs": f"gone {number}"}))
            gone.append(connection)
        wait_until(lambda: waiting(found) == 3)
        for connection in gone:
            connection.close()
        wait_until(lambda: waiting(found) == 0)  # while the encoder is still busy
        later = [pool.submit(found.ask, f"stays {number}") for number in range(3)]
        wait_until(lambda: waiting(found) == 3)
        gate.open.set()
        assert first.result()
        assert all(each.result() for each in later)
        assert sorted(gate.read) == ["stays 0", "stays 1", "stays 2", "the first"]
        assert 'status="499"' in "\n".join(metrics(found))


def test_a_request_that_fails_fails_alone(news: Any):
    class Choking(Gate):
        def answers(self, documents: Any) -> Any:
            if any("choke" in text for text in documents):
                raise RuntimeError("it choked")
            return super().answers(documents)

    model = Choking(news)
    with serving({"news": model}) as found, ThreadPoolExecutor(8) as pool:
        first = pool.submit(found.ask, "the first")
        assert model.entered.wait(20)
        bad = pool.submit(found.post, "/predict", {"inputs": "choke on this"})
        good = [pool.submit(found.ask, f"the {number}") for number in range(3)]
        wait_until(lambda: waiting(found) == 4)
        model.open.set()
        assert all(each.result() for each in (first, *good))
        refused = bad.result()
        assert refused.status_code == 500
        assert "choke" not in refused.text
        assert found.ask("and it goes on")


def test_requests_that_have_begun_are_answered_when_the_service_ends(gate: Gate):
    def ask(text: str) -> list[dict[str, Any]]:
        with client_of(found.url) as client:  # that of `found` is closed with it, perhaps too early
            return replace(found, http=client).ask(text)

    with ThreadPoolExecutor(8) as pool:
        with serving({"news": gate}) as found:
            asked = [pool.submit(ask, "the first")]
            assert gate.entered.wait(20)
            asked += [pool.submit(ask, f"the {number}") for number in range(4)]
            wait_until(lambda: waiting(found) == 4)
            threading.Timer(0.3, gate.open.set).start()
        assert [each.result()[0]["label"] for each in asked]


def test_a_client_that_never_sends_its_body_gets_408(news: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("labelspace.serve.operations.READ_SECONDS", 0.2)
    with serving({"news": news}) as found, socket.create_connection(("127.0.0.1", found.port), timeout=10) as slow:
        slow.sendall(request("/predict", {"inputs": "a"})[:-3])
        assert slow.recv(65536).startswith(b"HTTP/1.1 408 ")
        assert found.ask("others are served")


def test_a_single_client_never_waits_for_others(news: Any):
    with serving({"news": news}, ServingConfig(wait=1)) as found:
        found.ask("warm")
        start = time.perf_counter()
        for number in range(5):
            found.ask(unique(number))
        assert time.perf_counter() - start < 4  # five waits are five seconds


# ---- the parts


def test_vectors_of_options_are_kept_up_to_a_bound_and_the_least_used_go_first(encoder: Any, monkeypatch: Any):
    plain, read = encoder.encode(["a"], role="label"), []
    encode = type(encoder).encode
    monkeypatch.setattr(
        type(encoder), "encode", lambda own, texts, **more: read.extend(texts) or encode(own, texts, **more)
    )
    known = KnownTexts(encoder, 3)
    assert (known.encode(["a"], role="label") == plain).all()
    known.encode(["b", "c", "a", "d"], role="label")
    assert read == ["a", "b", "c", "d"]
    known.encode(["a"], role="label")  # b went, a was used since
    assert read == ["a", "b", "c", "d"]
    known.encode(["a"], role="text")
    known.encode(["b"], role="label")
    assert read == ["a", "b", "c", "d", "a", "b"]


def test_the_temperature_of_a_models_own_answers_is_not_that_of_other_options(news: Any, encoder: Any):
    """`calibrate` and a student set it for the labels that the model was fitted on."""
    sure = clone(news).fit().set_params(temperature=0.01)
    labels = ["cats", "dogs"]
    space = LabelSpace.from_dict({"template": news.label_space_.template, "labels": {name: [] for name in labels}})
    expected = ZeroShotClassifier(space, encoder, anchor="both").fit().predict_proba([TEXTS[0]])[0]
    with serving({"news": sure}) as found:
        body = {"inputs": TEXTS[0], "parameters": {"candidate_labels": labels}}
        answer = found.post("/predict", body).json()
    told = {each["label"]: each["score"] for each in answer}
    assert told == pytest.approx(dict(zip(labels, expected, strict=True)), abs=1e-6)


def test_options_of_many_requests_do_not_grow_without_bound(news: Any):
    served = Served("news", news, max_options=6)
    assert served.options is not None
    asked = [[f"{place} {number}" for place in ("first", "second", "third")] for number in range(5)]
    with running(make_app([served], ServingConfig())) as found:
        told = [
            found.post("/predict", {"inputs": TEXTS[0], "parameters": {"candidate_labels": labels}}).json()
            for labels in (*asked, asked[0])
        ]
    every = LabelSpace.from_names([name for labels in asked for name in labels], template=news.label_space_.template)
    assert len(served.options.unknown(every)) == 15 - 6
    assert told[0] == told[-1]  # forgotten, and the same again


def test_the_queue_takes_jobs_of_one_model_up_to_the_budget_and_keeps_the_order():
    ran: list[list[str]] = []

    def work(jobs: Any) -> list[Any]:
        ran.append([job.documents[0] for job in jobs])
        assert len({job.model for job in jobs}) == 1
        return [job.documents[0].upper() for job in jobs]

    async def main() -> list[str]:
        batcher = Batcher(work, ServingConfig(together=20), lambda _: None)
        batcher._loop = asyncio.get_running_loop()
        asked = [
            asyncio.ensure_future(batcher.submit("ab"[n % 2], [f"text {n:02} of a certain size"], None))
            for n in range(8)
        ]
        await asyncio.sleep(0)
        batcher.start()
        found = await asyncio.gather(*asked)
        batcher.close()
        return found

    assert asyncio.run(main()) == [f"TEXT {n:02} OF A CERTAIN SIZE" for n in range(8)]
    numbers = [[int(text.split()[1]) for text in each] for each in ran]
    assert numbers == [[0, 2], [1, 3], [4, 6], [5, 7]]  # eight tokens each


def test_the_queue_refuses_beyond_its_bound_and_forgets_who_is_gone():
    async def main() -> None:
        batcher = Batcher(lambda jobs: [1] * len(jobs), ServingConfig(max_waiting=2), lambda _: None)
        batcher._loop = asyncio.get_running_loop()
        asked = [asyncio.ensure_future(batcher.submit("a", ["text"], None)) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(BusyError, match="2 texts wait already"):
            await batcher.submit("a", ["text"], None)
        asked[0].cancel()
        await asyncio.sleep(0)
        assert batcher.waiting == 1
        third = asyncio.ensure_future(batcher.submit("a", ["text"], None))
        await asyncio.sleep(0)
        batcher.start()
        assert await asyncio.gather(asked[1], third) == [1, 1]
        batcher.close()
        assert batcher.waiting == 0

    asyncio.run(main())


def test_a_job_larger_than_the_bound_is_taken_where_none_waits():
    async def main() -> None:
        batcher = Batcher(lambda jobs: [1] * len(jobs), ServingConfig(max_waiting=2), lambda _: None)
        batcher.start()
        assert await batcher.submit("a", ["text"] * 3, None) == 1
        batcher.close()

    asyncio.run(main())


def test_documents_are_counted_before_their_clients_have_answers():
    counted: list[int] = []

    def count(documents: int) -> None:
        time.sleep(0.1)  # a client who could run ahead would
        counted.append(documents)

    async def main() -> None:
        batcher = Batcher(lambda jobs: [1] * len(jobs), ServingConfig(), count)
        batcher.start()
        await batcher.submit("a", ["text"], None)
        assert counted == [1]
        batcher.close()

    asyncio.run(main())


def test_every_job_has_a_token_count():
    job = Job(None, ["a" * 40, ("b" * 8, "c" * 8)], None, None)  # pyright: ignore[reportArgumentType]
    assert job.tokens == (2 + 10) + (2 + 4)


def test_texts_are_logged_only_where_asked(news: Any, capfd: pytest.CaptureFixture[str]):
    secret = "the secret\nof the bank \x00 👩"
    wrong = {"model": "news", "input": secret, "questions": [{"type": secret}]}
    for log_texts in (False, True):
        with serving({"news": news}, log_texts=log_texts) as found:
            found.ask(secret)
            found.post("/predict", {"inputs": secret, "parameters": {"candidate_labels": [secret, f"{secret} again"]}})
            found.post("/v1/decisions", wrong)
            found.send("/predict", secret)
            found.http.get(f"/{secret!r}")
        out, err = capfd.readouterr()
        assert out == ""
        if not log_texts:
            assert err == ""
            continue
        own, other = map(json.loads, err.splitlines())
        assert own == {"model": "news", "text": secret, "label": news.predict([secret])[0]}
        assert other["label"] in (secret, f"{secret} again")


def test_labels_are_counted_as_predict_gives_them(news: Any):
    texts = ["the team won the match", "the bank said that prices rise", "players", "the market"]
    limited = copy.copy(news)
    limited.threshold = float(np.median(news.decision_function(texts).max(axis=1)))
    expected = Counter(limited.predict(texts))
    assert None in expected, "the test needs refusals"
    assert len(expected) > 1, "the test needs answers"
    with serving({"news": limited}) as found:
        for text in texts:
            found.ask(text)
        # Options of the client's own are no labels of the model.
        found.http.post("/predict/news", json={"inputs": "a", "parameters": {"candidate_labels": ["this", "that"]}})
        lines = metrics(found)
    counts = {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if not line.startswith("#")}
    assert counts.pop('labelspace_no_label_total{model="news"}') == expected.pop(None)
    told = {name: count for name, count in counts.items() if name.startswith("labelspace_labels_total")}
    every = news.label_space_.names
    assert told == {f'labelspace_labels_total{{label="{label}",model="news"}}': expected[label] for label in every}


def test_each_of_several_labels_is_counted():
    measures, labels = Measures(), ("sports", "world", "money")
    chosen = np.array([[True, True, False], [False, False, False], [True, False, False]])
    answers = Answers(
        names=np.array(["sports|world", None, "sports"], dtype=object),
        scores=np.zeros((3, 3), dtype=np.float32),
        probabilities=np.zeros((3, 3)),
        uncertainty=None,
        labels=labels,
        likeliest=np.zeros(3, dtype=np.intp),
        chosen=chosen,
    )
    measures.expect("a", labels)
    measures.answered("a", answers)
    told = [line for line in measures.text().decode().splitlines() if "_total{" in line]
    assert told == [
        'labelspace_labels_total{label="sports",model="a"} 2.0',
        'labelspace_labels_total{label="world",model="a"} 1.0',
        'labelspace_labels_total{label="money",model="a"} 0.0',
        'labelspace_no_label_total{model="a"} 1.0',
    ]


def test_the_room_knows_its_models(news: Any):
    room = Room([Served("a", news), Served("b", news)], ServingConfig(), Measures())
    assert list(room.models) == ["a", "b"]


def test_texts_of_others_come_between_new_options(news: Any):
    known = Served("news", news)
    assert known.options is not None
    done: list[str] = []

    async def both() -> None:
        room = Room([known], ServingConfig(), Measures())
        room.batcher.start()

        async def ask(who: str, *spaces: LabelSpace | None) -> None:
            await room.ask(known, ["the team"], spaces)
            done.append(who)

        options = LabelSpace.from_names([f"topic {number}" for number in range(40)])
        await asyncio.gather(ask("forty options", options), ask("another client", None))
        room.batcher.close()

    asyncio.run(both())
    assert done == ["another client", "forty options"]


def test_options_of_a_client_that_has_gone_are_not_read_to_the_end(news: Any):
    known = Served("news", news)
    assert known.options is not None
    options = LabelSpace.from_names([f"subject {number}" for number in range(90)])

    async def gone() -> None:
        room = Room([known], ServingConfig(), Measures())
        room.batcher.start()
        asked = asyncio.ensure_future(room.ask(known, ["the team"], [options]))
        while known.options and len(known.options.unknown(options)) == 90:
            await asyncio.sleep(0.001)
        asked.cancel()
        await room.ask(known, ["the bank"])  # whatever was begun is done now
        room.batcher.close()

    asyncio.run(gone())
    assert 0 < len(known.options.unknown(options)) < 90
