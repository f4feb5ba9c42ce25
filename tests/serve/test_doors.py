"""Keys, health, counts, the page and the OpenAPI document."""

import base64
import html
from typing import Any

import pytest
import schemathesis

from serve.service import Service, raw, request, serving

OPEN = ["/healthz", "/readyz", "/v2/health/live", "/v2/health/ready"]
CLOSED = ["/", "/metrics", "/openapi.json", "/v1/models", "/v1/models/news", "/v2", "/v2/models/news", "/nothing"]

KEYLESS = "no valid key came; send the header Authorization: Bearer KEY."


@pytest.fixture(scope="module")
def unkeyed(news: Any) -> Any:
    with serving({"news": news}, own_machine=True) as found:
        yield found


@pytest.mark.parametrize("path", [*CLOSED, "/predict"])
def test_without_a_valid_key_nothing_is_told(keyed: Service, path: str):
    method = "POST" if path == "/predict" else "GET"
    for given in (
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": "Bearer third-key"},
        {"Authorization": "Bearer first-ke"},
        {"Authorization": "Bearer first-key second-key"},
        {"Authorization": "first-key"},
        {"Authorization": "Basic first-key"},
        {"Authorization": f"Basic {base64.b64encode(b'first-key:').decode()}"},
        {"X-API-Key": "first-key"},
    ):
        found = keyed.http.request(method, path, headers=given, json={"inputs": "a"})
        assert found.status_code == 401, given
        told = found.json()["error"]
        assert (told["message"] if path.startswith("/v1") else told) == KEYLESS
        assert found.headers["www-authenticate"] == "Bearer"
        assert "news" not in found.text


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "127.0.0.2", "localhost", "LOCALHOST:1", "[::1]:8000"])
def test_without_a_key_names_of_this_machine_are_answered(unkeyed: Service, host: str):
    assert unkeyed.http.post("/predict", headers={"Host": host}, json={"inputs": "a"}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "localhost.evil.example:1", "[::1", "[]"]
)
def test_another_name_of_this_machine_is_answered_with_a_key_alone(unkeyed: Service, keyed: Service, host: str):
    """A site's name may point here, and then its page could ask whatever this machine may."""
    found = unkeyed.http.post("/predict", headers={"Host": host}, json={"inputs": "a"})
    assert found.status_code == 421
    assert "answers at 127.0.0.1 and localhost alone" in found.json()["error"]
    given = {"Host": host, "Authorization": "Bearer first-key"}  # which the page does not have
    assert keyed.http.post("/predict", headers=given, json={"inputs": "a"}).status_code == 200


def test_a_key_may_come_as_the_password_of_label_studio(keyed: Service):
    for user in ("", "me"):
        found = keyed.http.post("/predict", auth=(user, "second-key"), json={"inputs": "a"})
        assert found.status_code == 200


def test_each_key_opens(keyed: Service):
    for key in ("first-key", "second-key"):
        for kind in ("Bearer", "bearer", "BEARER "):
            given = {"Authorization": f"{kind} {key}"}
            assert keyed.http.post("/predict", headers=given, json={"inputs": "a"}).status_code == 200
        assert [keyed.http.get(path, headers=given).status_code for path in CLOSED] == [200] * 7 + [404]


@pytest.mark.parametrize("path", OPEN)
def test_health_needs_no_key(keyed: Service, alone: Service, path: str):
    assert keyed.http.get(path).status_code == alone.http.get(path).status_code == 200


def test_a_body_without_a_key_is_not_read(keyed: Service):
    large = request("/predict", None, headers=["Content-Length: 9000000"]).replace(b"Content-Length: 0\r\n", b"")
    found = raw(keyed, large + b" " * 100)
    assert found.startswith(b"HTTP/1.1 401 ")
    assert b"connection: close" in found.lower()


def test_keys_with_strange_bytes_are_wrong(keyed: Service):
    for value in (b"Bearer \xff\xfe", b"Bearer first-key\xc3\xa9", b"\xf0\x9f\x98\x80"):
        head = b"GET /v1/models HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: " + value + b"\r\n\r\n"
        assert b" 401 " in raw(keyed, head).split(b"\r\n")[0]


