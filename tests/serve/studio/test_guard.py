"""Only the studio's own page may speak to it."""

import re
from importlib.resources import files

import pytest
from starlette.testclient import TestClient

from labelspace.serve.studio.routes import CHANGES, READS, create_app
from serve.studio.conftest import LABELS, opened

TOKEN = "a-secret"
HOME = "http://127.0.0.1:8100"


@pytest.fixture(scope="module")
def session(tmp_path_factory, encoder):
    """One session for all tests, which ask who may change it, and never what it says."""
    file = tmp_path_factory.mktemp("guard") / "labels.yaml"
    file.write_text(LABELS, encoding="utf-8")
    with opened(file, encoder) as made:
        yield made


@pytest.fixture
def stranger(session):
    """A client without the cookie."""
    return TestClient(create_app(session, token=TOKEN, port=8100), base_url=HOME)


@pytest.fixture
def client(stranger):
    """A client that opened the printed address."""
    assert stranger.get(f"/?token={TOKEN}").status_code == 200
    return stranger


def test_without_the_token_nothing_is_answered(stranger):
    for path in ("/", "/?token=wrong", "/page/studio.js", "/api/state", "/api/documents"):
        assert stranger.get(path).status_code == 403
    assert stranger.post("/api/undo", json={}).status_code == 403


def test_the_token_becomes_a_cookie_that_scripts_and_other_sites_do_not_get(stranger):
    cookie = stranger.get(f"/?token={TOKEN}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "labelspace-studio-8100=" in cookie


def test_the_address_that_others_may_see_opens_once(session):
    """The browser is started with it, so that it stands in the list of processes."""
    app = create_app(session, token=TOKEN, port=8100, once="seen")
    mine, other = TestClient(app, base_url=HOME), TestClient(app, base_url=HOME)
    assert mine.get("/?token=seen").status_code == 200
    assert mine.get("/?token=seen").status_code == 200  # a reload has the cookie
    assert other.get("/?token=seen").status_code == 403
    assert other.get("/?token=").status_code == 403
    assert other.get(f"/?token={TOKEN}").status_code == 200


def test_the_page_loads_nothing_from_elsewhere(client):
    answer = client.get("/")
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; script-src 'self'")
    assert "unsafe" not in policy
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert answer.headers["cache-control"] == "no-store"


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8100", "127.0.0.1:81", "127.0.0.1", "", "127.0.0.1.evil.example:8100"]
)
def test_another_name_of_this_machine_is_refused(client, host):
    assert client.get("/api/state", headers={"host": host}).status_code == 421


def test_port_80_need_not_be_named(session):
    client = TestClient(create_app(session, token=TOKEN, port=80), base_url="http://127.0.0.1")
    assert client.get(f"/?token={TOKEN}").status_code == 200
    assert client.post("/api/none", json={}, headers={"origin": "http://127.0.0.1"}).status_code == 200
    assert client.get("/api/state", headers={"host": "evil.example"}).status_code == 421


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": "https://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"sec-fetch-site": "cross-site"},
        {"sec-fetch-site": "same-site"},
        {"content-type": "text/plain"},
        {"content-type": "application/x-www-form-urlencoded"},
    ],
)
def test_a_request_of_another_page_changes_nothing(client, session, headers):
    session.edit({"do": "phrase", "label": 0, "text": "sport"})
    before = session.file.text
    answer = client.post("/api/undo", content=b"{}", headers={"content-type": "application/json", **headers})
    assert answer.status_code == 403
    assert session.file.text == before
    own = client.post("/api/undo", json={}, headers={"origin": HOME, "sec-fetch-site": "same-origin"})
    assert own.status_code == 200
    assert session.file.text != before


@pytest.mark.parametrize("name", CHANGES)
def test_what_changes_something_takes_a_post(client, name):
    assert client.get(f"/api/{name}").status_code == 404
    assert client.head(f"/api/{name}").status_code == 404


@pytest.mark.parametrize("name", READS)
def test_what_only_reads_is_answered(client, name):
    assert client.get(f"/api/{name}?row=0").status_code == 200


@pytest.mark.parametrize(
    ("name", "body", "code"),
    [
        ("edit", b"{", 400),
        ("edit", b'{"edit": "\xff"}', 400),
        ("edit", b"[" * 100_000, 400),
        ("edit", b"[1]", 422),
        ("edit", b'{"edit": 3}', 422),
        ("edit", b'{"edit": {"do": "name", "label": "0", "text": "x"}}', 422),
        ("edit", b'{"edit": {"do": "name", "label": true, "text": "x"}}', 422),
        ("edit", b'{"edit": {"do": "description", "label": 0, "place": -1, "text": "x"}}', 422),
        ("edit", b'{"edit": {"do": "add label", "text": "\\ud800"}}', 422),
        ("edit", b'{"edit": {"do": "template", "text": 3}}', 422),
        ("click", b'{"row": 10000000, "label": "money", "source": "random"}', 422),
        ("click", b'{"row": 0, "label": ["money"], "source": "random"}', 422),
        ("click", b'{"row": 0, "label": "money", "source": []}', 422),
        ("train", b'{"method": {}}', 422),
        ("export", b'{"what": "untrained", "name": "../x"}', 422),
        ("export", b'{"what": "?", "name": "x"}', 422),
        ("resolve", b'{"keep": 3}', 200),
        ("nothing", b"{}", 404),
    ],
)
def test_a_malformed_request_gets_one_line_and_no_5xx(client, name, body, code):
    answer = client.post(f"/api/{name}", content=body, headers={"content-type": "application/json"})
    assert answer.status_code == code
    if code != 200:
        assert "\n" not in answer.json()["problem"]


def test_a_large_request_is_refused(client):
    answer = client.post("/api/edit", content=b" " * 1_000_001, headers={"content-type": "application/json"})
    assert answer.status_code == 413


def test_the_page_reads_nothing_as_html_and_names_no_other_site():
    dangerous = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|Function\(|DOMParser|srcdoc"
    )
    elsewhere = re.compile(r"(https?:)?//(?!www\.w3\.org/2000/svg)\w[\w-]*\.\w+")
    page = files("labelspace.serve.studio").joinpath("page")
    texts = {file.name: file.read_text(encoding="utf-8") for file in page.iterdir()}
    assert len(texts) > 8
    assert [name for name, text in texts.items() if dangerous.search(text) or elsewhere.search(text)] == []
    assert dangerous.search("place.innerHTML = words")
    assert elsewhere.search('src="//cdn.example/x.js"')
    assert re.search(r"<script(?! type=\"module\" src)|\son\w+=|style=", texts["index.html"]) is None
