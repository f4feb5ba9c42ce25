"""`/v1/systemone` and `/v1/models`, asked by the package `typesafe-sdk`."""

import asyncio
import json
import logging
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
import typesafe_sdk
from typesafe_sdk import Choice, Noul, RetryPolicy, Score, TypeSafeClient

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.labels import Label
from serve.service import TEXTS, Service

OWN = Choice(instructions="What is it about?", criteria={"world": None, "sports": None, "money": None})
ONCE = RetryPolicy(max_retries=0)


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[TypeSafeClient]:
    with TypeSafeClient(base_url=service.url, api_key="none", model="news", retry=ONCE) as found:
        yield found


@pytest.mark.parametrize("name", ["news", "words"])
def test_a_choice_of_the_models_labels_is_what_the_model_predicts(
    client: TypeSafeClient, classifiers: dict[str, Any], name: str
):
    clf = classifiers[name]
    for row, text in enumerate(TEXTS):
        found = client.system_one(text, {"topic": OWN}, model=name)
        answer = found.choices["topic"]
        assert answer.choice == clf.predict(TEXTS)[row]
        expected = dict(zip(clf.classes_, clf.predict_proba(TEXTS)[row], strict=True))
        assert answer.probabilities == pytest.approx(expected, abs=1e-6)
        assert list(answer.probabilities) == ["world", "sports", "money"]  # the order of the question
        assert answer.confidence == answer.probabilities[answer.choice]
        assert found.model == name


def test_other_options_are_answered_as_a_zero_shot_classifier_of_them_would(client: TypeSafeClient, encoder: Any):
    criteria = {"billing": "Charges and refunds.", "login": {"what": "Passwords", "more": ["access", 1]}, "other": None}
    texts = {"billing": ["Charges and refunds."], "login": ["Passwords\naccess\n1"], "other": []}
    labels = [Label(name, descriptions=found) for name, found in texts.items()]
    space = LabelSpace(labels, template="This news text is about {label}.")
    clf = ZeroShotClassifier(space, encoder, anchor="both").fit()
    for row, text in enumerate(TEXTS):
        answer = client.system_one(text, {"topic": Choice(criteria=criteria)}).choices["topic"]
        expected = dict(zip(clf.classes_, clf.predict_proba(TEXTS)[row], strict=True))
        assert answer.probabilities == pytest.approx(expected, abs=1e-6)
        assert answer.choice == clf.predict(TEXTS)[row]


def test_a_state_may_be_a_text_an_object_or_a_list(client: TypeSafeClient):
    whole = client.system_one("the team\nwon\n3\ntrue", {"topic": OWN})
    for state in (
        {"who": "the team", "what": {"did": "won", "goals": 3, "at home": True, "more": None}},
        ["the team", ["won", 3], True],
    ):
        assert client.system_one(state, {"topic": OWN}).choices == whole.choices


def test_a_score_keeps_what_its_levels_mean(client: TypeSafeClient):
    criteria: Any = ["Can wait.", {"when": "this week"}, ["now", "at once"]]
    answer = client.system_one(TEXTS[0], {"urgency": Score(criteria=criteria)}).scores["urgency"]
    assert answer.legend == dict(enumerate(criteria))
    assert list(answer.probabilities) == [0, 1, 2]
    assert sum(answer.probabilities.values()) == pytest.approx(1)
    assert answer.score == pytest.approx(answer.probabilities[1] + 2 * answer.probabilities[2])
    assert answer.confidence == max(answer.probabilities.values())


def test_yes_or_no_is_answered_for_a_label_or_between_two_descriptions(
    client: TypeSafeClient, news: ZeroShotClassifier, encoder: Any
):
    described: Any = {"true": "The bank raises a price.", "false": "A team wins a match."}
    found = client.system_one(
        TEXTS[1],
        {
            "label": Noul(instructions="Sports?"),
            "described": Noul(instructions="Is this about money?", criteria=described),
            "true alone": Noul(criteria={"true": "A team wins a match."}),
        },
    )
    own = dict(zip(news.classes_, news.predict_proba([TEXTS[1]])[0], strict=True))
    assert found.nouls["label"].noul == pytest.approx(own["sports"], abs=1e-6)
    assert found.nouls["true alone"].noul == pytest.approx(own["sports"], abs=1e-6)
    labels = [Label(name, verbalizer=text) for name, text in described.items()]
    expected = ZeroShotClassifier(LabelSpace(labels), encoder, anchor="both").fit().predict_proba([TEXTS[1]])[0]
    assert found.nouls["described"].noul == pytest.approx(expected[1], abs=1e-6)  # false, true
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match="cannot tell whether a statement is true"):
        client.system_one(TEXTS[0], {"rain": Noul(instructions="Is it raining?")})


@pytest.mark.parametrize("criteria", [{"false": "A team wins a match."}, {"true": "It is about cats."}])
def test_one_outcome_that_is_not_the_statement_is_refused_and_not_ignored(client: TypeSafeClient, criteria: Any):
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match="describe"):
        client.system_one(TEXTS[0], {"q": Noul(instructions="sports", criteria=criteria)})


