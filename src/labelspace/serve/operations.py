"""An operation of the service: from the bytes of a request to an answer or an error, in the form of its protocol."""

import asyncio
import functools
import re
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, final

from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from labelspace.corpus.policy import without_surrogates
from labelspace.errors import LabelSpaceError
from labelspace.serve.batching import BusyError
from labelspace.serve.room import Room, Served

READ_SECONDS = 30
WINDOW_LOG = 23
"""Memory that a body packed with zstd may ask for, as a power of two: 8 MB."""

_TYPES = ("str", "int", "float", "bool")  # pydantic names them, where a value may have several types
_HALVES = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)")
"""In JSON: an escaped backslash, a character in two halves, or (a group) half of one, which is no text."""

RETRY_AFTER = "1"
"""Seconds after which a refused client may come again."""


class RefusedError(Exception):
    """A request that cannot be answered.

    Args:
        status: the HTTP status.
        message: what was wrong, what came, what to do.
        where: path to the value in the request's body.
    """

    def __init__(self, status: int, message: str, where: tuple[str | int, ...] = ()) -> None:
        self.status, self.message = status, _short(message, 1000)
        self.where = tuple(_short(step, 100) if isinstance(step, str) else step for step in where)
        super().__init__(self.message)


def _short(text: str, most: int) -> str:
    """Return a text on one line of bounded length: parts of a request may stand in it."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[:most] + "..."


class PlainError(BaseModel):
    """What was wrong."""

    error: str


def plain_error(refused: RefusedError) -> Any:
    """Return an error as most protocols tell it; the two decision clients read it too."""
    place = ".".join(str(step) for step in refused.where if "[" not in str(step) and step not in _TYPES)
    return PlainError(error=f"{place}: {refused.message}" if place else refused.message)


@final
@dataclass(frozen=True, kw_only=True)
class Operation:
    """One method of one path."""

    method: str
    """`"GET"` or `"POST"`."""

    path: str
    """Path, with parameters in braces."""

    summary: str
    """One sentence for the page of the service."""

    answer: Callable[..., Awaitable[Any]]
    """Gets the room, the request's body (if there is one), and the path's parameters; returns the reply."""

    takes: Any = None
    """Type of the request's body; None: there is none."""

    gives: Any = dict[str, Any]
    """Type of the reply."""

    error: Callable[[RefusedError], Any] = plain_error
    """Turns an error into the body of the response."""

    problem: Any = PlainError
    """Type of that body."""

    example: Any = None
    """A body for the page of the service."""


async def respond(operation: Operation, room: Room, request: Request) -> Response:
    """Answer one request. A client that goes away takes its work out of the queue."""
    try:
        body = await _body(operation, room, request)
        work = asyncio.ensure_future(operation.answer(room, *body, **request.path_params))
        await _done_or_gone(work, request)
        return Response(_adapter(operation.gives).dump_json(await work), media_type="application/json")
    except (RefusedError, BusyError, ClientDisconnect, ValidationError, LabelSpaceError) as error:
        refused = _refused(error)
        headers = {"Retry-After": RETRY_AFTER} if refused.status == 503 else {}
        told = _adapter(Any).dump_json(operation.error(refused))
        return Response(told, refused.status, headers, media_type="application/json")


async def _body(operation: Operation, room: Room, request: Request) -> list[Any]:
    if operation.takes is None:
        return []
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json" and not kind.endswith("+json"):
        raise RefusedError(415, f"the body must be application/json. Got {kind or 'nothing'} instead.")
    raw = await read_body(request, int(room.config.max_megabytes * 2**20))
    raw = _HALVES.sub(lambda found: rb"\ufffd" if found[1] else found[0], raw)
    return [_adapter(operation.takes).validate_json(raw, strict=True)]


@functools.cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


async def read_body(request: Request, most: int) -> bytes:
    """Return the body of a request, unpacked; never hold more than `most` bytes of it.

    Raises:
        RefusedError: it is larger, or packed in a way that is not known.
    """
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(READ_SECONDS):
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
    except TimeoutError as error:
        raise RefusedError(408, f"the body did not come within {READ_SECONDS} seconds.") from error
    return _unpacked(b"".join(parts), request.headers.get("content-encoding", "identity").lower(), most)


def _too_large(most: int) -> RefusedError:
    return RefusedError(413, f"the body is larger than {most:,} bytes; send less at once.")


