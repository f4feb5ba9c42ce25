"""`EndpointScorer`: a real client against a server on this machine."""

import logging
import math
import re
import sys
import threading
import time
import traceback
import warnings
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from families.endpoint_server import Server, options_of, text_of, top_of
from labelspace import LabelSpace
from labelspace.errors import (
    ConfigError,
    EncoderError,
    EncoderNotFoundError,
    InputError,
    LabelSpaceWarning,
    MissingDependencyError,
)
from labelspace.families import EndpointScorer
from labelspace.families.endpoint_connection import Connection, GivenUp
from labelspace.families.endpoint_question import TOP, Question

SPACE = LabelSpace.from_dict(
    {"template": "{label}", "labels": {"sports": ["a match was won", "a team"], "money": "a bank", "law": "a court"}}
)
TEXTS = ["the match was won", "the court", "a bank closed", "nothing of all that"]
SECRET = "sk-very-secret"

pytestmark = pytest.mark.usefixtures("no_key_in_environment", "one_certificate")


def scorer_of(server: Server, **options) -> EndpointScorer:
    return EndpointScorer(f"some-model@{server.url}", **options)


def many(count: int) -> LabelSpace:
    """Return labels whose options are told apart by one word each."""
    return LabelSpace.from_names([f"word{number}" for number in range(count)], template="{label}")


# ---- what is asked


def test_a_request_has_every_option_with_its_symbol_verbalizer_and_descriptions():
    with Server() as server:
        scorer_of(server).scores(TEXTS[:1], SPACE)
    (body,) = server.bodies
    assert body["messages"][0]["content"].endswith(
        "OPTIONS:\nA) sports\n   - a match was won\n   - a team\nB) money\n   - a bank\nC) law\n   - a court"
    )
    assert text_of(body) == TEXTS[0]
    assert (body["model"], body["logprobs"], body["top_logprobs"], body["max_tokens"]) == ("some-model", True, 20, 1)


def test_a_text_that_is_too_long_loses_its_end():
    with Server() as server:
        scorer_of(server, max_characters=9).scores(TEXTS[:1], SPACE)
    assert server.texts == ["the match"]


def test_a_server_without_a_key_is_asked_without_one_and_a_key_comes_from_the_environment(monkeypatch):
    with Server() as server:
        scorer_of(server).scores(TEXTS[:1], SPACE)
        monkeypatch.setenv("OPENAI_API_KEY", SECRET)
        scorer_of(server).scores(TEXTS[:1], SPACE)
    assert [headers["authorization"] for headers in server.headers] == ["Bearer none", f"Bearer {SECRET}"]


def test_the_server_of_the_environment_is_asked_where_no_url_is_given(monkeypatch):
    with Server() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        EndpointScorer("some-model").scores(TEXTS[:1], SPACE)
    assert server.texts == TEXTS[:1]


# ---- log-probabilities


def test_scores_are_the_probabilities_of_the_options():
    with Server() as server:
        scorer = scorer_of(server)
        scores = scorer.scores(TEXTS, SPACE)
    by_text = {text_of(body): dict(top_of(body)) for body in server.bodies}
    wanted = [[math.exp(by_text[text][symbol]) for symbol in "ABC"] for text in TEXTS]
    assert scores.dtype == np.float32
    assert scores == pytest.approx(np.array(wanted), abs=1e-6)
    assert scores.argmax(axis=1).tolist()[:3] == [0, 2, 1]
    assert scorer.describe()["answers"] == ["log-probabilities"]


def test_half_a_character_can_be_sent_and_counted():
    question = Question.of(SPACE, max_characters=100)
    assert question.messages("bad \ud83d half", structured=True)[1]["content"] == "TEXT:\nbad \ufffd half"
    assert question.tokens("bad \ud83d half") > 0


def test_equal_log_probabilities_are_equal_scores():
    question = Question.of(SPACE, max_characters=100)
    row = question.by_logprobs([("B", -1.0), ("A", -1.0), ("C", -1.0)])
    assert row is not None
    assert len(set(row.tolist())) == 1


def test_a_label_that_is_not_among_the_top_tokens_lies_below_the_lowest_of_them():
    question = Question.of(SPACE, max_characters=100)
    row = question.by_logprobs([("A", -0.1), ("The", -5.0), ("C", -9999.0)])
    assert row is not None
    assert np.log(row[0] / row[1:]) == pytest.approx([5.9, 5.9], abs=1e-5)  # 5.0 + 1 - 0.1


