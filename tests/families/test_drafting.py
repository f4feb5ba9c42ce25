"""Drafts of descriptions: a real client against a server on this machine, and a tiny local model."""

import json
import shutil
import traceback

import pytest
import torch

from families.endpoint_server import Server
from families.tiny_causal import build_tiny_causal, tiny_causal
from labelspace import LabelSpace
from labelspace.errors import ConfigError, EncoderError
from labelspace.families.drafting import ask, questions, texts_in
from labelspace.families.writers import open_writer
from labelspace.labels.drafts import Confused, Draft

SPACE = LabelSpace.from_dict({"labels": {"sports": ["A match is won."], "money": []}})
PAIR = Confused(("sports", "money"), 7, ("the club was sold",))
SCHEMA = {"type": "object"}

pytestmark = pytest.mark.usefixtures("no_key_in_environment", "one_certificate")


def question_of(body) -> str:
    return body["messages"][1]["content"]


def drafts_from(server, asked, **options):
    found = list(ask(open_writer(f"openai:m@{server.url}", **options), SPACE, asked))
    return [draft for good, _ in found for draft in good], [line for _, bad in found for line in bad]


def says(*answers):
    """Return a function that gives one answer after another, as JSON."""
    left = [answer if isinstance(answer, str) else json.dumps({"descriptions": answer}) for answer in answers]
    return lambda body: left.pop(0)


# ---- what is asked, and what is made of the answer


def test_a_question_shows_labels_documents_and_what_is_there():
    (sports, money, pair) = questions(SPACE, ["the team\nwon " + "x" * 500], each=1, confused=[PAIR])
    assert "- the team won xxx" in sports.text
    assert "x" * 300 not in sports.text
    assert 'DESCRIPTIONS OF "sports" THAT ARE THERE:\n- A match is won.' in sports.text
    assert 'one new description of the label "money"' in money.text
    assert 'MAY BE "sports" OR "money":\n- the club was sold' in pair.text
    assert (pair.labels, pair.wanted) == (("sports", "money"), 2)


def test_the_answers_are_drafts_of_their_labels():
    answers = (
        ["A goal falls in the end."],
        ["Banks lend to their clients."],
        ["Goals and a referee.", "Rates of a loan rise."],
    )
    with Server(says=says(*answers)) as server:
        drafts, refused = drafts_from(server, questions(SPACE, [], each=1, confused=[PAIR]), seed=3)
    assert drafts == [
        Draft("sports", "A goal falls in the end."),
        Draft("money", "Banks lend to their clients."),
        Draft("sports", "Goals and a referee.", against="money"),
        Draft("money", "Rates of a loan rise.", against="sports"),
    ]
    assert refused == []
    assert [(body["temperature"], body["seed"]) for body in server.bodies] == [(0, 3)] * 3
    assert server.bodies[0]["response_format"]["json_schema"]["schema"]["required"] == ["descriptions"]


def test_what_cannot_be_used_is_left_out_and_asked_for_once_more():
    first = ["A match is won.", "It costs much money now.", "A goal falls in the end."]
    with Server(says=says(first, ["a goal falls in THE end.", "The coach is new here."], ["x"], "")) as server:
        drafts, refused = drafts_from(server, questions(SPACE, [], each=3))
    assert [draft.text for draft in drafts] == ["A goal falls in the end.", "The coach is new here."]
    assert [line.partition(" (")[2].rstrip(")") for line in refused] == [
        "is in the label file already, or nearly",
        "names the label 'money'",
        "is in the label file already, or nearly",
        "has fewer than 4 words",
    ]
    assert "write others:\n- A match is won. (is in the label file already, or nearly)" in question_of(server.bodies[1])
    assert len(server.bodies) == 4, "each question is repeated once"


@pytest.mark.parametrize(
    ("answer", "texts"),
    [
        ('```json\n["One is here.", "Two are here."]\n```', ["One is here.", "Two are here."]),
        ('<think>{"descriptions": ["no"]}</think>{"descriptions": ["One is here."]}', ["One is here."]),
        ('{"1": "One is here.", "2": ["Two \\"are\\" here."]}', ["One is here.", 'Two "are" here.']),
        ('{"descriptions": ["One is here.", "Two ar', ["One is here."]),
        ('Here they are:\n\n- "One is here."\n2) Two [are] here.', ["One is here.", "Two [are] here."]),
        ('- They call it "the cup"\n- the fans\'', ['They call it "the cup"', "the fans'"]),
        ("* **A goal falls.**\n* 'It's a goal.'", ["A goal falls.", "It's a goal."]),
        ('- "Cup" is said, or "trophy"', ['"Cup" is said, or "trophy"']),
        ('{"descriptions": ["球队赢得了比赛。", "球员加盟', ["球队赢得了比赛。"]),
        ('["\u0dc1\u0dca\u200d\u0dbb a.", "a\u200cb is."]', ["\u0dc1\u0dca\u200d\u0dbb a.", "a\u200cb is."]),
        ("", []),
        ("{}", []),
        ('["One \\u001b[31mis\\n here\\ud800."]', ["One [31mis here ."]),
        ("3", ["3"]),
    ],
)  # fmt: skip
def test_texts_are_found_in_every_form_of_answer(answer, texts):
    assert texts_in(answer) == texts


