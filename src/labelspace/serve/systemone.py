"""`POST /v1/systemone`, as the package `typesafe-sdk` sends it: named questions about a state."""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from labelspace.serve.operations import Items, Operation, RefusedError, checked_texts, model_of
from labelspace.serve.questions import Option, Question, Reply, YesNo, answer, as_text
from labelspace.serve.room import Room

Content = str | dict[str, Any] | list[Any]


class NoulCriteria(BaseModel):
    """What counts as yes, and what as no."""

    true: Content | None = None
    false: Content | None = None


class NoulQuestion(BaseModel):
    """A question with yes or no."""

    type: Literal["noul"]
    instructions: Content | None = None
    criteria: NoulCriteria | None = None


class ChoiceQuestion(BaseModel):
    """A question with one of several names, each with or without a description."""

    type: Literal["choice"]
    instructions: Content | None = None
    criteria: dict[str, Content | None] = Field(min_length=2)


class ScoreQuestion(BaseModel):
    """A question with levels, which are counted from 0."""

    type: Literal["score"]
    instructions: Content | None = None
    criteria: Items[Content] = Field(min_length=2)


class BoxQuestion(BaseModel):
    """A place in an image; refused."""

    type: Literal["box"]
    instructions: Content | None = None


AnyQuestion = Annotated[NoulQuestion | ChoiceQuestion | ScoreQuestion | BoxQuestion, Field(discriminator="type")]


class SystemOneRequest(BaseModel):
    """The body of a request."""

    model: str
    state: Content
    questions: dict[str, AnyQuestion] = Field(min_length=1, max_length=400)
    assets: dict[str, Any] | None = None


class NoulAnswer(BaseModel):
    """The probability of yes."""

    type: Literal["noul"] = "noul"
    noul: float


class ChoiceAnswer(BaseModel):
    """The likeliest name; `confidence` is its probability."""

    type: Literal["choice"] = "choice"
    choice: str
    confidence: float
    probabilities: dict[str, float]


class ScoreAnswer(BaseModel):
    """The mean level; `confidence` is the probability of the likeliest one."""

    type: Literal["score"] = "score"
    score: float
    confidence: float
    legend: dict[str, Content]
    probabilities: dict[str, float]


class Refusal(BaseModel):
    """None of the names fits, says the model. The protocol has no answer for that: its client leaves this one out."""

    type: Literal["refusal"] = "refusal"


class Usage(BaseModel):
    """The tokens of the state, after the encoder's limit."""

    input_tokens: int
    output_tokens: int = 0


class SystemOneResponse(BaseModel):
    """The answers, by the names of the questions."""

    model: str
    answers: dict[str, NoulAnswer | ChoiceAnswer | ScoreAnswer | Refusal]
    usage: Usage


class Detail(BaseModel):
    """What was wrong, and where."""

    loc: list[str | int]
    msg: str
    type: str = "value_error"


class DetailedError(BaseModel):
    """An error as TypeSafe's client reads it."""

    detail: str | list[Detail]


def detailed_error(refused: RefusedError) -> Any:
    """Return an error as the client reads it."""
    if refused.where:
        return DetailedError(detail=[Detail(loc=["body", *refused.where], msg=refused.message)])
    return DetailedError(detail=refused.message)


async def system_one(room: Room, request: SystemOneRequest) -> SystemOneResponse:
    """Answer the questions of a request."""
    served = model_of(room, request.model)
    if request.assets:
        raise RefusedError(422, "images cannot be read; send text.", ("assets",))
    [text] = checked_texts(room, [as_text(request.state)], ("state",))
    asked = [_asked(question, ("questions", name)) for name, question in request.questions.items()]
    replies, tokens = await answer(room, served, text, asked)
    answers = {
        name: _told(question, reply) for (name, question), reply in zip(request.questions.items(), replies, strict=True)
    }
    return SystemOneResponse(model=served.name, answers=answers, usage=Usage(input_tokens=tokens))


def _asked(question: Any, where: tuple[str | int, ...]) -> Question | YesNo:
    if isinstance(question, BoxQuestion):
        raise RefusedError(422, "a box in an image cannot be found; ask about text.", where)
    if isinstance(question, NoulQuestion):
        criteria = question.criteria or NoulCriteria()
        statement, true, false = (
            as_text(part) or None for part in (question.instructions, criteria.true, criteria.false)
        )
        return YesNo(statement, true, false, where)
    if isinstance(question, ScoreQuestion):
        levels = tuple(Option(None, as_text(level)) for level in question.criteria)
        return Question(levels, where)
    return Question(tuple(Option(name, as_text(content) or None) for name, content in question.criteria.items()), where)


def _told(question: Any, reply: Reply) -> Any:
    if reply.chosen is None:
        return Refusal()
    if isinstance(question, NoulQuestion):
        return NoulAnswer(noul=reply.probabilities[0])
    if isinstance(question, ScoreQuestion):
        return ScoreAnswer(
            score=reply.score,
            confidence=reply.confidence,
            legend={str(level): content for level, content in enumerate(question.criteria)},
            probabilities={str(level): share for level, share in enumerate(reply.probabilities)},
        )
    names = list(question.criteria)
    return ChoiceAnswer(
        choice=names[reply.chosen],
        confidence=reply.confidence,
        probabilities=dict(zip(names, reply.probabilities, strict=True)),
    )


SYSTEM_ONE = Operation(
    method="POST",
    path="/v1/systemone",
    summary="Answer named questions about a state, as TypeSafe's client asks them.",
    answer=system_one,
    takes=SystemOneRequest,
    gives=SystemOneResponse,
    error=detailed_error,
    problem=DetailedError,
    example={
        "model": "MODEL",
        "state": {"message": "I was charged twice for my subscription."},
        "questions": {
            "topic": {
                "type": "choice",
                "criteria": {
                    "billing": "Charges, invoices and refunds.",
                    "login": "Passwords and access to an account.",
                },
            }
        },
    },
)
