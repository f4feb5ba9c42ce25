"""Questions about a text, as the two decision protocols ask them, and what a model answers."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

from labelspace.classify.answers import Answers
from labelspace.errors import LabelFileError
from labelspace.labels import Label, LabelSpace
from labelspace.serve.operations import RefusedError
from labelspace.serve.room import Room, Served, bare

MOST_OPTIONS = 1000
"""Options of a request that are not the model's labels: each is read by the encoder once."""


@final
@dataclass(frozen=True)
class Option:
    """One option of a question."""

    name: str | None
    """What it is called; None: it has a description alone."""

    description: str | None = None
    """What it means."""


@final
@dataclass(frozen=True)
class Question:
    """A question whose answer is one of several options."""

    options: tuple[Option, ...]
    where: tuple[str | int, ...]
    """Path to the question in the request's body."""


@final
@dataclass(frozen=True)
class YesNo:
    """Whether a statement about the text is true."""

    statement: str | None
    true: str | None
    """What counts as true."""
    false: str | None
    """What counts as false."""
    where: tuple[str | int, ...]


@final
@dataclass(frozen=True)
class Reply:
    """The answer to a question."""

    probabilities: tuple[float, ...]
    """[option]."""

    chosen: int | None
    """The likeliest option, of a statement the only one; None: the model says that none of its labels fits."""

    @property
    def confidence(self) -> float:
        """The probability of the likeliest option."""
        return max(self.probabilities)

    @property
    def score(self) -> float:
        """The mean level, weighted by the probabilities."""
        return sum(level * share for level, share in enumerate(self.probabilities))


async def answer(
    room: Room, served: Served, text: str, questions: Sequence[Question | YesNo]
) -> tuple[list[Reply], int]:
    """Answer questions about one text; return the replies and how many tokens were read.

    Options that are the model's own labels are answered by the model as `predict` does, with its limits. Others are
    compared with the text on the fly, by the model's encoder: no limit is known for them.
    """
    if served.reads_pairs:
        raise RefusedError(422, f"{served.name} reads pairs of texts; send them to /predict.")
    # Counted first: all requests wait while labels are made of them.
    if (options := sum(map(len, {_new_options(served, question) for question in questions}))) > MOST_OPTIONS:
        raise RefusedError(
            413, f"the questions have {options:,} options; send at most {MOST_OPTIONS:,} at once.", ("questions",)
        )
    plans = [_plan(room, served, question) for question in questions]
    asked = list(dict.fromkeys(space for space, _ in plans))  # each thing once
    answers, tokens = await room.ask(served, [text], asked, count=True)
    found = dict(zip(asked, answers, strict=True))
    return [_reply(found[space], columns) for space, columns in plans], tokens


Plan = tuple[LabelSpace | None, tuple[int, ...]]
"""What to ask of the model (None: its own labels), and the columns of the options."""


def _plan(room: Room, served: Served, question: Question | YesNo) -> Plan:
    if isinstance(question, YesNo):
        return _yes_no(room, served, question)
    own = _own_columns(served, question)
    if own is not None:
        if served.space.several:
            raise RefusedError(
                422, f"a text may have several labels of {served.name}; ask for each as yes or no.", question.where
            )
        return None, own
    return space_of(room, served, question.options, question.where), tuple(range(len(question.options)))


def _new_options(served: Served, question: Question | YesNo) -> tuple[Option | str, ...]:
    """Return the options of a question that are not the model's labels."""
    if isinstance(question, YesNo):
        return (question.true, question.false) if question.true and question.false else ()
    return question.options if _own_columns(served, question) is None else ()


def _own_columns(served: Served, question: Question) -> tuple[int, ...] | None:
    """Return the columns of the model's labels, if they are the options, in whatever order; None if not.

    An option with a description that the model does not have is another option.
    """
    names = [str(option.description if option.name is None else option.name) for option in question.options]
    if sorted(names) != sorted(served.labels):
        return None
    for name, option in zip(names, question.options, strict=True):
        if option.name is not None and option.description not in (None, *served.space[name].descriptions):
            return None
    return tuple(map(served.labels.index, names))


