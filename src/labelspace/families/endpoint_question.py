"""The question that a hosted model is asked about a text, and what its answer says about each label.

The options stand in the system message, before the text, because they are the same for all texts: servers that keep the
beginning of a prompt read them once.
"""

import json
import math
import re
import string
from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from labelspace.corpus.policy import without_surrogates
from labelspace.families.prompts import CHOICE_INSTRUCTIONS
from labelspace.labels import LabelSpace

LETTERS = (*string.ascii_uppercase, *string.ascii_lowercase)
TOP = 20
"""Tokens whose log-probabilities a server gives at most."""

_STRUCTURED_INSTRUCTIONS = """\
You are a text classifier.

You will be given a text and several mutually exclusive options.
Each option is prefixed by a symbol (e.g. A, b, 12, ...).
Your task is to choose the single best option.

Answer with a JSON object that holds the symbol of that option, such as {"answer": "A"}, and nothing else."""
# The log-probability that servers give to a token outside the top ones.
_UNSEEN = -9999.0
# How much less likely than the least likely token of an answer a label is that the answer does not have.
_BELOW = 1.0
# What stands around a symbol in answers such as "A)", "**A**" and " A.".
_AROUND = " \t\r\n()[]{}.:,;*\"'`"
_BYTES_PER_TOKEN = 4
_OBJECT = re.compile(r"\{[^{}]*\}")


@final
@dataclass(frozen=True, kw_only=True)
class Question:
    """The options of a label space, with a symbol for each."""

    symbols: tuple[str, ...]
    """[label], letters; numbers from 53 labels on."""

    options: str
    """The options as lines."""

    max_characters: int
    """A longer text loses its end."""

    @classmethod
    def of(cls, space: LabelSpace, *, max_characters: int) -> Self:
        """Return the question for a label space: an option is a verbalizer, with the descriptions below it.

        Example:
            >>> space = LabelSpace.from_dict({"labels": {"sports": "Matches and teams.", "money": "Banks."}})
            >>> print(Question.of(space, max_characters=100).options)
            A) This text is about sports.
               - Matches and teams.
            B) This text is about money.
               - Banks.
        """
        symbols = LETTERS[: len(space)]
        if len(space) > len(LETTERS):
            symbols = tuple(str(number) for number in range(1, len(space) + 1))
        lines: list[str] = []
        for symbol, label, verbalizer in zip(symbols, space, space.verbalizers, strict=True):
            lines.append(f"{symbol}) {verbalizer}")
            lines += [f"   - {description}" for description in label.descriptions]
        return cls(symbols=symbols, options="\n".join(lines), max_characters=max_characters)

    def messages(self, text: str, *, structured: bool) -> list[dict[str, str]]:
        """Return the messages of a chat."""
        instructions = _STRUCTURED_INSTRUCTIONS if structured else CHOICE_INSTRUCTIONS
        return [
            {"role": "system", "content": f"{instructions}\n\nOPTIONS:\n{self.options}"},
            {"role": "user", "content": f"TEXT:\n{without_surrogates(text[: self.max_characters])}"},
        ]

    def tokens(self, text: str) -> int:
        """Estimate the tokens of the messages, a quarter of their bytes."""
        content = "".join(message["content"] for message in self.messages(text, structured=True))
        return math.ceil(len(content.encode()) / _BYTES_PER_TOKEN)

    def schema(self) -> dict[str, Any]:
        """Return the response format of a structured answer."""
        answer = {"type": "string", "enum": list(self.symbols)}
        schema = {
            "type": "object",
            "properties": {"answer": answer},
            "required": ["answer"],
            "additionalProperties": False,
        }
        return {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": schema}}

    def by_logprobs(self, top: list[tuple[str, float]]) -> NDArray[np.float32] | None:
        """Return the probability of each label from the likeliest first tokens; None if no token is an option.

        Tokens of the same option, such as "A" and " A", add up. An option that is not among the tokens gets a
        log-probability below the lowest of them.

        Example:
            >>> question = Question.of(LabelSpace.from_names(["sports", "money", "art"]), max_characters=100)
            >>> scores = question.by_logprobs([("A", -0.7), (" A", -1.9), ("B", -3.0), ("The", -4.0)])
            >>> [round(score, 2) for score in scores.tolist()]
            [0.92, 0.07, 0.01]
        """
        seen = [(token, value) for token, value in top if math.isfinite(value) and value > _UNSEEN]
        found = np.full(len(self.symbols), -np.inf)
        for token, value in seen:
            column = self._column_of(token)
            if column is not None:
                found[column] = np.logaddexp(found[column], value)
        if not np.isfinite(found).any():
            return None
        found[np.isinf(found)] = min(value for _, value in seen) - _BELOW
        return softmax(found).astype(np.float32)

    def by_answer(self, content: str) -> NDArray[np.float32] | None:
        """Return 1 for the label that an answer names and 0 for the others; None if it names no option.

        Of an answer with more around it, as models write that think first, the last JSON object counts.

        Example:
            >>> question = Question.of(LabelSpace.from_names(["sports", "money"]), max_characters=100)
            >>> question.by_answer('{"answer": "B"}').tolist(), question.by_answer("Neither.")
            ([0.0, 1.0], None)
            >>> question.by_answer('A team plays? No: ```json {"answer": "B"} ```').tolist()
            [0.0, 1.0]
        """
        found = (_read(part) for part in (content, *reversed(_OBJECT.findall(content))))
        answer = next((value["answer"] for value in found if isinstance(value, dict) and "answer" in value), content)
        if type(answer) is int:  # with many options symbols are numbers, and a model may write one as a number
            answer = str(answer)
        column = self._column_of(answer) if isinstance(answer, str) else None
        if column is None:
            return None
        return np.eye(len(self.symbols), dtype=np.float32)[column]

    def _column_of(self, answer: str) -> int | None:
        """Return the label whose symbol this is; a small letter stands for the capital if it is no symbol itself."""
        bare = answer.strip(_AROUND)
        for symbol in (bare, bare.upper()):
            if symbol in self.symbols:
                return self.symbols.index(symbol)
        return None


def _read(content: str) -> Any:
    """Return the value of JSON; None if it is none."""
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        return None
