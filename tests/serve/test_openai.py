"""`/v1/decisions` and `/v1/models`, asked by the package `openai`."""

import asyncio
import typing
from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.decision import (
    AnswerAnswerResourceChoice,
    AnswerAnswerResourcePredicate,
    AnswerAnswerResourceRefusal,
    AnswerAnswerResourceScore,
)

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.encoders import Encoder
from labelspace.labels import Label
from serve.service import TEXTS, Service, serving

OWN = {"type": "choice", "instructions": "?", "choices": [{"value": name} for name in ("world", "sports", "money")]}
OTHER = {
    "type": "choice",
    "name": "topic",
    "instructions": "What is this about?",
    "choices": [
        {"value": "billing", "description": "Charges, invoices and refunds."},
        {"value": "login", "description": "Passwords and access to an account."},
        {"value": "weather"},
    ],
}


@pytest.fixture(scope="module")
def client(service: Service) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as found:
        yield found


def decide(client: openai.OpenAI, *questions: Any, text: Any = TEXTS[0], model: str = "news") -> Any:
    return client.decisions.create(model=model, input=text, questions=questions)


@pytest.mark.parametrize("name", ["news", "words", "joint", "lacon", "doubting"])
def test_a_choice_of_the_models_labels_is_what_the_model_predicts(
    client: openai.OpenAI, classifiers: dict[str, Any], name: str
):
    clf = classifiers[name]
    for row, text in enumerate(TEXTS):
        found = decide(client, OWN, text=text, model=name)
        [answer] = found.answers
        assert isinstance(answer, AnswerAnswerResourceChoice)
        assert answer.choice == clf.predict(TEXTS)[row]
        assert [part.value for part in answer.probabilities] == [
            "world",
            "sports",
            "money",
        ]  # the order of the question
        told = {part.value: part.probability for part in answer.probabilities}
        assert told == pytest.approx(dict(zip(clf.classes_, clf.predict_proba(TEXTS)[row], strict=True)), abs=1e-6)
        assert answer.confidence == told[answer.choice]
        assert (answer.name, answer.type, found.model) == (None, "choice", name)


def test_other_options_are_answered_as_a_zero_shot_classifier_of_them_would(client: openai.OpenAI, encoder: Any):
    space = LabelSpace(
        [
            Label(each["value"], descriptions=[each["description"]] if "description" in each else [])
            for each in OTHER["choices"]
        ],
        template="This news text is about {label}.",
    )
    clf = ZeroShotClassifier(space, encoder, anchor="both").fit()
    for row, text in enumerate(TEXTS):
        [answer] = decide(client, OTHER, text=text).answers
        told = {part.value: part.probability for part in answer.probabilities}
        assert told == pytest.approx(dict(zip(clf.classes_, clf.predict_proba(TEXTS)[row], strict=True)), abs=1e-6)
        assert answer.choice == clf.predict(TEXTS)[row]
        assert answer.name == "topic"


def test_every_field_has_the_type_that_the_client_declares(client: openai.OpenAI):
    score = {"type": "score", "name": "mood", "instructions": "?", "levels": [{"label": "bad"}, {"label": "good"}]}
    predicate = {"type": "predicate", "name": "p", "instructions": "sports"}
    found = decide(client, OWN, OTHER, score, predicate)
    raw = client.decisions.with_raw_response.create(
        model="news", input=TEXTS[0], questions=[OWN, OTHER, score, predicate]
    ).http_response.json()
    assert raw == found.to_dict()  # nothing is lost, nothing is made up by the client
    for part in walk(found):
        assert part.model_extra in (None, {}), type(part)  # no field that the client does not know
        assert type(part).model_validate(part.to_dict(), strict=True) == part
    usage = found.usage
    assert usage.total_tokens == usage.input_tokens > 0
    assert usage.output_tokens == usage.output_tokens_details.reasoning_tokens == 0
    assert usage.input_tokens_details.cached_tokens == usage.input_tokens_details.cache_write_tokens == 0


def walk(part: Any) -> Iterator[openai.BaseModel]:
    """Return every object within a response."""
    if isinstance(part, list | tuple):
        for each in part:
            yield from walk(each)
    elif isinstance(part, openai.BaseModel):
        yield part
        for name in type(part).model_fields:
            yield from walk(getattr(part, name))


