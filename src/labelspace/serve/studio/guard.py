"""Who may speak to the studio: the browser of the user who started it, and no other page.

token     in the printed address, then in a cookie that scripts cannot read
once      in the address that the browser is started with, which others may see in the list of processes: it opens once
Host      a name of this machine with the studio's port, so that no other domain can point here (DNS rebinding)
Origin    the studio's own, for everything that changes something (cross-site requests)
CSP       the page runs its own scripts and loads nothing from elsewhere
"""

import hmac
from typing import final
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}
LARGEST = 1_000_000
"""Bytes that a request may have."""


@final
class Guard:
    """Middleware that refuses every request but those of the studio's own page.

    Args:
        app: the application behind it.
        token: the secret of this session.
        port: the port that the studio listens on.
        once: another secret, which stands for the token once; empty: there is none.
    """

    def __init__(self, app: ASGIApp, *, token: str, port: int, once: str = "") -> None:
        self._app, self._token, self._once = app, token, once
        self._cookie = f"labelspace-studio-{port}"
        names = ("127.0.0.1", "localhost")
        self._hosts = {f"{name}:{port}" for name in names}
        if port == 80:  # browsers leave it out
            self._hosts.update(names)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or answer 403, 413 or 421."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        fresh = self._has_token(scope)

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                if fresh:
                    headers.append("set-cookie", f"{self._cookie}={self._token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        refusal = self._refusal(scope, fresh)
        await (refusal or self._app)(scope, receive, guarded)

    def _refusal(self, scope: Scope, fresh: bool) -> PlainTextResponse | None:
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if host not in self._hosts:
            return PlainTextResponse("This address is not the studio's; open the one that was printed.", 421)
        origin = headers.get("origin")
        if origin is not None and origin not in {f"http://{known}" for known in self._hosts}:
            return PlainTextResponse("Another page may not use the studio.", 403)
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
            return PlainTextResponse("Another page may not use the studio.", 403)
        if scope["method"] not in ("GET", "HEAD") and not headers.get("content-type", "").startswith(
            "application/json"
        ):
            return PlainTextResponse("The studio takes JSON.", 403)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST or "transfer-encoding" in headers:
            return PlainTextResponse("This request is too large.", 413)
        cookie = HTTPConnection(scope).cookies.get(self._cookie, "")
        if fresh or hmac.compare_digest(cookie.encode(), self._token.encode()):
            return None
        return PlainTextResponse("Open the whole address that labelspace studio printed, with its token.", 403)

    def _has_token(self, scope: Scope) -> bool:
        if scope["path"] != "/":
            return False
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0].encode()
        if self._once and hmac.compare_digest(given, self._once.encode()):
            self._once = ""
            return True
        return hmac.compare_digest(given, self._token.encode())
