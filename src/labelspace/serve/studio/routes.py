"""The studio as an application: a page, its files, and a few requests that answer JSON."""

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from labelspace.errors import InputError, LabelSpaceError
from labelspace.serve.studio.guard import Guard
from labelspace.serve.studio.session import Session

KINDS = {".html": "text/html", ".css": "text/css", ".js": "text/javascript", ".svg": "image/svg+xml"}

Handler = Callable[[Session, Mapping[str, Any]], Any]

READS: dict[str, Handler] = {
    "state": lambda session, _: session.state(),
    "status": lambda session, _: session.status(),
    "documents": lambda session, _: session.pool.to_dict(),
    "proposals": lambda session, given: session.propose(_number(given.get("skipped", "0"))),
    "commands": lambda session, _: session.commands(),
    "explanation": lambda session, given: session.explain(_number(given.get("row"))),
}
"""What a GET of `/api/NAME` answers."""

CHANGES: dict[str, Handler] = {
    "edit": lambda session, given: session.edit(_mapping(given.get("edit")), given.get("burst"), given.get("edit_id")),
    "undo": lambda session, _: session.step(back=True),
    "redo": lambda session, _: session.step(back=False),
    "resolve": lambda session, given: session.resolve(given.get("keep", "")),
    "none": lambda session, given: session.set_none(given.get("wanted") is True),
    "click": lambda session, given: session.click(given.get("row", -1), given.get("label"), given.get("source", "")),
    "train": lambda session, given: session.train(given.get("method", "")),
    "stop": lambda session, _: session.training.stop(),
    "export": lambda session, given: session.export(given.get("what", ""), given.get("name", "")),
}
"""What a POST to `/api/NAME` does."""


def create_app(session: Session, *, token: str, port: int, once: str = "") -> Starlette:
    """Return the application.

    Args:
        session: the state behind the page.
        token: the secret that the printed address holds.
        port: the port that it will listen on.
        once: a secret that opens the page once; empty: there is none.
    """
    page = {
        f"/page/{file.name}": (file.read_bytes(), KINDS[f".{file.name.rpartition('.')[2]}"])
        for file in files("labelspace.serve.studio").joinpath("page").iterdir()
    }
    page["/"] = page.pop("/page/index.html")

    def of_page(request: Request) -> Response:
        content, kind = page[request.url.path]
        return Response(content, media_type=f"{kind}; charset=utf-8")

    async def answer(request: Request) -> Response:
        name = request.path_params["name"]
        handlers = CHANGES if request.method == "POST" else READS
        if name not in handlers:
            return JSONResponse({"problem": f"the studio has no {name}; reload the page."}, 404)
        try:
            given: Any = await request.json() if request.method == "POST" else dict(request.query_params)
        except (ValueError, RecursionError):  # bad UTF-8 and deep nesting too
            return JSONResponse({"problem": "the request is not JSON; reload the page."}, 400)
        try:
            return JSONResponse(await run_in_threadpool(handlers[name], session, _mapping(given)))
        except LabelSpaceError as error:
            return JSONResponse({"problem": str(error)}, 422)

    routes = [Route(path, of_page) for path in page]
    routes.append(Route("/api/{name}", answer, methods=["GET", "POST"]))
    return Starlette(routes=routes, middleware=[Middleware(Guard, token=token, port=port, once=once)])


def _mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise InputError(f"a request is an object. Got {type(value).__name__} instead; reload the page.")
    return value


def _number(value: Any) -> int:
    if not isinstance(value, str) or not value.isascii() or not value.isdecimal() or len(value) > 18:
        raise InputError(f"a row is a number. Got {value!r} instead; reload the page.")
    return int(value)