def test_a_text_that_fits_no_label_has_no_answer(
    client: TypeSafeClient, classifiers: dict[str, Any], caplog: pytest.LogCaptureFixture
):
    names = classifiers["choosy"].answers(TEXTS).names
    other = Choice(criteria={"rain": None, "sun": None})
    for row, text in enumerate(TEXTS):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "typesafe_sdk"):
            asked = {"mine": OWN, "other": other, "sports": Noul(instructions="sports")}
            found = client.system_one(text, asked, model="choosy")
        assert ("sports" in found.answers) == (names[row] is not None)
        assert ("mine" in found.answers) == (names[row] is not None)
        assert "other" in found.choices
        assert ("'refusal'" in caplog.text) == (names[row] is None)
    refused = TEXTS[list(names).index(None)]
    assert client.system_one(refused, {"mine": OWN}, model="choosy").answers == {}  # alone, too


def test_long_bodies_come_compressed_with_zstd(service: Service, classifiers: dict[str, Any]):
    sent: list[httpx2.Request] = []
    clf, text = classifiers["news"], "the bank " * 1000
    transport = httpx2.HTTPTransport()
    with httpx2.Client(transport=transport, event_hooks={"request": [sent.append]}) as http:
        client = TypeSafeClient(base_url=service.url, api_key="none", model="news", retry=ONCE, http_client=http)
        found = client.system_one(text, {"topic": OWN})
    assert sent[0].headers["content-encoding"] == "zstd"
    assert len(sent[0].content) < 1000
    assert found.choices["topic"].choice == clf.predict([text])[0]


def test_every_field_has_the_type_that_the_client_declares(client: TypeSafeClient):
    from typesafe_sdk._schemas import models as wire

    questions: Any = {"c": OWN, "s": Score(criteria=["low", "high"]), "n": Noul(instructions="sports")}
    found = client.system_one(TEXTS[0], questions)
    raw = found.raw_http_response.json()
    assert wire.SystemOneResponse.model_validate(raw, strict=True).model_dump() == raw  # no more and no less
    assert found.usage.input_tokens == client.system_one(TEXTS[0], {"c": OWN}).usage.input_tokens
    assert found.usage.output_tokens == 0


def test_errors_are_the_clients_own_classes(client: TypeSafeClient):
    with pytest.raises(
        typesafe_sdk.TypeSafeNotFoundError, match="model: no model is called 'jev-latest'; there is news"
    ):
        client.system_one(TEXTS[0], {"topic": OWN}, model="jev-latest")
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match="state: the text is empty"):
        client.system_one({}, {"topic": OWN})
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match=r"questions\.box: a box in an image"):
        client.system_one(TEXTS[0], {"box": {"type": "box", "instructions": "the dog"}})
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match="assets: images cannot be read"):
        client.system_one(TEXTS[0], {"topic": OWN}, extra_body={"assets": {"a": {"type": "image"}}})
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError, match="lacon knows only its own labels"):
        client.system_one(TEXTS[0], {"topic": Choice(criteria={"a": None, "b": None})}, model="lacon")
    with pytest.raises(typesafe_sdk.TypeSafeAPIError, match=r"413 state: a text has 50,001 characters") as caught:
        client.system_one("a" * 50_001, {"topic": OWN})
    assert caught.value.status == 413
    with pytest.raises(typesafe_sdk.TypeSafeUnprocessableEntityError) as wrong:
        client.system_one(TEXTS[0], {"topic": {"type": "choice", "criteria": {"one": None}}})
    from typesafe_sdk._schemas import models as wire

    assert wire.HTTPValidationError.model_validate(wrong.value.body).detail[0].loc == [  # pyright: ignore
        "body",
        "questions",
        "topic",
        "choice",
        "criteria",
    ]


def test_an_image_is_refused(client: TypeSafeClient):
    image = typesafe_sdk.Image(b"\x89PNG\r\n\x1a\n" + b"\0" * 32)
    with pytest.raises(typesafe_sdk.TypeSafeAPIError) as caught:
        client.system_one(image, {"topic": OWN})
    assert caught.value.status == 415


def test_a_key_is_asked_for(keyed: Service):
    with TypeSafeClient(base_url=keyed.url, api_key="first-key", model="news", retry=ONCE) as client:
        assert client.models.list().models[0].name == "news"
    with (
        TypeSafeClient(base_url=keyed.url, api_key="wrong", model="news", retry=ONCE) as client,
        pytest.raises(typesafe_sdk.TypeSafeAuthenticationError, match="no valid key came"),
    ):
        client.system_one(TEXTS[0], {"topic": OWN})


def test_models_are_listed(client: TypeSafeClient):
    model = client.models.list().models[0]
    assert (model.name, model.release_date) == ("news", "2026-09-21")
    assert model.description == "ZeroShotClassifier, 3 labels: sports, money, world"


def test_the_client_for_asyncio_gets_the_same_answers(client: TypeSafeClient, service: Service):
    async def ask() -> Any:
        async with typesafe_sdk.AsyncTypeSafeClient(
            base_url=service.url, api_key="none", model="news", retry=ONCE
        ) as other:
            return await asyncio.gather(*(other.system_one(text, {"topic": OWN}) for text in TEXTS))

    found = asyncio.run(ask())
    assert [each.choices["topic"].choice for each in found] == [
        client.system_one(text, {"topic": OWN}).choices["topic"].choice for text in TEXTS
    ]
    assert json.loads(found[0].model_dump_json())["model"] == "news"
