"""The application: all operations behind one key, counted, and described by a page."""

import base64
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response
from starlette.routing import Route

from labelspace.config.serving import ServingConfig
from labelspace.errors import ConfigError
from labelspace.serve.decisions import DECISIONS, openai_error
from labelspace.serve.describe import described, page
from labelspace.serve.inference import INFERENCE
from labelspace.serve.label_studio import LABEL_STUDIO
from labelspace.serve.listening import is_own_machine
from labelspace.serve.measures import Measures
from labelspace.serve.models import MODEL, MODELS
from labelspace.serve.operations import Operation, RefusedError, plain_error, respond
from labelspace.serve.predict import PREDICT, PREDICT_BY
from labelspace.serve.room import Room, Served
from labelspace.serve.systemone import SYSTEM_ONE, detailed_error

OPERATIONS = (DECISIONS, SYSTEM_ONE, MODELS, MODEL, PREDICT, PREDICT_BY, *INFERENCE, *LABEL_STUDIO)
OPEN = ("/healthz", "/readyz", "/v2/health/live", "/v2/health/ready")
"""Paths that need no key: whoever watches the service has none."""
UNCOUNTED = ("/", "/healthz", "/readyz", "/metrics", "/openapi.json")
"""Pages and probes: they are counted only where they are refused."""
_COUNTED = "labelspace.operation"


def make_app(
    models: Sequence[Served],
    config: ServingConfig | None = None,
    *,
    keys: Sequence[str] = (),
    log_texts: bool = False,
    own_machine: bool = False,
) -> Any:
    """Return the service as an ASGI application.

    Args:
        models: the models.
        config: limits.
        keys: keys of which a request must bring one, as `Authorization: Bearer KEY`; none: all may ask.
        log_texts: True writes every text with its label to stderr, as JSON lines.
        own_machine: whether only this machine can reach the service; then, without keys, it answers to no other name.

    Example:
        >>> from labelspace import ZeroShotClassifier
        >>> from labelspace.serve.room import Served
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> app = make_app([Served("news", clf)])
        >>> from starlette.testclient import TestClient
        >>> with TestClient(app) as client:
        ...     client.post("/predict", json={"inputs": "the match"}).status_code
        200
    """
    measures = Measures()
    room = Room(models, config or ServingConfig(), measures, log_texts=log_texts)
    documents = described(OPERATIONS, keyed=bool(keys), without=OPEN)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        room.batcher.start()
        yield
        room.batcher.close()

    async def ready(_: Request) -> Response:
        return JSONResponse({"status": "ready", "models": list(room.models)})

    async def metrics(_: Request) -> Response:
        return Response(measures.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def openapi(_: Request) -> Response:
        return JSONResponse(documents)

    async def shown(request: Request) -> Response:
        return HTMLResponse(page(OPERATIONS, list(room.models), request.url.netloc, keyed=bool(keys)))

    routes = [_route(operation, room) for operation in OPERATIONS]
    for path, endpoint in (
        ("/", shown),
        ("/healthz", ready),
        ("/readyz", ready),
        ("/metrics", metrics),
        ("/openapi.json", openapi),
    ):
        routes.append(Route(path, endpoint, methods=["GET"]))
    app: Any = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: _told, Exception: _failed}
    )
    if keys:
        app = Keyed(app, keys)
    elif own_machine:
        app = OwnNames(app)
    return Counted(app, measures)


def _route(operation: Operation, room: Room) -> Route:
    async def endpoint(request: Request) -> Response:
        request.scope[_COUNTED] = operation.path
        return await respond(operation, room, request)

    return Route(operation.path, endpoint, methods=[operation.method])


def _told(request: Request, error: Any) -> Response:
    """Tell that there is no such path or method."""
    paths = ", ".join(dict.fromkeys(operation.path for operation in OPERATIONS[:6]))
    what = f"{error.status_code}: {error.detail}. See / for what there is, such as {paths}."
    return _problem(request.scope["path"], error.status_code, what, error.headers)


def _failed(request: Request, _: Exception) -> Response:
    return _problem(request.scope["path"], 500, "the service failed; its log says why.")


def _problem(path: str, status: int, message: str, headers: Mapping[str, str] | None = None) -> Response:
    """Return an error in the form of the protocol that the path belongs to."""
    form = detailed_error if path == SYSTEM_ONE.path else openai_error if path.startswith("/v1/") else plain_error
    return JSONResponse(form(RefusedError(status, message)).model_dump(), status, headers)


class Counted:
    """Counts requests by the path of their operation: what has none, or no valid key, is `other`.

    Probes and pages that are answered as asked are not counted.

    Args:
        app: the application.
        measures: the counts.
    """

    def __init__(self, app: Any, measures: Measures) -> None:
        self._app, self._measures = app, measures

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, and count it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.perf_counter(), 500

        async def sending(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        try:
            await self._app(scope, receive, sending)
        finally:
            if scope["path"] not in UNCOUNTED or status >= 400:
                self._measures.request(scope.get(_COUNTED, "other"), status, time.perf_counter() - started)


class OwnNames:
    """Answers to names of this machine alone: the page of a site whose name points here could ask all else.

    Args:
        app: the application.
    """

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, if it names this machine or, as browsers never do, none."""
        host = dict(scope["headers"]).get(b"host", b"").decode("latin-1") if scope["type"] == "http" else ""
        try:
            own = not host or is_own_machine(urlsplit(f"//{host}").hostname or "")
        except ValueError:
            own = False
        if own:
            await self._app(scope, receive, send)
            return
        message = "without a key the service answers at 127.0.0.1 and localhost alone; give it --api-key-file."
        await _problem(scope["path"], 421, message)(scope, receive, send)


def is_key(key: str) -> bool:
    """Return whether a client can send a key, and must send something for it.

    Example:
        >>> is_key("a-b"), is_key(""), is_key("a b"), is_key("a\\n")
        (True, False, False, False)
    """
    return bool(key) and key.isascii() and key.isprintable() and " " not in key


class Keyed:
    """Asks for a key before anything else.

    Args:
        app: the application.
        keys: the keys.

    Raises:
        ConfigError: a key is empty, or none that a client can send.
    """

    def __init__(self, app: Any, keys: Sequence[str]) -> None:
        if isinstance(keys, str):
            raise ConfigError("keys must be a list of keys; put the key in brackets.")
        if not all(map(is_key, keys)):
            raise ConfigError("a key is empty, or has white space or other than ASCII characters; write another one.")
        self._app = app
        self._keys = [key.encode() for key in keys]

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Answer a request, if it brings a key or needs none."""
        if scope["type"] != "http" or scope["path"] in OPEN or self._known(scope):
            await self._app(scope, receive, send)
            return
        message = "no valid key came; send the header Authorization: Bearer KEY."
        headers = {"WWW-Authenticate": "Bearer", "Connection": "close"}  # the body stays unread
        await _problem(scope["path"], 401, message, headers)(scope, receive, send)

    def _known(self, scope: Any) -> bool:
        given = dict(scope["headers"]).get(b"authorization", b"")
        kind, _, key = given.partition(b" ")
        if kind.lower() == b"basic":  # Label Studio knows no other way; the key is the password
            try:
                key = base64.b64decode(key.strip(), validate=True).partition(b":")[2]
            except ValueError:
                key = b""
        # Every key is compared, each in constant time, so that the time tells nothing.
        found = [hmac.compare_digest(key.strip(), known) for known in self._keys]
        return kind.lower() in (b"bearer", b"basic") and any(found)