def test_tokens_are_those_that_the_encoder_reads(client: openai.OpenAI, encoder: Any):
    for text in (TEXTS[0], "long " * 2000):
        assert decide(client, OWN, text=text).usage.input_tokens == len(encoder.tokenize([text])[0])


def test_a_score_is_the_mean_level(client: openai.OpenAI):
    levels = [{"label": "low", "description": "Bad news."}, {"label": "middle"}, {"label": "high"}]
    [answer] = decide(client, {"type": "score", "name": "s", "instructions": "?", "levels": levels}).answers
    assert isinstance(answer, AnswerAnswerResourceScore)
    assert [(part.label, part.value) for part in answer.probabilities] == [("low", 0), ("middle", 1), ("high", 2)]
    shares = [part.probability for part in answer.probabilities]
    assert sum(shares) == pytest.approx(1)
    assert answer.score == pytest.approx(shares[1] + 2 * shares[2])
    assert (answer.confidence, answer.name) == (max(shares), "s")


def test_a_predicate_is_the_probability_of_a_label_by_its_name_its_sentence_or_a_description(
    client: openai.OpenAI, news: ZeroShotClassifier
):
    expected = news.predict_proba(TEXTS[:1])[0].tolist()
    for label, statements in {
        "sports": ["sports", "Sports.", "This news text is about sports.", "A team wins a match."],
        "money": ["money", "the bank raises a price"],
        "world": ["World?", "War, peace and elections"],
    }.items():
        for statement in statements:
            [answer] = decide(client, {"type": "predicate", "instructions": statement}).answers
            assert isinstance(answer, AnswerAnswerResourcePredicate)
            assert answer.probability == pytest.approx(expected[list(news.classes_).index(label)], abs=1e-6), statement


def test_a_predicate_tells_labels_apart_that_differ_by_their_capital_letters(encoder: Encoder):
    labels = {"US": ["the states of America"], "us": ["we and our friends"], "Polish": ["Warsaw"], "other": ["more"]}
    clf = ZeroShotClassifier(labels, encoder).fit()
    [expected] = clf.predict_proba(TEXTS[:1]).tolist()
    with serving({"news": clf}) as service:
        for statement, name in (("us", "us"), ("US", "US"), ("This text is about us.", "us"), ("polish", "Polish")):
            question = {"type": "predicate", "name": "p", "instructions": statement}
            found = service.post("/v1/decisions", {"model": "news", "input": TEXTS[0], "questions": [question]}).json()
            share = expected[list(clf.classes_).index(name)]
            assert found["answers"][0]["probability"] == pytest.approx(share, abs=1e-6), statement
        question = {"type": "predicate", "name": "p", "instructions": "uS"}
        found = service.post("/v1/decisions", {"model": "news", "input": TEXTS[0], "questions": [question]})
        assert found.status_code == 422


def test_a_score_whose_levels_are_the_models_labels_is_answered_by_the_model(
    service: Service, news: ZeroShotClassifier
):
    levels = [{"label": name} for name in reversed(news.label_space_.names)]
    question = {"type": "score", "instructions": "How?", "name": "s", "levels": levels}
    body = {"model": "news", "input": TEXTS[0], "questions": [question]}
    [found] = service.post("/v1/decisions", body).json()["answers"]
    expected = dict(zip(news.classes_, news.predict_proba(TEXTS[:1])[0].tolist(), strict=True))
    assert {one["label"]: one["probability"] for one in found["probabilities"]} == pytest.approx(expected, abs=1e-6)


def test_a_model_of_several_labels_answers_predicates_and_refuses_a_choice(
    client: openai.OpenAI, classifiers: dict[str, Any]
):
    clf = classifiers["several"]
    asked = [{"type": "predicate", "name": name, "instructions": name} for name in clf.classes_]
    found = decide(client, *asked, model="several")
    told = [answer.probability for answer in found.answers]
    assert told == pytest.approx(clf.predict_proba(TEXTS[:1])[0].tolist(), abs=1e-6)
    assert sum(told) != pytest.approx(1)
    with pytest.raises(openai.UnprocessableEntityError, match="several labels"):
        decide(client, OWN, model="several")


