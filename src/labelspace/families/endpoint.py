"""`EndpointScorer`: classification as a question to a hosted model, through the protocol of OpenAI's chat completions.

Many servers speak it: OpenAI's, vLLM, llama.cpp, Ollama and others. One call asks about one text. What a server can do
is found out with the first text, and kept for the others:

    log-probabilities    of the first token of the answer: a probability for each label
    structured answers   a JSON object with the symbol of one label: 1 for it, 0 for the others

A server that takes neither `temperature` nor `max_tokens`, as those of reasoning models, is asked without them.
"""

import logging
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Queue
from threading import Thread
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import check_number
from labelspace.errors import EncoderError, warn
from labelspace.families.cross_encoder import check_texts
from labelspace.families.endpoint_address import address_of, import_client, key_for
from labelspace.families.endpoint_connection import Connection
from labelspace.families.endpoint_errors import in_our_words
from labelspace.families.endpoint_question import LETTERS, TOP, Question
from labelspace.labels import LabelSpace
from labelspace.progress import progress_bar

MAX_CHARACTERS = 8_000
"""Characters of a text that are sent, some 2,000 tokens."""

FIRST_TEXTS = 3
"""Texts that are tried before the server counts as refusing all."""

_logger = logging.getLogger("labelspace")


@final
@dataclass(frozen=True, kw_only=True)
class Way:
    """One way to ask a server."""

    name: str
    """What it is, for a report."""

    structured: bool
    """True reads the answer as JSON, False the log-probabilities of its first token."""

    options: tuple[tuple[str, Any], ...]
    """Options of the request."""


LOGPROBS = Way(
    name="log-probabilities", structured=False, options=(("logprobs", True), ("top_logprobs", TOP), ("max_tokens", 1))
)
STRUCTURED = (
    Way(name="structured answers", structured=True, options=(("temperature", 0.0),)),
    Way(name="structured answers at the server's temperature", structured=True, options=()),
)

Row = NDArray[np.float32]