@pytest.mark.parametrize(
    ("token", "column"), [(" A", 0), ("B)", 1), ("**C**", 2), ("a", 0), ("D", None), ("", None), ("Sports", None)]
)
def test_a_token_is_read_with_what_stands_around_its_symbol(token, column):
    row = Question.of(SPACE, max_characters=100).by_logprobs([(token, -0.1)])
    assert (row is None) if column is None else (row is not None and row.argmax() == column)


def test_small_letters_are_options_of_their_own_where_there_are_so_many():
    question = Question.of(many(30), max_characters=100)
    row = question.by_logprobs([("b", -0.1)])
    assert row is not None
    assert row.argmax() == 27


def test_more_labels_than_log_probabilities_are_answered_and_a_note_says_so(caplog):
    space = many(30)
    with Server() as server, caplog.at_level(logging.INFO, "labelspace"):
        scores = scorer_of(server).scores(["word7", "word29"], space)
    assert scores.argmax(axis=1).tolist() == [7, 29]
    assert [(row > row.min() * 1.001).sum() for row in scores] == [TOP, TOP]
    assert f"{TOP} log-probabilities for 30 labels" in caplog.text


# ---- structured answers


@pytest.mark.parametrize("logprobs", [False, None], ids=["left out", "refused"])
def test_a_server_without_log_probabilities_gives_one_label(logprobs):
    with Server(logprobs=logprobs) as server:
        scorer = scorer_of(server)
        with pytest.warns(LabelSpaceWarning, match="gives no log-probabilities; each answer is one label"):
            scores = scorer.scores(TEXTS, SPACE)
        assert len(server.bodies) == len(TEXTS) + 1, "the way is found out with the first text alone"
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert (scorer.scores(TEXTS, SPACE) == scores).all()
    assert scores[:3].tolist() == [[1, 0, 0], [0, 0, 1], [0, 1, 0]]
    schema = server.bodies[-1]["response_format"]["json_schema"]["schema"]
    assert schema["properties"]["answer"]["enum"] == ["A", "B", "C"]
    assert server.bodies[-1]["temperature"] == 0


def test_a_server_that_takes_no_temperature_is_asked_without_one():
    with (
        Server(logprobs=None, temperature=False) as server,
        pytest.warns(LabelSpaceWarning, match="no log-probabilities"),
    ):
        scores = scorer_of(server).scores(TEXTS, SPACE)
    assert scores.argmax(axis=1).tolist()[:3] == [0, 2, 1]
    assert "temperature" not in server.bodies[-1]


def test_a_model_that_thinks_before_it_answers_is_asked_for_structured_answers():
    with (
        Server(tops=lambda top: [("<think>", -0.0)]) as server,
        pytest.warns(LabelSpaceWarning, match="no log-probabilities"),
    ):
        assert scorer_of(server).scores(TEXTS[:1], SPACE).tolist() == [[1, 0, 0]]


def test_more_labels_than_letters_are_numbered_and_answered():
    space = many(60)
    with Server() as server:
        scorer = scorer_of(server)
        with pytest.warns(LabelSpaceWarning, match="60 labels are too many for log-probabilities of letters"):
            scores = scorer.scores(["word3", "word59"], space)
        assert scores.argmax(axis=1).tolist() == [3, 59]
        assert list(options_of(server.bodies[0]))[-1] == "60"
        scorer.scores(TEXTS, SPACE)
        assert scorer.scores(["word3"], space).tolist() == scores[:1].tolist(), "what was found out is kept"
    assert scorer.describe()["answers"] == ["structured answers", "log-probabilities"]


# ---- answers that cannot be used


def test_an_answer_that_is_no_option_scores_all_labels_alike_and_is_counted():
    says = {"the court": "I cannot tell.", "a bank closed": '{"answer": "Z"}'}
    with (
        Server(logprobs=False, says=lambda body: says.get(text_of(body))) as server,
        pytest.warns(LabelSpaceWarning) as caught,
    ):
        scores = scorer_of(server).scores(TEXTS, SPACE)
    assert re.match("2 of 4 answers of .* name no option; they score all labels alike", str(caught[-1].message))
    assert scores[1:3] == pytest.approx(np.full((2, 3), 1 / 3))
    assert scores[0].tolist() == [1, 0, 0]


