"""The four routes of a Label Studio backend: predictions in its labelling page, which can be sorted by doubt."""

import contextlib
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any, final

from pydantic import BaseModel, Field

from labelspace.classify.answers import Answers
from labelspace.serve.operations import Items, Operation, RefusedError, checked_texts, model_of
from labelspace.serve.room import Room, Served

BASE = "/label-studio/{name}"


class Task(BaseModel, extra="allow"):
    """A task; its `data` holds the text."""

    data: dict[str, Any]


class PredictRequest(BaseModel):
    """What Label Studio asks: tasks, and the project's labelling configuration."""

    tasks: Items[Task]
    label_config: str = Field(max_length=100_000)


class Event(BaseModel, extra="allow"):
    """What happened in Label Studio."""

    action: str


@final
class Config(HTMLParser):
    """The parts of a labelling configuration that matter here: the choices of a text, and which column it is.

    Example:
        >>> config = Config.read('<View><Text name="t" value="$body"/><Choices name="c" toName="t"></Choices></View>')
        >>> config.choices, config.text, config.column
        ('c', 't', 'body')
    """

    choices: str | None = None
    text: str | None = None
    column: str | None = None
    multiple = False

    def __init__(self) -> None:
        super().__init__()
        self._columns: dict[str, str] = {}
        self._found: list[tuple[str | None, str | None, bool]] = []

    @classmethod
    def read(cls, source: str) -> "Config":
        """Read a configuration.

        Raises:
            RefusedError: it has no choices for a text.
        """
        config = cls()
        with contextlib.suppress(AssertionError):  # of HTMLParser, for some declarations
            config.feed(source)
        usable = (found for found in config._found if found[0] and found[1] in config._columns)
        config.choices, config.text, config.multiple = next(usable, (None, None, False))
        config.column = config._columns.get(config.text or "")
        if not config.column:
            raise RefusedError(
                422,
                'the labelling configuration has no choices of a text; it needs <Text name="text" value="$text"/> and '
                '<Choices name="label" toName="text">.',
                ("label_config",),
            )
        return config

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag; HTMLParser gives names in lower case."""
        found = dict(attrs)
        if tag == "choices":
            multiple = (found.get("choice") or "").startswith("multiple")
            self._found.append((found.get("name"), found.get("toname"), multiple))
        elif tag in ("text", "hypertext", "paragraphs") and (found.get("value") or "").startswith("$"):
            self._columns[str(found.get("name"))] = str(found["value"])[1:]


async def health(room: Room, name: str) -> dict[str, Any]:
    """Say that the backend is up."""
    return {"status": "UP", "model_class": model_of(room, name).classifier.class_name}


async def setup(room: Room, _: Any, name: str) -> dict[str, Any]:
    """Name the model's version."""
    return {"model_version": _version(model_of(room, name))}


async def predict(room: Room, request: PredictRequest, name: str) -> dict[str, Any]:
    """Label tasks: one prediction each, in order, without a choice where the model gives none or the text is blank."""
    served = model_of(room, name)
    config = Config.read(request.label_config)
    if served.reads_pairs:
        raise RefusedError(422, f"{served.name} reads pairs of texts, which Label Studio's texts are not.")
    if served.space.several and not config.multiple:
        raise RefusedError(
            422,
            f'a text may have several labels of {served.name}; write <Choices choice="multiple">.',
            ("label_config",),
        )
    texts = _texts(request.tasks, str(config.column))
    version = _version(served)
    results = [{"result": [], "score": 0.0, "model_version": version} for _ in texts]
    written = [row for row, text in enumerate(texts) if text.strip()]
    if written or not texts:
        [answers], _ = await room.ask(served, checked_texts(room, [texts[row] for row in written], ("tasks",)))
        for place, row in enumerate(written):
            results[row] = _result(answers[place : place + 1], config, version)
    return {"results": results, "model_version": version}


async def webhook(room: Room, event: Event, name: str) -> dict[str, Any]:
    """Take note of an event; training is `labelspace fit`'s."""
    served = model_of(room, name)
    if event.action == "START_TRAINING":
        raise RefusedError(
            422, f"{served.name} is not trained here; export the annotations as CSV, and pass them to labelspace fit."
        )
    return {"noted": event.action}


def _version(served: Served) -> str:
    return f"{served.name} {served.created}"


def _texts(tasks: Sequence[Task], column: str) -> list[str]:
    """Return the texts of tasks; a task without one has a blank, unless all have none."""
    values = [task.data.get(column) for task in tasks]
    for number, value in enumerate(values):
        if not isinstance(value, str | None):
            raise RefusedError(422, f"task {number + 1} has no text in {column!r}.", ("tasks", number, "data"))
    if tasks and all(value is None for value in values):
        raise RefusedError(422, f"no task has a text in {column!r}.", ("tasks", 0, "data"))
    return [value or "" for value in values]


def _result(answers: Answers, config: Config, version: str) -> dict[str, Any]:
    """Return one prediction; its score is the probability of the likeliest label, by which tasks can be sorted."""
    if answers.chosen is None:
        found = [] if answers.names[0] is None else [answers.names[0]]
    else:
        found = [label for label, chosen in zip(answers.labels, answers.chosen[0], strict=True) if chosen]
    region = {"from_name": config.choices, "to_name": config.text, "type": "choices", "value": {"choices": found}}
    return {
        "result": [region] if found else [],
        "score": float(answers.confidence[0]),
        "model_version": version,
    }


LABEL_STUDIO = [
    Operation(method="GET", path=f"{BASE}/health", summary="Say that Label Studio's backend is up.", answer=health),
    Operation(
        method="POST",
        path=f"{BASE}/setup",
        summary="Connect Label Studio: its backend's address is all before /setup.",
        answer=setup,
        takes=dict[str, Any],
    ),
    Operation(
        method="POST",
        path=f"{BASE}/predict",
        summary="Label the tasks of Label Studio.",
        answer=predict,
        takes=PredictRequest,
    ),
    Operation(
        method="POST", path=f"{BASE}/webhook", summary="Take note of what happens there.", answer=webhook, takes=Event
    ),
]
