"""The hub: its address, whether it may and can be asked, and its refusals in plain words.

What is fetched from it, and sent to it, is decided by `encoders.resolve`, and `fetching` and `pushing` in
`classify.saved`.
"""

import functools
import os
import re
import socket
import threading
import time
import urllib.parse
import urllib.request

PATIENCE_SECONDS = 3.0
REMEMBER_SECONDS = 30
OFFLINE_VARIABLES = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")
_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)


def is_repository(name: str) -> bool:
    """Return whether a name has the form `owner/name` of a repository on the hub.

    Example:
        >>> is_repository("owner/name"), is_repository("a/b/c"), is_repository("./model"), is_repository("model")
        (True, False, False, False)
    """
    return _NAME.fullmatch(name) is not None


def endpoint() -> str:
    """Return the address of the hub: `HF_ENDPOINT`, or the public one."""
    return (os.environ.get("HF_ENDPOINT") or "https://huggingface.co").rstrip("/")


def offline_by_environment() -> bool:
    """Return whether `HF_HUB_OFFLINE` or `TRANSFORMERS_OFFLINE` forbids the network."""
    return any(
        os.environ.get(variable, "").strip().upper() in ("1", "ON", "YES", "TRUE") for variable in OFFLINE_VARIABLES
    )


def reachable(endpoint: str) -> bool:
    """Return whether the host of `endpoint`, or its proxy, accepts a connection within 3 s; tested twice a minute.

    Args:
        endpoint: an address such as `"https://huggingface.co"`.

    Example:
        >>> reachable("http://localhost:1")
        False
    """
    return _accepts(endpoint, int(time.monotonic() / REMEMBER_SECONDS))


@functools.lru_cache(maxsize=8)
def _accepts(endpoint: str, _moment: int) -> bool:
    target = urllib.parse.urlsplit(endpoint)
    proxy = urllib.request.getproxies().get(target.scheme)
    if proxy and target.hostname and not urllib.request.proxy_bypass(target.hostname):
        target = urllib.parse.urlsplit(proxy if "//" in proxy else f"http://{proxy}")
    port = target.port or (443 if target.scheme == "https" else 80)
    answers: list[bool] = []

    def knock() -> None:
        try:
            socket.create_connection((target.hostname or "", port), timeout=PATIENCE_SECONDS).close()
        except OSError:
            return
        answers.append(True)

    # In a thread, because a host name lookup has no timeout of its own.
    thread = threading.Thread(target=knock, daemon=True)
    thread.start()
    thread.join(PATIENCE_SECONDS)
    return bool(answers)


def request_error() -> type[Exception]:
    """Return what the hub library raises where a request fails: an error of httpx or httpx2, whichever it uses."""
    from huggingface_hub.errors import HfHubHTTPError

    return next((base for base in HfHubHTTPError.__mro__ if base.__name__ == "HTTPError"), HfHubHTTPError)


def refusal(error: Exception, name: str, revision: str | None = None) -> str:
    """Return in plain words why the hub did not do what it was asked; never repeats what was sent, such as a token.

    Args:
        error: from the hub library.
        name: `owner/name` of the repository.
        revision: the revision that was asked for, if any.
    """
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    hub = f"the hub {endpoint()}"
    if isinstance(error, GatedRepoError):
        return f"{hub} gives {name} only to users who accepted its terms (accept them there, then 'hf auth login')"
    if isinstance(error, RepositoryNotFoundError):
        return f"{hub} has no {name} that you may read (if it is private, log in with 'hf auth login')"
    if isinstance(error, RevisionNotFoundError):
        return f"{name} on {hub} has no revision {revision!r}"
    if isinstance(error, HFValidationError):
        return f"{hub} cannot have a repository of that name"
    if isinstance(error, HfHubHTTPError):
        status = error.response.status_code
        if status in (401, 403):
            return f"{hub} forbids that for {name} (status {status}: log in with 'hf auth login', or check the token)"
        return f"{hub} failed (status {status})"
    if isinstance(error, ValueError):
        return f"the answer of {hub} makes no sense ({type(error).__name__})"
    return f"the connection to {hub} broke ({type(error).__name__})"