def test_a_text_that_fits_no_label_is_refused_and_other_questions_are_answered(
    client: openai.OpenAI, classifiers: dict[str, Any]
):
    for name in ("choosy", "sure"):
        names = classifiers[name].answers(TEXTS).names
        for row, text in enumerate(TEXTS):
            label = {"type": "predicate", "instructions": "sports"}
            own, other, is_sports = decide(client, {**OWN, "name": "mine"}, OTHER, label, text=text, model=name).answers
            assert is_sports.type == ("refusal" if names[row] is None else "predicate")
            assert isinstance(own, AnswerAnswerResourceRefusal) == (names[row] is None)
            assert (own.name, own.type) == ("mine", "refusal" if names[row] is None else "choice")
            assert isinstance(other, AnswerAnswerResourceChoice)


def test_a_string_and_a_boolean_are_different_values(client: openai.OpenAI):
    choices = [
        {"value": True, "description": "The bank raises a price."},
        {"value": False, "description": "A team wins a match."},
        {"value": "true", "description": "A minister wins an election."},
    ]
    for text, expected in zip(
        ("The bank raises a price.", "A team wins a match.", "A minister wins an election."),
        (True, False, "true"),
        strict=True,
    ):
        [answer] = decide(client, {"type": "choice", "instructions": "?", "choices": choices}, text=text).answers
        assert answer.choice is expected or answer.choice == expected
        assert type(answer.choice) is type(expected)
        assert [type(part.value) for part in answer.probabilities] == [bool, bool, str]
    with pytest.raises(openai.UnprocessableEntityError, match="describe what it means"):
        decide(client, {"type": "choice", "instructions": "?", "choices": [{"value": True}, {"value": False}]})
    with pytest.raises(openai.UnprocessableEntityError, match="same value"):
        decide(client, {"type": "choice", "instructions": "?", "choices": [{"value": "a"}, {"value": "a"}]})


def test_an_option_whose_description_is_not_the_models_is_another_option(client: openai.OpenAI, news: Any):
    described = [{**choice, "description": "The bank raises a price."} for choice in OWN["choices"]]
    [answer] = decide(client, {**OWN, "choices": described}).answers
    own = dict(zip(news.classes_, news.predict_proba(TEXTS[:1])[0], strict=True))
    assert {part.value: part.probability for part in answer.probabilities} != pytest.approx(own, abs=1e-3)
    [answer] = decide(client, {**OWN, "choices": [*OWN["choices"][:2], described[2]]}).answers  # this one is
    assert {part.value: part.probability for part in answer.probabilities} == pytest.approx(own, abs=1e-6)


def test_an_option_without_a_name_is_its_description(client: openai.OpenAI):
    choices = [{"value": "", "description": "The bank raises a price."}, {"value": "a"}]
    [answer] = decide(client, {**OWN, "choices": choices}).answers
    assert [part.value for part in answer.probabilities] == ["", "a"]
    with pytest.raises(openai.UnprocessableEntityError, match="option 2 has neither a name nor a description"):
        decide(client, {**OWN, "choices": [{"value": "a"}, {"value": " ", "description": "\n"}]})


def test_messages_are_read_without_what_a_developer_says(client: openai.OpenAI):
    messages = [
        {"role": "developer", "content": "Answer well."},
        {"role": "system", "content": [{"type": "input_text", "text": "Be kind."}]},
        {
            "role": "user",
            "content": [{"type": "input_text", "text": "the team"}, {"type": "input_json", "data": {"a": 1}}],
        },
        {"role": "assistant", "content": [{"type": "output_text", "text": "won"}], "phase": "commentary"},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": "{}"},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": '{"about": ["a cup", 2]}'},
        {"type": "function_call", "name": "f", "call_id": "c", "arguments": "half of {"},
        {"type": "custom_tool_call", "name": "g", "call_id": "d", "input": "write to them"},
        {"type": "function_call_output", "call_id": "c", "output": "the match"},
        {"type": "custom_tool_call_output", "call_id": "d", "output": [{"type": "input_text", "text": "today"}]},
        {"role": "assistant", "content": [{"type": "refusal", "refusal": "no"}]},
    ]
    one = decide(client, OWN, text=messages)
    assert one == decide(
        client, OWN, text="the team\n1\n\nwon\n\na cup\n2\n\nhalf of {\n\nwrite to them\n\nthe match\n\ntoday\n\nno"
    )
    image = [{"role": "user", "content": [{"type": "input_image", "image_url": "data:,"}]}]
    with pytest.raises(openai.UnprocessableEntityError, match="an image cannot be read"):
        decide(client, OWN, text=image)