@final
class EndpointScorer:
    """Scores texts against labels by asking a hosted model which option fits. The texts leave this machine.

    The key comes from the environment variable OPENAI_API_KEY, and a server of one's own may want none. Neither a key
    nor a text is written to a log or into an error.

    With log-probabilities a row holds the probability of each label; a label that is not among the 20 likeliest tokens
    is less likely than any of them. With structured answers, and always from 53 labels on, a row is 1 for the label
    that was named and 0 for the others. An answer that names no option, or a text that the server refuses, scores all
    labels alike; a warning tells how many there were, and it is an error if none of the first three gives an option.

    Args:
        name: `MODEL@URL`, or `MODEL` for the server in OPENAI_BASE_URL, by default OpenAI's.
        at_once: most requests at the same time.
        timeout: seconds until a request is given up.
        retries: how often a request is repeated, with growing pauses, after a time-out, a lost connection, an error of
            the server or too many requests.
        max_characters: a longer text loses its end.
        verbose: True shows a bar on a terminal, plain lines elsewhere.

    Raises:
        ConfigError: the name is no model and URL, the URL holds credentials, an option is invalid, or OpenAI is meant
            and there is no key.
        MissingDependencyError: the package openai is not installed.

    Example:
        >>> from families.endpoint_server import Server  # a server on this machine, in place of a real one
        >>> space = LabelSpace.from_dict({"labels": {"sports": "A match was won.", "politics": "A law was passed."}})
        >>> with Server() as server:
        ...     scorer = EndpointScorer(f"some-model@{server.url}")
        ...     scores = scorer.scores(["the match was won late", "a new law"], space)
        >>> scores.argmax(axis=1).tolist(), scorer.describe()["answers"]
        ([0, 1], ['log-probabilities'])
    """

    family = "openai"

    def __init__(
        self,
        name: str,
        *,
        at_once: int = 8,
        timeout: float = 60.0,
        retries: int = 5,
        max_characters: int = MAX_CHARACTERS,
        verbose: bool = False,
    ) -> None:
        check_number("at_once", at_once, least=1, whole=True)
        check_number("timeout", timeout, above=0)
        check_number("retries", retries, least=0, whole=True)
        check_number("max_characters", max_characters, least=1, whole=True)
        self.model, self.url = address_of(name)
        self.name, self.at_once, self.timeout, self.retries = name, at_once, timeout, retries
        self.max_characters, self.verbose = max_characters, verbose
        self._openai = import_client()
        key_for(self.url)  # refused here if it is missing, not at the first text
        self._ways: dict[bool, Way] = {}  # whether there are letters for all labels -> the way that works

    def scores(self, texts: Sequence[str], space: LabelSpace) -> Row:
        """Return the probability of each label, [text label], float32; rows sum to 1.

        Args:
            texts: the texts to classify.
            space: the labels; their verbalizers and descriptions are the options, in order.

        Raises:
            InputError: `texts` is a single string, or an entry is not a string.
            EncoderNotFoundError: the server has no such model or address.
            EncoderError: the key is refused, or the server does not answer as it should.
        """
        check_texts("texts", texts)
        found = np.empty((len(texts), len(space)), dtype=np.float32)
        with progress_bar("asking the server", verbose=self.verbose) as report:
            for done, (place, row) in enumerate(self.each(texts, space), 1):
                found[place] = row
                report(done, len(texts))
        return found

    def each(self, texts: Sequence[str], space: LabelSpace) -> Iterator[tuple[int, Row]]:
        """Yield the place of each text and its row of `scores`, as the answers arrive.

        Args:
            texts: the texts to classify.
            space: the labels.
        """
        question = Question.of(space, max_characters=self.max_characters)
        alike = np.full(len(space), 1 / len(space), dtype=np.float32)
        lettered = len(space) <= len(LETTERS)
        start = unusable = 0
        connection = Connection(self.url, timeout=self.timeout, retries=self.retries)
        try:
            if len(texts) and lettered not in self._ways:
                first, row = self._find_way(connection, texts, question)
                # The texts before wait for this one: if all are refused, none has an answer to be kept.
                yield from ((place, alike) for place in range(first))
                yield first, alike if row is None else row
                start, unusable = first + 1, first + (row is None)
            way = self._ways.get(lettered, LOGPROBS)
            for place, row in self._ask_all(connection, texts, start, question, way):
                unusable += row is None
                yield place, alike if row is None else row
        finally:
            connection.give_up()  # so that nothing on its way is tried again
        if unusable:
            warn(
                f"{unusable} of {len(texts)} answers of {self.family}:{self.name} name no option; they score all "
                "labels alike."
            )

    def describe(self) -> dict[str, Any]:
        """Return name, family and kind of answers, for a log or a result file."""
        return {"name": self.name, "family": self.family, "answers": [way.name for way in self._ways.values()]}

    def __repr__(self) -> str:
        return f"EndpointScorer({self.name!r})"

    def _ask_all(
        self, connection: Connection, texts: Sequence[str], start: int, question: Question, way: Way
    ) -> Iterator[tuple[int, Row | None]]:
        """Yield the place of each text from `start` on and its row, several requests at once.

        After an error nothing more is sent, and it is raised once the requests that were on their way are answered.
        """
        waiting = deque(range(start, len(texts)))
        answered: Queue[tuple[int, Row | None, BaseException | None] | None] = Queue()

        def work() -> None:
            with suppress(IndexError):  # nothing is left
                while True:
                    place = waiting.popleft()
                    try:
                        answered.put((place, self._ask(connection, texts[place], question, way), None))
                    except BaseException as error:  # noqa: BLE001  # raised in the thread that waits for it
                        waiting.clear()
                        answered.put((place, None, error))
            answered.put(None)

        # Not a pool, whose threads would hold the process at its end until the last server has answered.
        working = min(self.at_once, len(waiting))
        for number in range(working):
            Thread(target=work, name=f"labelspace-endpoint-{number}", daemon=True).start()
        failure: BaseException | None = None
        try:
            while working:
                answer = answered.get()
                if answer is None:
                    working -= 1
                elif answer[2] is None:
                    yield answer[:2]
                elif failure is None:
                    failure = answer[2]
                    connection.give_up()  # so that those on their way are not tried again
        finally:
            waiting.clear()
        if failure is not None:
            raise failure

    def _find_way(self, connection: Connection, texts: Sequence[str], question: Question) -> tuple[int, Row | None]:
        """Find the way to ask by the first texts; return the place of the last one tried, and its row."""
        labels = len(question.symbols)
        ways = (LOGPROBS, *STRUCTURED) if labels <= len(LETTERS) else STRUCTURED
        tried, odd, refused = min(len(texts), FIRST_TEXTS), None, None
        for place in range(tried):
            way, row, refusal = self._decide(connection, texts[place], question, ways)
            odd, refused = odd or way, refused or refusal
            if way is not None and row is not None:
                self._keep(way, labels)
                return place, row
        if odd is None:
            raise self._told(refused)
        if tried == FIRST_TEXTS and refused is None:
            raise EncoderError(
                f"none of the first {tried} answers of {self.family}:{self.name} names an option; choose a model that "
                "follows instructions and answers in JSON, or a server that gives log-probabilities."
            )
        if tried < len(texts):
            self._keep(odd, labels)
        return tried - 1, None

    def _decide(
        self, connection: Connection, text: str, question: Question, ways: Sequence[Way]
    ) -> tuple[Way | None, Row | None, Any]:
        """Ask in one way after the other; return the first that gives an option, and what it gives.

        Return the last way that was answered, and None, where none gives an option; and the refusal, where all refuse.
        """
        refusals = (
            self._openai.BadRequestError,
            self._openai.UnprocessableEntityError,
            self._openai.PermissionDeniedError,
        )
        answered, refused = None, None
        for way in ways:
            try:
                row = self._request(connection, text, question, way)
            except refusals as error:
                refused = error
            except self._openai.OpenAIError as error:
                raise self._told(error) from None
            else:
                answered = way
                if row is not None:
                    return way, row, None
        if answered is None and isinstance(refused, self._openai.PermissionDeniedError):
            raise self._told(refused) from None
        return answered, None, None if answered else refused

    def _keep(self, way: Way, labels: int) -> None:
        """Keep the way to ask about so many labels, and tell what it cannot do."""
        self._ways[labels <= len(LETTERS)] = way
        if way.structured:
            why = f"{labels} labels are too many for log-probabilities of letters"
            if labels <= len(LETTERS):
                why = f"{self.family}:{self.name} gives no log-probabilities"
            warn(f"{why}; each answer is one label, and does not say how sure it is.")
        elif labels > TOP:
            _logger.info(
                f"{self.family}:{self.name} gives {TOP} log-probabilities for {labels} labels; those that are missing "
                "from an answer score alike, below the others."
            )

    def _ask(self, connection: Connection, text: str, question: Question, way: Way) -> Row | None:
        """Return the scores of a text; None if its answer is unusable."""
        try:
            return self._request(connection, text, question, way)
        except (self._openai.BadRequestError, self._openai.UnprocessableEntityError):
            return None  # this text alone is refused, as a filter of contents does
        except self._openai.OpenAIError as error:
            raise self._told(error) from None

    def _request(self, connection: Connection, text: str, question: Question, way: Way) -> Row | None:
        options = dict(way.options)
        if way.structured:
            options["response_format"] = question.schema()
        messages = question.messages(text, structured=way.structured)
        try:
            answer = connection.ask(model=self.model, messages=messages, **options)
            choices = getattr(answer, "choices", None)
        except ValueError:  # no JSON
            choices = None
        if not isinstance(choices, list):
            raise EncoderError(
                f"{self.family}:{self.name} did not answer in the form of chat completions; check the URL, which often "
                "ends in /v1."
            ) from None
        if not choices:
            return None
        if way.structured:
            return question.by_answer(_content(choices[0]))
        return question.by_logprobs(_top_tokens(choices[0]))

    def _told(self, error: Any) -> EncoderError:
        return in_our_words(
            error, f"{self.family}:{self.name}", url=self.url, retries=self.retries, timeout=self.timeout
        )


def _content(choice: Any) -> str:
    """Return the text of an answer; empty if it has none. Some servers send it in parts."""
    content = getattr(getattr(choice, "message", None), "content", None)
    parts = content if isinstance(content, list) else [content]
    texts = [part.get("text") if isinstance(part, dict) else part for part in parts]
    return "".join(text for text in texts if isinstance(text, str))


def _top_tokens(choice: Any) -> list[tuple[str, float]]:
    """Return the likeliest first tokens of an answer with their log-probabilities; empty if it has none."""
    content = getattr(getattr(choice, "logprobs", None), "content", None)
    first = content[0] if isinstance(content, list) and content else None
    top = getattr(first, "top_logprobs", None)
    return [
        (str(each.token), float(each.logprob))
        for each in (top if isinstance(top, list) else ())
        if isinstance(getattr(each, "logprob", None), int | float)
    ]
