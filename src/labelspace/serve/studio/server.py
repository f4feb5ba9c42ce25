"""The studio's server: bound to this machine, with an address that only its user knows."""

import contextlib
import secrets
import socket
import webbrowser
from collections.abc import Callable

import uvicorn

from labelspace.serve.studio.routes import create_app
from labelspace.serve.studio.session import Session

HOST = "127.0.0.1"


def serve(session: Session, bound: socket.socket, *, tell: Callable[[str], None], open_browser: bool) -> None:
    """Serve the page until it is interrupted.

    Args:
        session: the state behind the page.
        bound: a socket that listens.
        tell: is called with the address once the page can be opened.
        open_browser: whether to open the address in the user's browser.
    """
    port, token, once = bound.getsockname()[1], secrets.token_urlsafe(24), secrets.token_urlsafe(24)
    address = f"http://{HOST}:{port}/?token="
    app = create_app(session, token=token, port=port, once=once)
    config = uvicorn.Config(app, log_level="error", access_log=False, server_header=False, lifespan="off")
    tell(address + token)
    if open_browser:
        webbrowser.open(address + once)
    with contextlib.suppress(KeyboardInterrupt):  # the way to end it
        uvicorn.Server(config).run(sockets=[bound])