def test_health_names_the_models(service: Service):
    for path in ("/healthz", "/readyz"):
        found = service.http.get(path).json()
        assert found["status"] == "ready"
        assert found["models"][:2] == ["news", "choosy"]
    assert service.http.get("/v2/health/live").json() == {"live": True}


def test_counts_hold_no_text_and_a_bounded_number_of_paths(news: Any):
    with serving({"news": news}) as found:
        found.ask("a secret")
        for path in ("/predict/other", "/predict/secret", "/secret"):
            found.post(path, {"inputs": "a secret"})
        found.post("/predict", {"inputs": ["a", "b"]})
        told = found.http.get("/metrics")
        assert told.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert "secret" not in told.text
        lines = told.text.splitlines()
        assert 'labelspace_requests_total{path="/predict",status="200"} 2.0' in lines
        assert 'labelspace_requests_total{path="/predict/{name}",status="404"} 2.0' in lines
        assert "labelspace_documents_total 3.0" in lines
        assert "labelspace_waiting_documents 0.0" in lines
        assert 'labelspace_request_seconds_count{path="/predict"} 2.0' in lines
        assert 'labelspace_requests_total{path="other",status="404"} 1.0' in lines
        assert not any("healthz" in line for line in lines)


def test_what_has_no_valid_key_or_no_operation_is_counted(news: Any):
    with serving({"news": news}, keys=["right"]) as found:
        key = {"authorization": "Bearer right"}
        for path, headers in (("/predict", {}), ("/predict", {"authorization": "Bearer wrong"}), ("/nothing", key)):
            found.post(path, {"inputs": "a"}, headers=headers)
        found.http.put("/predict", headers=key)
        found.http.get("/metrics")
        lines = found.http.get("/metrics", headers=key).text.splitlines()
        for status, times in ((401, 3), (404, 1), (405, 1)):
            assert f'labelspace_requests_total{{path="other",status="{status}"}} {times}.0' in lines


def test_the_page_shows_every_path_and_a_command_that_works(alone: Service):
    found = alone.http.get("/")
    assert found.headers["content-type"] == "text/html; charset=utf-8"
    for path in alone.http.get("/openapi.json").json()["paths"]:
        assert path in found.text
    assert f"curl http://127.0.0.1:{alone.port}/predict" in found.text
    assert "http://" not in found.text.replace(f"http://127.0.0.1:{alone.port}", "")  # nothing is loaded from elsewhere
    assert "https://" not in found.text


def test_the_commands_of_the_page_bring_a_key_and_quote_the_models_name(news: Any):
    with serving({"a b'c": news}, keys=["a"]) as found:
        page = html.unescape(found.http.get("/", headers={"Authorization": "Bearer a"}).text)
    assert f"curl http://127.0.0.1:{found.port}/predict/a%20b%27c -H 'Authorization: Bearer KEY'" in page


def test_the_page_writes_what_a_client_says_as_text(alone: Service):
    host = "<script>alert(1)</script>"
    found = alone.http.get("/", headers={"Host": host})
    assert "<script" not in found.text


def test_every_example_of_the_document_is_answered(alone: Service):
    paths = alone.http.get("/openapi.json").json()["paths"]
    tried = 0
    for path, operations in paths.items():
        for operation in operations.values():
            content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            if "example" in content:
                body = {key: "news" if value == "MODEL" else value for key, value in content["example"].items()}
                place = path.replace("{name}", "news").replace("{version}", "1")
                assert alone.post(place, body).status_code == 200
                tried += 1
    assert tried == 6


@pytest.mark.slow
def test_the_document_is_valid_openapi(alone: Service, keyed: Service):
    for found in (alone, keyed):
        document = found.http.get("/openapi.json", headers={"Authorization": "Bearer first-key"}).json()
        schemathesis.openapi.from_dict(document).validate()
        for path, methods in document["paths"].items():
            for told in methods.values():
                assert ("401" in told["responses"]) == (found is keyed and path not in OPEN)
                assert (told.get("security") == []) == (path in OPEN)
        assert ("security" in document) == (found is keyed)