def _unpacked(raw: bytes, packing: str, most: int) -> bytes:
    if packing == "identity":
        return raw
    if packing == "zstd":
        zstd = _zstd()
        limits = {zstd.DecompressionParameter.window_log_max: WINDOW_LOG}
        unpacker, wrong = zstd.ZstdDecompressor(options=limits), zstd.ZstdError
    elif packing in ("gzip", "deflate"):
        unpacker, wrong = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32), zlib.error
    else:
        raise RefusedError(415, f"Content-Encoding may be gzip, deflate or zstd. Got {packing!r} instead.")
    try:
        found = unpacker.decompress(raw, most + 1)
    except (wrong, EOFError) as error:
        raise RefusedError(400, f"the body is not valid {packing}.") from error
    if len(found) > most:
        raise _too_large(most)
    if not unpacker.eof or unpacker.unused_data:
        raise RefusedError(400, f"the body is not valid {packing}: it ends too early, or more comes after its end.")
    return found


def _zstd() -> Any:
    try:
        from compression import zstd  # pyright: ignore[reportMissingImports]
    except ImportError:  # before Python 3.14
        from backports import zstd
    return zstd


async def _done_or_gone(work: "asyncio.Future[Any]", request: Request) -> None:
    """Wait for the work, or until the client has gone; its work is then cancelled."""
    gone = asyncio.ensure_future(_disconnected(request))
    try:
        await asyncio.wait({work, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done():
            raise ClientDisconnect
    finally:
        work.cancel()
        gone.cancel()


async def _disconnected(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _refused(error: Exception) -> RefusedError:
    match error:
        case RefusedError():
            return error
        case BusyError():
            return RefusedError(503, str(error))
        case ClientDisconnect():
            return RefusedError(499, "the client has gone.")
        case ValidationError():
            # Input is not repeated: it may be a user's text, and errors are logged.
            found = error.errors(include_url=False, include_context=False, include_input=False)
            first = max(found, key=lambda each: len(each["loc"]))  # of a choice of types, the one that got furthest
            return RefusedError(400 if first["type"] == "json_invalid" else 422, first["msg"], first["loc"])
    return RefusedError(422, str(error))


# ---- what several protocols ask for


def model_of(room: Room, name: str | None) -> Served:
    """Return the model of a name; the only one, if no name is given.

    Raises:
        RefusedError: there is no such model, or several and no name.
    """
    known = ", ".join(room.models)
    if name is None:
        if len(room.models) == 1:
            return next(iter(room.models.values()))
        raise RefusedError(400, f"several models are served; name one of them: {known}.", ("model",))
    if name not in room.models:
        raise RefusedError(404, f"no model is called {without_surrogates(name)[:100]!r}; there is {known}.", ("model",))
    return room.models[name]


def checked_texts(room: Room, texts: list[str], where: tuple[str | int, ...]) -> list[str]:
    """Return texts as the models read them.

    Raises:
        RefusedError: there are none, or too many, or one is empty or too long.
    """
    if not texts:
        raise RefusedError(422, "there is no text; send one or more.", where)
    if len(texts) > room.config.max_waiting:
        most = room.config.max_waiting
        raise RefusedError(413, f"there are {len(texts):,} texts; send at most {most:,} at once.", where)
    for number, text in enumerate(texts, 1):
        if len(text) > room.config.max_characters:
            most = room.config.max_characters
            raise RefusedError(413, f"a text has {len(text):,} characters; send at most {most:,}.", where)
        if not text.strip():
            which = f"text {number}" if len(texts) > 1 else "the text"
            raise RefusedError(422, f"{which} is empty; send words to classify.", where)
    return [without_surrogates(text) for text in texts]


MOST_VALUES = 2**18
"""Numbers that one answer tells, at most: they take seconds to write, and some hundred bytes each."""


def check_size(values: int, where: tuple[str | int, ...], cure: str) -> None:
    """Refuse a request whose answer would be too long.

    Raises:
        RefusedError: it would tell more than `MOST_VALUES` numbers.
    """
    if values > MOST_VALUES:
        raise RefusedError(
            413, f"the answer would have {values:,} numbers, the most are {MOST_VALUES:,}; {cure}", where
        )


Item = TypeVar("Item")
Items = Annotated[list[Item], Field(fail_fast=True)]
"""A list in a request, read up to its first wrong item: a message of each of two million would take a minute."""


class Strict(BaseModel, extra="forbid"):
    """A part of a request that holds nothing else."""