def test_a_model_whose_first_answers_are_all_no_option_is_an_error_before_the_rest_is_paid_for():
    with Server(logprobs=False, says=lambda body: "I cannot tell.") as server:
        with pytest.raises(EncoderError, match=r"none of the first 3 answers of .* names an option; choose a model"):
            scorer_of(server).scores(TEXTS * 10, SPACE)
        assert set(server.texts) == set(TEXTS[:3])


def test_a_first_answer_that_is_no_option_does_not_decide_how_to_ask():
    """By its single text, a server would count as one that gives no log-probabilities."""
    with (
        Server(tops=lambda top: top if len(server.bodies) > 3 else [], says=lambda body: "I cannot tell.") as server,
        pytest.warns(LabelSpaceWarning, match="^1 of 4 answers"),
    ):
        scores = scorer_of(server).scores(TEXTS, SPACE)
    assert scores[0] == pytest.approx(np.full(3, 1 / 3))
    assert all("response_format" not in body for body in server.bodies[-3:])


def test_a_single_answer_that_is_no_option_does_not_decide_how_later_texts_are_asked():
    with Server(tops=lambda top: top if len(server.bodies) > 3 else [], says=lambda body: "I cannot tell.") as server:
        scorer = scorer_of(server)
        with pytest.warns(LabelSpaceWarning, match="^1 of 1 answers"):
            scorer.scores(TEXTS[:1], SPACE)
        assert scorer.describe()["answers"] == []
        scorer.scores(TEXTS, SPACE)
        assert scorer.describe()["answers"] == ["log-probabilities"]


@pytest.mark.parametrize("order", [("odd", "bad"), ("bad", "odd"), ("bad", "bad", "odd", "the court")])
def test_few_texts_or_refusals_among_the_first_are_scored_alike(order):
    with (
        Server(
            logprobs=False,
            fails=lambda body: 400 if text_of(body) == "bad" else None,
            says=lambda body: "I cannot tell." if text_of(body) == "odd" else None,
        ) as server,
        pytest.warns(LabelSpaceWarning, match="name no option|gives no log-probabilities"),
    ):
        scores = scorer_of(server).scores(list(order), SPACE)
    assert scores[: len(order) - ("the court" in order)] == pytest.approx(1 / 3)


@pytest.mark.parametrize(
    "choice",
    [
        "null",
        "3",
        '{"message": {"content": 3}}',
        '{"message": {"content": {"answer": "A"}}}',
        '{"message": {"content": [null, 3]}}',
        '{"logprobs": {"content": {"a": 1}}}',
        '{"logprobs": {"content": [null]}}',
        '{"logprobs": {"content": [{"top_logprobs": [{"token": "A", "logprob": "x"}, {"token": "A"}, null]}]}}',
    ],
)
def test_a_choice_of_another_form_is_no_option(choice):
    page = ("application/json", f'{{"choices": [{choice}]}}')
    with Server(page=page) as server, pytest.raises(EncoderError, match="none of the first 3 answers"):
        scorer_of(server).scores(TEXTS, SPACE)


@pytest.mark.parametrize(
    "content",
    [
        '```json\n{"answer": "B"}\n```',
        '<think>Perhaps {"answer": "A"}?</think> {"answer": "B"}',
        'The text is about money.\n{"answer": "B", "why": "a bank"}',
        '{"answer": "B", "reason": "set {a, b}"}',
        '{"reasoning": {"x": 1}, "answer": "B"}',
        '{"answer": "B", "confidence": {}}',
        '{"answer": "B"} {"note": 1}',
    ],
)
def test_the_last_object_of_a_longer_answer_counts(content):
    found = Question.of(SPACE, max_characters=100).by_answer(content)
    assert found is not None
    assert found.tolist() == [0, 1, 0]


def test_an_answer_in_parts_is_read():
    parts = '[{"type": "text", "text": "{\\"answer\\": "}, {"type": "text", "text": "\\"B\\"}"}]'
    page = ("application/json", f'{{"choices": [{{"message": {{"content": {parts}}}}}]}}')
    with Server(page=page) as server, pytest.warns(LabelSpaceWarning, match="gives no log-probabilities"):
        scores = scorer_of(server).scores(TEXTS, SPACE)
    assert scores.argmax(axis=1).tolist() == [1] * len(TEXTS)


