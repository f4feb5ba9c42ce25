"""`POST /v1/decisions`, as the package `openai` sends it: questions about an input, each with its answer."""

import json
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictBool, StrictStr

from labelspace.serve.operations import Items, Operation, RefusedError, Strict, checked_texts, model_of
from labelspace.serve.questions import Option, Question, Reply, YesNo, answer, as_text
from labelspace.serve.room import Room

Value = StrictStr | StrictBool


class Part(BaseModel, extra="allow"):
    """A part of a message or of a question: text, JSON, or an image (which is refused)."""

    type: Literal["input_text", "output_text", "input_json", "input_image", "refusal"]
    text: str | None = None
    data: Any = None
    refusal: str | None = None


class Message(BaseModel, extra="allow"):
    """A message, or a tool's call or output. What a developer or the system says is no part of the document."""

    role: Literal["user", "developer", "system", "assistant"] | None = None
    content: str | Items[Part] | None = None
    output: str | Items[Part] | None = None
    input: Any = None
    arguments: Any = None
    type: str | None = None


class Choice(Strict):
    """One of the options of a choice."""

    value: Value
    description: str | None = None


class Level(Strict):
    """One of the levels of a score, the lowest first."""

    label: str
    description: str | None = None


class Predicate(Strict):
    """How likely is it that a statement about the input is true?"""

    type: Literal["predicate"]
    instructions: str | Items[Part]
    name: str | None = None


class ChoiceQuestion(Strict):
    """Which of the options fits the input?"""

    type: Literal["choice"]
    instructions: str | Items[Part]
    choices: Items[Choice] = Field(min_length=2, max_length=255)
    name: str | None = None


class ScoreQuestion(Strict):
    """Which level does the input have?"""

    type: Literal["score"]
    instructions: str | Items[Part]
    levels: Items[Level] = Field(min_length=2, max_length=255)
    name: str | None = None


AnyQuestion = Annotated[Predicate | ChoiceQuestion | ScoreQuestion, Field(discriminator="type")]


class DecisionRequest(BaseModel):
    """The body of a request."""

    model: str
    input: str | Items[Message]
    questions: Items[AnyQuestion] = Field(min_length=1, max_length=400)


class PredicateAnswer(BaseModel):
    """The probability that the statement is true."""

    type: Literal["predicate"] = "predicate"
    name: str | None
    probability: float


class ChoiceProbability(BaseModel):
    """The probability of an option."""

    value: bool | str
    probability: float


class ChoiceAnswer(BaseModel):
    """The likeliest option; `confidence` is its probability."""

    type: Literal["choice"] = "choice"
    name: str | None
    choice: bool | str
    confidence: float
    probabilities: list[ChoiceProbability]


class LevelProbability(BaseModel):
    """The probability of a level; `value` is its number, from 0 on."""

    label: str
    value: int
    probability: float


class ScoreAnswer(BaseModel):
    """The mean level; `confidence` is the probability of the likeliest one."""

    type: Literal["score"] = "score"
    name: str | None
    score: float
    confidence: float
    probabilities: list[LevelProbability]


class Refusal(BaseModel):
    """None of the options fits, says the model."""

    type: Literal["refusal"] = "refusal"
    name: str | None


class InputDetails(BaseModel):
    """Nothing is cached."""

    cached_tokens: int = 0
    cache_write_tokens: int = 0


class OutputDetails(BaseModel):
    """Nothing is written."""

    reasoning_tokens: int = 0


class Usage(BaseModel):
    """The tokens of the input, after the encoder's limit; nothing costs anything."""

    input_tokens: int
    output_tokens: int = 0
    total_tokens: int
    input_tokens_details: InputDetails = InputDetails()
    output_tokens_details: OutputDetails = OutputDetails()


class Decision(BaseModel):
    """The answers, in the order of the questions."""

    model: str
    answers: list[PredicateAnswer | ChoiceAnswer | ScoreAnswer | Refusal]
    usage: Usage


class Problem(BaseModel):
    """What was wrong, and where in the body."""

    message: str
    type: Literal["invalid_request_error", "server_error"]
    param: str | None
    code: str | None = None


class OpenAIError(BaseModel):
    """An error as OpenAI's clients read it."""

    error: Problem


