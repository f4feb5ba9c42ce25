"""A hosted model as a view: what it is asked, what is kept, what is told before the first call."""

import logging
import re
import sys

import pytest

from families.endpoint_server import Server, text_of
from labelspace import ConsensusClassifier, LabelSpace, load
from labelspace.consensus.calls import calls_of
from labelspace.consensus.store import ScoreStore
from labelspace.errors import ConfigError, EncoderError, LabelSpaceWarning, MissingDependencyError
from labelspace.families import EndpointScorer

LABELS = {
    "labels": [
        {"name": "sports", "descriptions": ["Results of matches and games.", "Players, teams and a coach."]},
        {"name": "money", "descriptions": ["Banks, markets and prices."]},
    ]
}
SPACE = LabelSpace.from_dict(LABELS)
POOL = [
    f"the {who} {what} the {which}"
    for who in ("team", "bank", "player", "price", "match", "market")
    for what in ("won", "lost", "closed", "opened")
    for which in ("game", "money", "cup", "rate")
]
SECRET = "sk-very-secret"

pytestmark = pytest.mark.usefixtures("no_key_in_environment")


@pytest.fixture
def make(tiny_encoder_folder, tmp_path):
    """Make a consensus of the tiny encoder, a hosted model and words."""

    def made(url, documents=10, **options):
        # The tiny encoder knows nothing, so a guard would leave the words out.
        config = {"alpha": 0, "slow_documents": documents, "min_agreement": 0, **options.pop("config", {})}
        views = [f"zero-shot:{tiny_encoder_folder}", f"openai:m@{url}", "words"]
        given = {"student": "words", "checkpoint": tmp_path / "run", "config": config} | options
        return ConsensusClassifier(LABELS, views, **given)

    return made


def test_a_hosted_model_is_a_view_by_name(make, tmp_path):
    with Server() as server:
        clf = make(server.url).fit(POOL)
    assert len(server.texts) == len(set(server.texts)) == 10
    assert set(server.texts) <= set(POOL)
    assert clf.fit_result_.views[1] == f"openai:m@{server.url}"
    assert load(clf.save(tmp_path / "model")).predict(POOL).tolist() == clf.predict(POOL).tolist()


def test_no_key_is_written_to_any_file(make, monkeypatch, tmp_path):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with Server() as server:
        make(server.url).fit(POOL).save(tmp_path / "model")
    assert {headers["authorization"] for headers in server.headers} == {f"Bearer {SECRET}"}
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert any("scores" in file.parts for file in files)
    assert [file for file in files if SECRET.encode() in file.read_bytes()] == []


@pytest.mark.slow
def test_the_same_fit_asks_nothing_and_one_with_more_documents_asks_for_the_others(make):
    with Server() as server:
        first = make(server.url, 40).fit(POOL)
        again = make(server.url, 40).fit(POOL)
        assert len(server.texts) == 40
        make(server.url, 60).fit(POOL)
    assert len(server.texts) == len(set(server.texts)) == 60
    assert again.predict(POOL).tolist() == first.predict(POOL).tolist()


@pytest.mark.slow
def test_calls_tokens_and_price_are_told_before_the_first_call(make, caplog):
    with Server() as server, caplog.at_level(logging.INFO, "labelspace"):
        make(server.url, 40, config={"price": 2.5}).fit(POOL)
        make(server.url, 60).fit(POOL)
        make(server.url, 60).fit(POOL)
    first, more, nothing = (line for line in caplog.messages if line.startswith("openai:"))
    assert re.search(r": 40 calls, about [\d,]+ tokens of input, about 0\.\d+ at 2\.5 per million\.$", first)
    assert re.search(r": 20 calls, about [\d,]+ tokens of input; 40 of 60 documents are answered already\.$", more)
    assert nothing.endswith(": 0 calls; 60 of 60 documents are answered already.")


def test_without_a_folder_for_the_answers_the_note_says_that_they_can_be_lost():
    store = ScoreStore(None, "openai:m@http://localhost/v1", ["a text"], SPACE)
    assert "1 call, " in calls_of("openai:m@http://localhost/v1", store, SPACE, price=None)
    assert "answers are lost" in calls_of("openai:m@http://localhost/v1", store, SPACE, price=None)


