"""What a service refuses: the status, one line, in the form of the protocol; and that it never fails."""

import gzip
import json
import zlib
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

try:
    from compression import zstd  # pyright: ignore
except ImportError:  # before Python 3.14
    from backports import zstd

from labelspace.config import ServingConfig
from labelspace.serve import operations, questions
from labelspace.serve.app import OPERATIONS
from serve.service import TEXTS, Service, raw, request, serving

CHOICE = {"type": "choice", "instructions": "?", "choices": [{"value": "a"}, {"value": "b"}]}
BODIES: dict[str, Any] = {
    "/v1/decisions": {"model": "news", "input": TEXTS[0], "questions": [CHOICE]},
    "/v1/systemone": {
        "model": "news",
        "state": TEXTS[0],
        "questions": {"q": {"type": "choice", "criteria": {"a": None, "b": None}}},
    },
    "/predict/news": {"inputs": TEXTS[0]},
    "/v2/models/news/infer": {"inputs": [{"name": "text", "shape": [1], "datatype": "BYTES", "data": [TEXTS[0]]}]},
}
PATHS = list(BODIES)


def message(path: str, found: Any) -> str:
    """Return the message of an error, from where the protocol has it."""
    body = found.json()
    if path.startswith("/v1/decisions"):
        assert set(body["error"]) == {"message", "type", "param", "code"}
        return body["error"]["message"]
    if path == "/v1/systemone":
        if isinstance(body["detail"], str):
            return body["detail"]
        [error] = body["detail"]
        assert set(error) == {"loc", "msg", "type"}
        return error["msg"]
    assert isinstance(body["error"], str)
    return body["error"]


def with_text(path: str, text: str) -> Any:
    return json.loads(json.dumps(BODIES[path]).replace(json.dumps(TEXTS[0]), json.dumps(text)))


def check(path: str, found: Any, status: int, said: str = "") -> None:
    assert found.status_code == status, found.text
    told = message(path, found)
    assert said in told
    assert told.strip()
    assert "\n" not in told
    assert len(told) < 1200


@pytest.mark.parametrize("path", PATHS)
def test_what_is_no_json_is_a_bad_request(service: Service, path: str):
    for body in (b"", b"{", b"[1, 2", b"\xff\xfe", b'{"a": "\xed\xa0\x80"}', b"nul", b"{'a': 1}", b"\x00" * 100):
        check(path, service.send(path, body), 400)
    for body in (b"[]", b"null", b'"text"', b"1", b"{}", b'{"model": null}'):
        check(path, service.send(path, body), 422)


def test_json_that_is_too_deep_is_a_bad_request(service: Service):
    path = "/predict/news"
    for deep in ("[" * 100_000, '{"a":' * 100_000, "[" * 100_000 + "]" * 100_000):
        check(path, service.send(path, deep), 400)


@pytest.mark.parametrize("path", PATHS)
def test_half_a_character_is_read_as_the_sign_for_an_unknown_one(service: Service, path: str):
    for text in ("half \ud83d of it", "\ude00 the other", "\\ud83d \ud83d\ude00 \ud83d\ud83d\ude00", "\ud83d"):
        found = service.send(path, json.dumps(with_text(path, text)))
        clean = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        assert found.status_code == 200, found.text
        assert found.json() == service.send(path, json.dumps(with_text(path, clean))).json()


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"inputs": ["a", 5]}, "inputs.1: Input should be a valid string"),
        ({"text": "a"}, "inputs: Field required"),
        ({"inputs": "a", "parameters": {"top_k": 0}}, "parameters.top_k: Input should be greater than"),
    ],
)
def test_what_is_wrong_in_a_body_is_told_with_its_place(service: Service, body: Any, said: str):
    assert said in service.post("/predict/news", body).json()["error"]


def test_a_template_that_makes_a_sentence_too_long_is_refused(service: Service):
    long = {"candidate_labels": ["x" * 1000, "y" * 1000], "hypothesis_template": "{}" * 20_000}
    found = service.post("/predict/news", {"inputs": "a", "parameters": long})
    assert (found.status_code, "the template with an option in it is longer" in found.json()["error"]) == (413, True)


@pytest.mark.parametrize("path", PATHS)
def test_only_json_is_read(service: Service, path: str):
    for kind in ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=a", "x"):
        found = service.send(path, json.dumps(BODIES[path]), content_type=kind)
        check(path, found, 415, "application/json")
    for kind in ("application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"):
        assert service.send(path, json.dumps(BODIES[path]), content_type=kind).status_code == 200