def openai_error(refused: RefusedError) -> Any:
    """Return an error as OpenAI's clients read it."""
    kind = "server_error" if refused.status >= 500 else "invalid_request_error"
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in refused.where).lstrip(".")
    return OpenAIError(error=Problem(message=refused.message, type=kind, param=path or None))


async def decide(room: Room, request: DecisionRequest) -> Decision:
    """Answer the questions of a request."""
    served = model_of(room, request.model)
    [text] = checked_texts(room, [_document(request.input)], ("input",))
    questions = [_asked(question, ("questions", number)) for number, question in enumerate(request.questions)]
    replies, tokens = await answer(room, served, text, questions)
    answers = [_told(question, reply) for question, reply in zip(request.questions, replies, strict=True)]
    return Decision(model=served.name, answers=answers, usage=Usage(input_tokens=tokens, total_tokens=tokens))


def _document(given: str | Sequence[Message]) -> str:
    """Return what users, assistants and tools say."""
    if isinstance(given, str):
        return given
    return "\n\n".join(part for message in given if _read(message) for part in _said(message) if part)


def _read(message: Message) -> bool:
    return message.role not in ("developer", "system")


def _said(message: Message) -> list[str]:
    """Return the texts of a message, or of the call of a tool, whose arguments are JSON in a string."""
    arguments = message.arguments
    try:
        arguments = as_text(json.loads(arguments))
    except (ValueError, TypeError, RecursionError):
        arguments = as_text(arguments)
    return [_joined(message.content), _joined(message.output), as_text(message.input), arguments]


def _joined(content: str | Sequence[Part] | None) -> str:
    if content is None or isinstance(content, str):
        return content or ""
    if any(part.type == "input_image" for part in content):
        raise RefusedError(422, "an image cannot be read; send text.", ("input",))
    return "\n".join(part.text or part.refusal or as_text(part.data) for part in content)


def _asked(question: Any, where: tuple[str | int, ...]) -> Question | YesNo:
    if isinstance(question, Predicate):
        return YesNo(_joined(question.instructions), None, None, where)
    if isinstance(question, ScoreQuestion):
        levels = tuple(Option(level.label, level.description or None) for level in question.levels)
        return Question(levels, where)
    values = [choice.value for choice in question.choices]
    if len({(type(value), value) for value in values}) < len(values):
        raise RefusedError(422, "two choices have the same value; each must be unique.", where)
    for choice in question.choices:
        if isinstance(choice.value, bool) and not choice.description:
            raise RefusedError(422, "true or false alone means nothing to an encoder; describe what it means.", where)
    return Question(
        tuple(
            Option(None if isinstance(choice.value, bool) else choice.value, choice.description or None)
            for choice in question.choices
        ),
        where,
    )


def _told(question: Any, reply: Reply) -> Any:
    name, shares = question.name, reply.probabilities
    if reply.chosen is None:
        return Refusal(name=name)
    if isinstance(question, Predicate):
        return PredicateAnswer(name=name, probability=shares[0])
    if isinstance(question, ScoreQuestion):
        levels = [
            LevelProbability(label=level.label, value=value, probability=share)
            for value, (level, share) in enumerate(zip(question.levels, shares, strict=True))
        ]
        return ScoreAnswer(name=name, score=reply.score, confidence=reply.confidence, probabilities=levels)
    return ChoiceAnswer(
        name=name,
        choice=question.choices[reply.chosen].value,
        confidence=reply.confidence,
        probabilities=[
            ChoiceProbability(value=choice.value, probability=share)
            for choice, share in zip(question.choices, shares, strict=True)
        ],
    )


DECISIONS = Operation(
    method="POST",
    path="/v1/decisions",
    summary="Answer questions about a text, as OpenAI's clients ask them.",
    answer=decide,
    takes=DecisionRequest,
    gives=Decision,
    error=openai_error,
    problem=OpenAIError,
    example={
        "model": "MODEL",
        "input": "I was charged twice for my subscription.",
        "questions": [
            {
                "type": "choice",
                "name": "topic",
                "instructions": "What is this about?",
                "choices": [
                    {"value": "billing", "description": "Charges, invoices and refunds."},
                    {"value": "login", "description": "Passwords and access to an account."},
                ],
            }
        ],
    },
)