def _yes_no(room: Room, served: Served, question: YesNo) -> Plan:
    """A statement is answered where it is a label of the model, or where both outcomes are described."""
    if question.true and question.false:
        options = (Option(None, question.true), Option(None, question.false))
        return space_of(room, served, options, question.where), (0, 1)
    if question.false:
        raise RefusedError(422, "what is true is not described; describe both outcomes, or neither.", question.where)
    meant = [_column_of(served, statement) for statement in (question.statement, question.true) if statement]
    known = {column for column in meant if column is not None}
    if len(known) == 1 and (len(meant) == 1 or meant[-1] is not None):
        return None, (known.pop(),)
    raise RefusedError(
        422,
        "an encoder cannot tell whether a statement is true by itself. Ask for a choice whose options describe both "
        f"outcomes, or for one of the labels of {served.name}: {', '.join(served.labels[:20])}.",
        question.where,
    )


def _column_of(served: Served, statement: str) -> int | None:
    """Return the column of the label that a statement is; None if it is none, or could be several."""
    # First as it is written, because labels may differ by their capital letters alone.
    for text, known in zip((statement.strip(), bare(statement)), served.columns, strict=True):
        if found := known.get(text):
            return next(iter(found)) if len(found) == 1 else None
    return None


def space_of(
    room: Room, served: Served, options: Sequence[Option], where: tuple[str | int, ...], template: str | None = None
) -> LabelSpace:
    """Return a label space of options that are not the model's labels; they are called by their numbers.

    Args:
        room: the room.
        served: the model.
        options: the options.
        where: path to them in the request's body.
        template: the sentence around each name; None: the model's own.

    Raises:
        RefusedError: the model reads no other labels, or an option or the template cannot be used.
    """
    if served.options is None or served.reads_pairs:
        raise RefusedError(
            422,
            f"{served.name} knows only its own labels and reads no other options; ask for all of them: "
            f"{', '.join(served.labels[:50])}.",
            where,
        )
    if not 2 <= len(options) <= MOST_OPTIONS:
        few = len(options) < 2
        raise RefusedError(
            422 if few else 413, f"a question has 2 to {MOST_OPTIONS:,} options. Got {len(options):,} instead.", where
        )
    labels = [_label(room, number, option, where) for number, option in enumerate(options)]
    template, most = served.space.template if template is None else template, room.config.max_characters
    longest = max(len(label.phrase or "") for label in labels)
    if len(template) + template.count("{label}") * longest > most:
        raise RefusedError(413, f"the template with an option in it is longer than {most:,} characters.", where)
    try:
        return LabelSpace(labels, template=template)
    except LabelFileError as error:
        raise RefusedError(422, str(error), where) from error


def _label(room: Room, number: int, option: Option, where: tuple[str | int, ...]) -> Label:
    name, description = ((text or "").strip() or None for text in (option.name, option.description))
    if name is None and description is None:
        raise RefusedError(422, f"option {number + 1} has neither a name nor a description; write one.", where)
    most = room.config.max_characters
    if max(len(name or ""), len(description or "")) > most:
        raise RefusedError(413, f"option {number + 1} is too long; write at most {most:,} characters.", where)
    if name is None:
        return Label(f"{number:04}", verbalizer=description)
    return Label(f"{number:04}", phrase=name, descriptions=[description] if description else [])


def _reply(answers: Answers, columns: tuple[int, ...]) -> Reply:
    probabilities = tuple(answers.probabilities[0, list(columns)].tolist())
    column = int(answers.columns[0])
    if len(columns) == 1:  # a statement that is a label of the model
        return Reply(probabilities, 0 if column >= 0 or answers.chosen is not None else None)
    return Reply(probabilities, None if column < 0 else columns.index(column))


def as_text(content: Any) -> str:
    """Return the texts of JSON, one after another; what its keys are called is left out.

    Example:
        >>> as_text({"subject": "Duplicate charge", "message": {"body": "Please help.", "priority": 1}})
        'Duplicate charge\\nPlease help.\\n1'
    """
    if isinstance(content, str):
        return content
    if content is None:
        return ""
    if isinstance(content, dict | list):
        parts = content.values() if isinstance(content, dict) else content
        return "\n".join(text for part in parts if (text := as_text(part)))
    return json.dumps(content)