def test_what_the_client_may_also_send_changes_nothing(client: openai.OpenAI):
    more: Any = {"prompt_cache_key": "k", "prompt_cache_options": {"ttl": "30m"}, "safety_identifier": "s"}
    found = client.decisions.create(model="news", input=TEXTS[0], questions=[OWN], **more)  # pyright: ignore
    assert found == decide(client, OWN)


@pytest.mark.parametrize(
    ("question", "said"),
    [
        ({"type": "predicate", "instructions": "It rains."}, "an encoder cannot tell whether a statement is true"),
        ({"type": "choice", "instructions": "?", "choices": [{"value": "a"}]}, "at least 2"),
        ({"type": "choice", "instructions": "?", "choices": [{"value": str(n)} for n in range(256)]}, "at most 255"),
        ({"type": "choice", "instructions": "?", "choices": [{"value": 1}, {"value": 2}]}, "valid"),
        ({"type": "guess", "instructions": "?"}, "guess"),
    ],
)
def test_a_wrong_question_is_an_error_that_names_its_place(client: openai.OpenAI, question: Any, said: str):
    with pytest.raises(openai.UnprocessableEntityError, match=said) as caught:
        decide(client, OWN, question)
    assert caught.value.param is not None
    assert caught.value.param.startswith("questions[1]")
    assert caught.value.type == "invalid_request_error"
    assert caught.value.body["message"].count("\n") == 0  # pyright: ignore


def test_a_model_that_reads_no_options_says_so(client: openai.OpenAI):
    for name in ("words", "joint", "lacon", "doubting"):
        with pytest.raises(openai.UnprocessableEntityError, match=f"{name} knows only its own labels.*sports"):
            decide(client, OTHER, model=name)


def test_errors_are_the_clients_own_classes(client: openai.OpenAI):
    with pytest.raises(openai.NotFoundError, match="no model is called 'gpt-6-luna'; there is news") as caught:
        decide(client, OWN, model="gpt-6-luna")
    assert caught.value.param == "model"
    with pytest.raises(openai.UnprocessableEntityError, match="empty"):
        decide(client, OWN, text=" \n")
    with pytest.raises(openai.UnprocessableEntityError, match="pairs of texts"):
        decide(client, OWN, model="judge")
    with pytest.raises(openai.APIStatusError, match="50,000") as refused:
        decide(client, OWN, text="a" * 50_001)
    assert refused.value.status_code == 413


def test_a_key_is_asked_for(keyed: Service):
    with openai.OpenAI(base_url=f"{keyed.url}/v1", api_key="second-key", max_retries=0) as client:
        assert decide(client, OWN).model == "news"
    with (
        openai.OpenAI(base_url=f"{keyed.url}/v1", api_key="third-key", max_retries=0) as client,
        pytest.raises(openai.AuthenticationError, match="no valid key came"),
    ):
        decide(client, OWN)


def test_models_are_listed_and_retrieved(client: openai.OpenAI):
    listed = client.models.list().data
    assert [model.id for model in listed][:2] == ["news", "choosy"]
    model = client.models.retrieve("news")
    assert model == listed[0]
    assert (model.object, model.created, model.owned_by) == ("model", 1_790_000_000, "labelspace")
    assert typing.cast(Any, model).labels == ["sports", "money", "world"]
    with pytest.raises(openai.NotFoundError, match="no model is called 'other'"):
        client.models.retrieve("other")


def test_the_client_for_asyncio_gets_the_same_answers(client: openai.OpenAI, service: Service):
    async def ask() -> Any:
        async with openai.AsyncOpenAI(base_url=f"{service.url}/v1", api_key="none", max_retries=0) as other:
            asked = [other.decisions.create(model="news", input=text, questions=[OWN]) for text in TEXTS]  # pyright: ignore
            return await asyncio.gather(*asked)

    found = asyncio.run(ask())
    assert [each.answers[0].choice for each in found] == [
        decide(client, OWN, text=text).answers[0].choice for text in TEXTS
    ]