@pytest.mark.parametrize("path", PATHS)
def test_an_empty_text_and_a_long_one_are_refused(service: Service, path: str):
    for text in ("", " \n\t", "\u3000"):
        check(path, service.post(path, with_text(path, text)), 422, "empty")
    check(path, service.post(path, with_text(path, "a" * 50_001)), 413, "send at most 50,000")
    assert service.post(path, with_text(path, "a" * 50_000)).status_code == 200


def test_a_body_that_is_too_large_is_refused_before_it_is_held(service: Service):
    path = "/predict/news"
    body = json.dumps(with_text(path, "a" * (4 * 2**20)))
    check(path, service.send(path, body), 413, "4,194,304 bytes")
    head = request(path, None, headers=["Transfer-Encoding: chunked"]).replace(b"Content-Length: 0\r\n", b"")
    chunks = b"".join(b"10000\r\n" + b" " * 65536 + b"\r\n" for _ in range(66)) + b"0\r\n\r\n"
    assert (
        b" 413 " in raw(service, head.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n") + chunks).split(b"\r\n")[0]
    )


def test_packed_bodies_are_unpacked_up_to_the_limit(service: Service):
    path = "/predict/news"
    body = json.dumps(BODIES[path]).encode()
    packers: dict[str, Any] = {"gzip": gzip.compress, "deflate": zlib.compress, "zstd": zstd.compress}
    plain = service.send(path, body)
    for name, pack in packers.items():
        packed = pack(body)
        assert service.send(path, packed, content_encoding=name).json() == plain.json()
        check(path, service.send(path, body, content_encoding=name), 400, f"not valid {name}")
        check(path, service.send(path, packed[:-3], content_encoding=name), 400, f"not valid {name}")
        check(path, service.send(path, packed + b"more", content_encoding=name), 400, f"not valid {name}")
        check(path, service.send(path, b"", content_encoding=name), 400)
        check(path, service.send(path, pack(body + b" " * (4 * 2**20)), content_encoding=name), 413, "4,194,304")
    bomb = zstd.compress(b" " * 50_000_000)
    check(path, service.send(path, bomb, content_encoding="zstd"), 413)
    packer = zstd.ZstdCompressor(options={zstd.CompressionParameter.window_log: 27})
    wide = packer.compress(body, packer.FLUSH_BLOCK) + packer.flush()
    check(path, service.send(path, wide, content_encoding="zstd"), 400, "not valid zstd")  # it asks for 128 MB
    for name in ("br", "gzip, gzip", "x" * 5000):
        check(path, service.send(path, body, content_encoding=name), 415)


def test_only_a_body_packed_with_zstd_needs_its_package(service: Service, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(operations, "_zstd", lambda: pytest.fail("nobody needs it"))
    path = "/v1/decisions"
    check(path, service.send(path, b"no gzip", content_encoding="gzip"), 400, "not valid gzip")
    check(path, service.send(path, b"{}", content_encoding="br"), 415)


@pytest.mark.parametrize("path", PATHS)
def test_values_of_another_type_are_not_made_to_fit(service: Service, path: str):
    wrong = {
        "/v1/decisions": [{"model": 1}, {"input": 1}, {"input": {}}, {"questions": {}}, {"questions": "x"}],
        "/v1/systemone": [{"model": 1}, {"state": 1}, {"state": None}, {"questions": []}],
        "/predict/news": [
            {"inputs": 1},
            {"inputs": [1]},
            {"inputs": {}},
            {"parameters": {"top_k": "1"}},
            {"parameters": {"top_k": True}},
            {"parameters": {"multi_label": "yes", "candidate_labels": ["a", "b"]}},
            {"parameters": {"top_k": 0}},
            {"parameters": []},
        ],
        "/v2/models/news/infer": [{"inputs": {}}, {"inputs": []}, {"id": 1}, {"outputs": "label"}],
    }
    for part in wrong[path]:
        check(path, service.post(path, {**BODIES[path], **part}), 422)


def test_errors_repeat_no_long_part_of_a_request(service: Service):
    long = "x\n" * 100_000
    for path, body in (
        ("/v1/decisions", {**BODIES["/v1/decisions"], "questions": [{"type": long}]}),
        ("/v1/decisions", {**BODIES["/v1/decisions"], "questions": [{**CHOICE, long: 1}]}),
        ("/v1/decisions", {**BODIES["/v1/decisions"], "model": long}),
        ("/v1/systemone", {**BODIES["/v1/systemone"], "questions": {long: {"type": long}}}),
        ("/v1/systemone", {**BODIES["/v1/systemone"], "questions": {long: {"type": "choice", "criteria": {}}}}),
        ("/v2/models/news/infer", {"inputs": [{"name": long, "shape": [1], "datatype": long, "data": []}]}),
    ):
        found = service.post(path, body)
        assert found.status_code in (400, 404, 422)
        check(path, found, found.status_code)
        assert len(found.content) < 3000


def test_huge_numbers_and_those_that_are_none_are_refused_or_answered(service: Service):
    levels = [{"label": "a"}, {"label": "b"}]
    data = {"type": "input_json", "data": {"a": "the team", "b": "N"}}
    bodies: dict[str, Any] = {
        "/v1/systemone": {
            "model": "news",
            "state": ["the team", "N"],
            "questions": {"q": {"type": "score", "criteria": ["low", ["high", "N"]]}},
        },
        "/predict/news": {"inputs": "the team", "parameters": {"top_k": "N"}, "more": "N"},
        "/v2/models/news/infer": {
            "inputs": [{"name": "text", "shape": ["N", "N"], "datatype": "BYTES", "data": ["a"]}]
        },
        "/v1/decisions": {
            "model": "news",
            "input": [{"role": "user", "content": [data]}],
            "questions": [{"type": "score", "instructions": "?", "levels": levels}],
            "x": "N",
        },
    }
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "9" * 5000, "9" * 4000, "-0", "1" * 400 + ".5"):
        for path, body in bodies.items():
            found = service.send(path, json.dumps(body).replace('"N"', number))
            assert found.status_code in (200, 400, 422), (path, number, found.text)
            json.loads(found.content, parse_constant=pytest.fail)  # NaN is no JSON


def test_a_shape_of_many_huge_numbers_takes_no_time(service: Service):
    body = json.dumps(BODIES["/v2/models/news/infer"]).replace("[1]", f"[{', '.join(['9' * 4000] * 1000)}]")
    found = service.http.post(
        "/v2/models/news/infer", content=body, headers={"Content-Type": "application/json"}, timeout=5
    )
    check("/v2/models/news/infer", found, found.status_code)
    assert found.status_code in (400, 422)


WRONG = {
    "/v1/decisions": ["input", "questions"],
    "/predict/{name}": ["inputs"],
    "/v2/models/{name}/infer": ["inputs", "outputs"],
    "/label-studio/{name}/predict": ["tasks"],
}


@pytest.mark.parametrize(("path", "field"), [(path, field) for path, fields in WRONG.items() for field in fields])
def test_a_list_is_read_up_to_its_first_wrong_item(path: str, field: str):
    """Two million wrong numbers, 4 kB packed, were two errors each: a minute, in which no probe was answered."""
    [operation] = [each for each in OPERATIONS if each.path == path and each.method == "POST"]
    body = f'{{"{field}": [{", ".join(["1"] * 1000)}]}}'
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(operation.takes).validate_json(body, strict=True)
    of_list = [error for error in refused.value.errors() if error["loc"][0] == field]
    assert 0 < len(of_list) < 5


def test_of_keys_that_come_twice_the_last_counts(service: Service):
    found = service.send("/predict/news", f'{{"inputs": "the team", "inputs": "the bank", "inputs": "{TEXTS[3]}"}}')
    assert [part["label"] for part in found.json()[0]] == [part["label"] for part in service.ask(TEXTS[3], "news")]
    assert found.json()[0][0]["score"] == pytest.approx(service.ask(TEXTS[3], "news")[0]["score"])


def test_too_many_options_are_refused_before_labels_are_made_of_them(service: Service, monkeypatch: Any):
    """On the thread that answers probes, 400 questions of 255 options took seconds."""
    monkeypatch.setattr(questions, "space_of", lambda *_: pytest.fail("labels were made"))
    asked = [
        {"type": "choice", "instructions": "?", "choices": [{"value": f"{number} {each}"} for each in range(255)]}
        for number in range(4)
    ]
    body = {**BODIES["/v1/decisions"], "questions": asked}
    check("/v1/decisions", service.post("/v1/decisions", body), 413, "the questions have 1,020 options; send at most")


def test_options_are_bounded(service: Service):
    many = {"type": "choice", "instructions": "?", "choices": [{"value": f"o {n}"} for n in range(255)]}
    body = {
        **BODIES["/v1/decisions"],
        "questions": [{**many, "choices": [{**c, "description": f"{n}"} for c in many["choices"]]} for n in range(4)],
    }
    check("/v1/decisions", service.post("/v1/decisions", body), 413, "send at most 1,000 at once")
    body = {"inputs": "a", "parameters": {"candidate_labels": [str(n) for n in range(1001)]}}
    check("/predict/news", service.post("/predict/news", body), 413, "2 to 1,000 options. Got 1,001")
    body["parameters"] = {"candidate_labels": ["alone"]}
    check("/predict/news", service.post("/predict/news", body), 422, "2 to 1,000 options. Got 1 ")
    body["parameters"] = {"candidate_labels": ["a", "b" * 50_001]}
    check("/predict/news", service.post("/predict/news", body), 413, "option 2 is too long")


def test_many_texts_at_once_are_refused(news: Any):
    with serving({"news": news}, ServingConfig(max_waiting=5)) as small:
        assert len(small.post("/predict", {"inputs": TEXTS[:5]}).json()) == 5
        found = small.post("/predict", {"inputs": TEXTS})
        check("/predict", found, 413, "there are 6 texts; send at most 5 at once")
        rows = {"name": "text", "shape": [6], "datatype": "BYTES", "data": TEXTS}
        check("/v2/", small.post("/v2/models/news/infer", {"inputs": [rows]}), 413)


def test_an_answer_of_very_many_numbers_is_refused_before_any_work(service: Service, monkeypatch: Any):
    monkeypatch.setattr(operations, "MOST_VALUES", 9)
    body: dict[str, Any] = {"inputs": TEXTS[:4], "parameters": {}}
    assert [len(each) for each in service.post("/predict/news", {"inputs": TEXTS[:3]}).json()] == [3] * 3
    check("/predict/news", service.post("/predict/news", body), 413, "would have 12 numbers, the most are 9; name a")
    body["parameters"] = {"top_k": 1}
    assert [len(each) for each in service.post("/predict/news", body).json()] == [1] * 4
    tensor = {"name": "text", "shape": [2], "datatype": "BYTES", "data": TEXTS[:2]}
    path = "/v2/models/news/infer"
    check(path, service.post(path, {"inputs": [tensor]}), 413, "12 numbers, the most are 9; ask for fewer outputs")
    often = {"inputs": [tensor], "outputs": [{"name": "scores"}] * 3}
    check(path, service.post(path, often), 413, "would have 18 numbers")
    assert service.post(path, {"inputs": [tensor], "outputs": [{"name": "label"}]}).status_code == 200


def test_other_paths_and_methods_are_told_in_the_form_of_the_protocol(service: Service):
    for path in (
        "/v1",
        "/v1/decision",
        "/predict/news/more",
        "/%00",
        "/..%2f..%2fetc/passwd",
        "/v1/models/a/b",
        "/v2/a",
    ):
        found = service.http.get(path)
        told = found.json()["error"]
        assert found.status_code == 404
        assert "/v1/decisions" in (told["message"] if path.startswith("/v1/") else told)
    for method, path in (
        ("GET", "/v1/decisions"),
        ("PUT", "/predict/news"),
        ("DELETE", "/v1/systemone"),
        ("TRACE", "/"),
    ):
        found = service.http.request(method, path)
        assert message(path, found).startswith("405")
        assert found.headers["allow"]
    for path, body in (("/predict/other", "/predict/news"), ("/v2/models/other/infer", "/v2/models/news/infer")):
        check(path, service.post(path, BODIES[body]), 404, "no model is called 'other'; there is news, choosy")
    check("/v2/", service.http.get("/v2/models/%F0%9F%98%80"), 404, "no model is called '😀'")


@pytest.mark.filterwarnings("ignore:.* does not know the language")  # the tiny encoder knows no Arabic
@pytest.mark.parametrize(
    "text",
    [
        "NUL \x00 and \x01\x7f",
        "مرحبا بالعالم \u202e reversed \u200f",
        "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪",
        "a\u0300\u0301\u0302" * 500,
        "\ufeff\ufffe\uffff",
        "".join(map(chr, range(0x1F600, 0x1F650))),
        "<script>alert(1)</script>' OR 1=1 -- ${jndi:ldap://x} {{7*7}} %s %n \\",
    ],
)
def test_strange_texts_are_answered_as_the_model_answers_them(service: Service, news: Any, text: str):
    expected = dict(zip(news.classes_, news.predict_proba([text])[0], strict=True))
    found = service.ask(text, "news")
    assert {part["label"]: part["score"] for part in found} == pytest.approx(expected, abs=1e-6)
    asked = {**BODIES["/v1/systemone"], "state": text}
    asked["questions"] = {text: {"type": "choice", "criteria": {text: text, "other": None}}}
    answer = service.post("/v1/systemone", asked).json()["answers"][text]
    assert set(answer["probabilities"]) == {text, "other"}