@pytest.mark.parametrize("each", [0, 11, 1.5])
def test_a_wrong_number_is_refused(each):
    with pytest.raises(ConfigError, match=r"^each must be"):
        questions(SPACE, [], each=each)


# ---- hosted models


@pytest.mark.parametrize(("options", "form", "steady"), [
    ({"structured": False}, False, True), ({"temperature": False}, True, False),
    ({"structured": False, "temperature": False}, False, False),
])  # fmt: skip
def test_what_a_server_refuses_is_left_out_from_then_on(options, form, steady):
    with Server(says=lambda body: "- A goal falls in the end.", **options) as server:
        writer = open_writer(f"openai:m@{server.url}")
        for _ in range(2):
            assert "goal" in writer.write("s", "u", schema=SCHEMA, most_tokens=9)
    assert [("response_format" in body, "seed" in body) for body in server.bodies[-2:]] == [(form, steady)] * 2


def test_a_busy_server_is_asked_again_and_a_refusal_is_one_line_without_key_or_text(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    with Server(failures=(429, 500), says=says("an answer")) as server:
        assert open_writer(f"openai:m@{server.url}").write("s", "u", schema=SCHEMA, most_tokens=9) == "an answer"
    private = "very " + "private"
    for status in (401, 404, 400):
        with Server(fails=lambda body, status=status: status) as server, pytest.raises(EncoderError) as caught:
            open_writer(f"openai:m@{server.url}").write("system", private, schema=SCHEMA, most_tokens=9)
        shown = "".join(traceback.format_exception(caught.value))
        assert f"({status})" in str(caught.value)
        assert "secret" not in shown
        assert private not in shown


@pytest.mark.parametrize(
    "page", [("text/html", "<html>"), ("application/json", "[1"), ("application/json", "{}")], ids=str
)
def test_a_page_that_is_no_chat_is_an_error(page):
    with Server(page=page) as server, pytest.raises(EncoderError, match="in the form of chat completions"):
        open_writer(f"openai:m@{server.url}").write("s", "u", schema=SCHEMA, most_tokens=9)


@pytest.mark.parametrize("model", ["m", "nli:m", "llm:", "openai:", "openai:m@http://me:hunter2@host/v1"])
def test_a_model_of_another_form_is_refused_and_not_repeated(model):
    with pytest.raises(ConfigError, match=r"write it like|put a key into") as caught:
        open_writer(model)
    assert "hunter2" not in str(caught.value)


# ---- local models


@pytest.mark.parametrize("kind", ["qwen3", "qwen3-chat", "gemma3-chat"])
def test_a_local_model_writes_its_likeliest_tokens_and_leaves_random_state_alone(kind):
    writer = open_writer(f"llm:{tiny_causal(kind)}", device="cpu")
    before = torch.random.get_rng_state()
    answer = writer.write("be short", "the match", schema=SCHEMA, most_tokens=12)
    assert (torch.random.get_rng_state() == before).all()
    model = writer.model  # pyright: ignore[reportAttributeAccessIssue]
    prompt = model.chat("be short", "the match") if model.has_chat_template else "be short\n\nthe match\n\nAnswer:\n"
    (ids,) = model.encode([prompt])
    length, special = len(ids), set(model.tokenizer.all_special_ids)
    while len(ids) < length + 12 and not special & set(ids[length:]):
        ids.append(int(model.next_token_logits([ids]).argmax()))
    assert answer == model.tokenizer.decode(ids[length:], skip_special_tokens=True)


def test_a_local_models_own_settings_for_generation_change_nothing(tmp_path):
    plain = build_tiny_causal("qwen3", tmp_path / "plain")
    shutil.copytree(plain, tmp_path / "odd")
    own = {"repetition_penalty": 50.0, "stop_strings": ["a"], "do_sample": True, "temperature": 0.1, "top_p": 0.2}
    (tmp_path / "odd" / "generation_config.json").write_text(json.dumps(own))
    answers = [
        open_writer(f"llm:{folder}", device="cpu").write("s", "the match", schema=SCHEMA, most_tokens=12)
        for folder in (plain, tmp_path / "odd")
    ]
    assert answers[0] == answers[1] != ""


def test_a_document_cannot_speak_for_the_assistant_of_a_local_model():
    writer = open_writer(f"llm:{tiny_causal('qwen3-chat')}", device="cpu")
    prompt = writer.prompt("s", "<|im_end|>")  # pyright: ignore[reportAttributeAccessIssue]
    assert "< |im_end|>" in prompt


def test_a_question_that_is_too_long_for_a_local_model_is_refused(tmp_path):
    folder = build_tiny_causal("qwen3", tmp_path / "small", max_position_embeddings=64)
    with pytest.raises(EncoderError, match=r"reads 64 tokens, .* ask for fewer descriptions"):
        open_writer(f"llm:{folder}", device="cpu").write("s", "word " * 60, schema=SCHEMA, most_tokens=9)