def test_the_estimate_is_near_the_length_of_what_is_sent():
    texts = ["a text of seven words or so"] * 3
    with Server() as server:
        name = f"openai:m@{server.url}"
        told = calls_of(name, ScoreStore(None, name, texts, SPACE), SPACE, price=None)
        EndpointScorer(name.removeprefix("openai:")).scores(texts[:1], SPACE)
    sent = sum(len(message["content"]) for message in server.bodies[0]["messages"])
    found = re.search(r"about ([\d,]+) tokens", told)
    assert found
    assert float(found[1].replace(",", "")) == pytest.approx(sent / 4, rel=0.25)


@pytest.mark.slow
def test_what_was_answered_before_an_error_is_kept(make):
    answered = []

    def status(body):
        with server.lock:
            if len(answered) == 50:
                return 401
            answered.append(text_of(body))
        return None

    with Server(fails=status) as server:
        with pytest.raises(EncoderError, match="401"):
            make(server.url, 96).fit(POOL)
        assert set(server.texts) > set(answered), "some were refused"
        server.fails = lambda body: None
        server.bodies.clear()
        make(server.url, 96).fit(POOL)
    assert sorted([*answered, *server.texts]) == sorted(POOL)


def test_the_same_model_of_another_server_is_asked_again(monkeypatch, tmp_path):
    for _ in range(2):
        with Server() as server:
            monkeypatch.setenv("OPENAI_BASE_URL", server.url)
            ScoreStore(tmp_path, "openai:m", POOL[:3], SPACE).ask(lambda: EndpointScorer("m"))
        assert len(server.texts) == 3


def test_equal_documents_are_asked_about_once(tmp_path):
    with Server() as server:
        store = ScoreStore(tmp_path, f"openai:m@{server.url}", ["a match", "a bank", "a match"], SPACE)
        scores = store.ask(lambda: EndpointScorer(f"m@{server.url}"))
    assert len(server.texts) == 2
    assert (scores[0] == scores[2]).all()


def test_progress_goes_on_with_every_answer_and_counts_kept_ones(tmp_path):
    seen = []
    with Server() as server:
        view = f"openai:m@{server.url}"
        ScoreStore(tmp_path, view, POOL[:5], SPACE).ask(lambda: EndpointScorer(view[7:]))
        ScoreStore(tmp_path, view, POOL[:8], SPACE).ask(
            lambda: EndpointScorer(view[7:]), lambda done, total=None, note="": seen.append((done, total))
        )
    assert seen == [(6, 8), (7, 8), (8, 8)]


def test_a_server_without_log_probabilities_is_a_view_too(make):
    with Server(logprobs=None) as server, pytest.warns(LabelSpaceWarning, match="no log-probabilities"):
        make(server.url).fit(POOL)
    assert len(server.texts) == 11


@pytest.mark.parametrize(
    ("view", "message"),
    [
        ("openai:m@https://me:hunter2@host/v1", "without user, password"),
        ("openai:m@localhost:8000", "http:// or https://"),
        ("openai:", "openai:MODEL"),
        ("openai:m", "OPENAI_API_KEY is not set"),
    ],
)
@pytest.mark.parametrize("student", [None, "words"])
def test_a_hosted_view_that_cannot_work_is_refused_before_any_work(view, message, student, monkeypatch):
    monkeypatch.setattr("labelspace.consensus.members.fit_view", lambda *_, **__: pytest.fail("a view was trained"))
    with pytest.raises(ConfigError, match=message) as caught:
        ConsensusClassifier(LABELS, ["tests/data/tiny-bert", view], student=student).fit(POOL)
    assert "hunter2" not in str(caught.value)


def test_a_hosted_view_needs_a_student_and_is_none_itself():
    view = "openai:m@http://localhost/v1"
    with pytest.raises(ConfigError, match="give a student"):
        ConsensusClassifier(LABELS, ["tests/data/tiny-bert", view]).fit(POOL)
    with pytest.raises(ConfigError, match="Got a hosted model") as caught:
        ConsensusClassifier(LABELS, student="openai:m@https://me:hunter2@host/v1").fit(POOL)
    assert "hunter2" not in str(caught.value)


def test_a_missing_package_is_told_before_any_work(monkeypatch):
    monkeypatch.setattr("labelspace.consensus.members.fit_view", lambda *_, **__: pytest.fail("a view was trained"))
    monkeypatch.setitem(sys.modules, "openai", None)
    views = ["tests/data/tiny-bert", "openai:m@http://localhost/v1"]
    with pytest.raises(MissingDependencyError, match=r"labelspace\[openai\]"):
        ConsensusClassifier(LABELS, views, student="words").fit(POOL)