def test_a_text_that_the_server_refuses_is_counted_too():
    with (
        Server(fails=lambda body: 400 if "court" in text_of(body) else None) as server,
        pytest.warns(LabelSpaceWarning, match="^1 of 4 answers"),
    ):
        scores = scorer_of(server).scores(TEXTS, SPACE)
    assert scores[1] == pytest.approx(np.full(3, 1 / 3))
    assert server.texts.count("the court") == 1, "a refusal is not tried again"


def test_a_first_text_that_the_server_refuses_does_not_end_the_run():
    with (
        Server(fails=lambda body: 422 if text_of(body) in TEXTS[:2] else None) as server,
        pytest.warns(LabelSpaceWarning, match="^2 of 4 answers"),
    ):
        rows = list(scorer_of(server).each(TEXTS, SPACE))
    assert sorted(place for place, _ in rows) == [0, 1, 2, 3]
    scores = dict(rows)
    assert [scores[0], scores[1]] == pytest.approx(np.full((2, 3), 1 / 3))
    assert scores[2].argmax() == 1
    assert all("response_format" not in body for body in server.bodies[-2:]), "a later text decides how to ask"


def test_if_all_are_refused_no_text_has_an_answer_that_could_be_kept():
    with Server(fails=lambda body: 400) as server:
        answers = scorer_of(server).each(TEXTS, SPACE)
        with pytest.raises(EncoderError, match="refuses the request"):
            next(answers)


def test_an_option_that_is_a_number_may_be_written_as_one():
    question = Question.of(LabelSpace.from_names([f"label {number}" for number in range(60)]), max_characters=100)
    answers = [question.by_answer(content) for content in ('{"answer": 12}', '{"answer": "12"}', '{"answer": true}')]
    assert answers[0] is not None
    assert answers[0].argmax() == question.symbols.index("12")
    assert np.array_equal(answers[0], answers[1])
    assert answers[2] is None


@pytest.mark.parametrize("content", ["", "[]", "null", '{"answer": null}', '{"answer": ["A"]}', "3", "A or B"])
def test_nonsense_is_no_option(content):
    assert Question.of(SPACE, max_characters=100).by_answer(content) is None


# ---- several at once, tries, time


def test_several_requests_are_on_their_way_at_once_and_never_more():
    texts = [f"text {number}" for number in range(12)]
    three = threading.Barrier(3)

    def status(body):
        if text_of(body) in texts[1:4]:  # the first text is asked alone
            three.wait(20)

    with Server(fails=status, delay=0.02) as server:
        scorer_of(server, at_once=3).scores(texts, SPACE)
    assert server.most_at_once == 3
    assert sorted(server.texts) == sorted(texts)


@pytest.mark.slow
def test_the_order_in_which_answers_arrive_changes_nothing():
    texts = [f"{'match ' * (number % 3)}text {number}" for number in range(20)]
    with Server() as server:
        at_once, alone = (scorer_of(server, at_once=number).scores(texts, SPACE) for number in (8, 1))
    assert (at_once == alone).all()


def test_a_busy_or_broken_server_is_asked_again():
    with Server(failures=(429, 500, 503)) as server:
        scores = scorer_of(server).scores(TEXTS[:1], SPACE)
    assert scores.argmax() == 0
    assert server.texts == TEXTS[:1] * 4


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, r"too many requests, or has no credit left \(429 after 3 tries\)"),
        (500, r"failed with status 500 after 3 tries"),
    ],
)
def test_a_server_that_stays_broken_is_an_error_after_the_last_try(status, message):
    with Server(fails=lambda body: status) as server, pytest.raises(EncoderError, match=message):
        scorer_of(server, retries=2).scores(TEXTS[:1], SPACE)
    assert len(server.bodies) == 3


def test_a_slow_server_is_given_up():
    with Server(delay=1.0) as server, pytest.raises(EncoderError, match=r"did not answer within 0\.2 s \(one try\)"):
        scorer_of(server, timeout=0.2, retries=0).scores(TEXTS[:1], SPACE)


def test_a_server_that_is_not_there_is_an_error():
    with Server() as server:
        url = server.url
    with pytest.raises(EncoderError, match="cannot be reached"):
        EndpointScorer(f"m@{url}", retries=0).scores(TEXTS[:1], SPACE)


@pytest.fixture
def given_up(monkeypatch):
    """Set once a connection is given up."""
    happened, give_up = threading.Event(), Connection.give_up
    monkeypatch.setattr(Connection, "give_up", lambda connection: (give_up(connection), happened.set()))
    return happened


def test_nothing_is_asked_after_an_error_and_what_was_on_its_way_is_there(given_up):
    arrived = threading.Event()

    def status(body):
        number = int(text_of(body).removeprefix("text "))
        if number == 9:
            arrived.wait(20)
            return 401
        if number > 9:
            arrived.set()
            given_up.wait(20)  # until the other one is refused
        return None

    with Server(fails=status) as server:
        found = []
        with pytest.raises(EncoderError, match="401"):
            found.extend(scorer_of(server, at_once=2).each([f"text {number}" for number in range(40)], SPACE))
    assert sorted(place for place, _ in found) == [*range(9), 10]
    assert sorted(server.texts) == sorted(f"text {number}" for number in range(11))


def test_of_several_errors_the_first_is_raised_and_none_of_the_others_is_tried_again(given_up):
    arrived = threading.Event()

    def status(body):
        if text_of(body) == "a bank closed":
            arrived.set()
            given_up.wait(20)
            return 500
        if text_of(body) == "the court":
            arrived.wait(20)  # until both are on their way
            return 401
        return None

    with Server(fails=status) as server, pytest.raises(EncoderError, match="401"):
        scorer_of(server, at_once=2).scores(TEXTS[:3], SPACE)
    assert sorted(server.texts) == sorted(TEXTS[:3])


def test_an_interrupted_run_does_not_wait_for_the_server():
    released = threading.Event()

    def status(body):
        if text_of(body) in TEXTS[2:]:
            released.wait(20)

    with Server(fails=status) as server:
        answers = scorer_of(server, at_once=2).each(TEXTS, SPACE)
        next(answers)  # the first text is asked alone
        next(answers)
        started = time.monotonic()
        answers.close()
        assert time.monotonic() - started < 10
        released.set()


def asked(connection: Connection, text: str):
    messages = [{"role": "system", "content": ""}, {"role": "user", "content": f"TEXT:\n{text}"}]
    return connection.ask(model="m", messages=messages)


def test_a_connection_given_up_answers_what_is_on_its_way_sends_nothing_more_and_is_closed():
    arrived, released = threading.Event(), threading.Event()

    def hold(body):
        arrived.set()
        released.wait(20)

    with Server(fails=hold) as server, ThreadPoolExecutor() as pool:
        connection = Connection(server.url, timeout=20, retries=2)
        on_its_way = pool.submit(asked, connection, "first")
        arrived.wait(20)
        connection.give_up()
        with pytest.raises(GivenUp):
            asked(connection, "second")
        assert not connection.closed
        released.set()
        assert on_its_way.result(20).choices
        assert connection.closed
    assert server.texts == ["first"]


def test_a_request_that_failed_is_not_repeated_once_its_connection_is_given_up():
    def refuse(body):
        connection.give_up()
        return 500

    with Server(fails=refuse) as server:
        connection = Connection(server.url, timeout=20, retries=2)
        with pytest.raises(GivenUp):
            asked(connection, "text")
    assert server.texts == ["text"]
    assert connection.closed


# ---- errors that end it at once


@pytest.mark.parametrize(
    ("status", "error", "message"),
    [
        (401, EncoderError, r"refuses a key \(401\), from OPENAI_API_KEY; check it\.$"),
        (403, EncoderError, r"does not allow this \(403\)"),
        (404, EncoderNotFoundError, r"was not found \(404\); check the name of the model, and the URL"),
        (400, EncoderError, r"refuses the request \(400\)"),
        (418, EncoderError, r"refuses the request \(418\)"),
    ],
)
def test_a_refusal_is_one_line_without_key_or_text(status, error, message, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with Server(fails=lambda body: status) as server, pytest.raises(error, match=message) as caught:
        scorer_of(server).scores(TEXTS, SPACE)
    shown = "".join(traceback.format_exception(caught.value))
    assert "\n" not in str(caught.value)
    assert SECRET not in shown
    assert TEXTS[0] not in shown
    assert max(Counter(server.texts).values()) <= 3, "no text is tried again in the same way"
    assert len(server.bodies) <= (9 if status == 400 else 3), "but three texts may be refused"


def test_a_server_that_wants_a_key_is_told_apart_from_one_that_refuses_it():
    with Server(fails=lambda body: 401) as server, pytest.raises(EncoderError, match=r"wants a key .* set it in the"):
        scorer_of(server).scores(TEXTS, SPACE)


def test_no_key_and_no_text_is_logged(monkeypatch, caplog):
    monkeypatch.setenv("OPENAI_API_KEY", SECRET)
    with Server(failures=(429,)) as server, caplog.at_level(logging.DEBUG):
        scorer_of(server).scores(TEXTS, SPACE)
    assert caplog.records
    assert SECRET not in caplog.text
    assert not [text for text in TEXTS if text in caplog.text]


@pytest.mark.parametrize(
    "page", [("text/html", "<html>hello</html>"), ("application/json", "[1"), ("application/json", "[]")], ids=str
)
def test_a_page_that_is_no_chat_is_an_error(page):
    with Server(page=page) as server, pytest.raises(EncoderError, match="in the form of chat completions"):
        scorer_of(server).scores(TEXTS, SPACE)
    assert len(server.bodies) == 1


# ---- names and options


@pytest.mark.parametrize(
    ("name", "model", "url"),
    [
        ("m@http://localhost:1/v1", "m", "http://localhost:1/v1"),
        ("org/m:8b@https://host/v1/", "org/m:8b", "https://host/v1/"),
        ("@cf/meta/m@https://host/v1", "@cf/meta/m", "https://host/v1"),
    ],
)
def test_a_name_is_a_model_and_a_url(name, model, url):
    scorer = EndpointScorer(name)
    assert (scorer.model, scorer.url, scorer.name) == (model, url, name)
    assert "EndpointScorer" in repr(scorer)


@pytest.mark.parametrize(
    "name",
    [
        "m@https://user:hunter2@host/v1",
        "m@https://hunter2@host/v1",
        "m@https://host/v1?key=hunter2",
        "m@https://host/v1#hunter2",
        "m@https://host:hunter2/v1",
        "m@https://",
        "m@https://ho st/v1",
        "m@localhost:8000/v1",
        "m@ftp://host/v1",
        "@https://host/v1",
        "",
    ],
)
def test_a_name_that_is_none_or_holds_credentials_is_refused_and_not_repeated(name):
    with pytest.raises(ConfigError) as caught:
        EndpointScorer(name)
    assert "hunter2" not in "".join(traceback.format_exception(caught.value))
    assert "; " in str(caught.value)


def test_credentials_in_the_environment_are_refused_too(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "https://user:hunter2@host/v1")
    with pytest.raises(ConfigError, match="OPENAI_BASE_URL must be") as caught:
        EndpointScorer("m")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("name", ["gpt", "gpt@https://api.openai.com/v1"])
def test_openai_without_a_key_is_refused_before_any_call(name):
    with pytest.raises(ConfigError, match="OPENAI_API_KEY is not set"):
        EndpointScorer(name)


@pytest.mark.parametrize("options", [{"at_once": 0}, {"timeout": 0}, {"retries": -1}, {"max_characters": 0}], ids=str)
def test_a_wrong_option_is_refused(options):
    (name,) = options
    with pytest.raises(ConfigError, match=f"^{name} must be"):
        EndpointScorer("m@http://localhost/v1", **options)


def test_texts_are_looked_at_before_any_call():
    with Server() as server:
        with pytest.raises(InputError, match="single str"):
            scorer_of(server).scores("one text", SPACE)
        with pytest.raises(InputError, match="place 1"):
            scorer_of(server).scores(["one", None], SPACE)  # pyright: ignore[reportArgumentType]
        assert scorer_of(server).scores([], SPACE).shape == (0, 3)
    assert server.bodies == []


def test_without_the_package_the_install_command_is_told(monkeypatch):
    monkeypatch.setitem(sys.modules, "openai", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[openai\]'"):
        EndpointScorer("m@http://localhost/v1")


def test_progress_counts_the_answers(capsys):
    with Server() as server:
        scorer_of(server, verbose=True).scores(TEXTS, SPACE)
    assert "asking the server: 4 of 4" in capsys.readouterr().err
