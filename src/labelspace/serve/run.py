"""The service as a process: keys from a file, a socket, and an end that loses no answer."""

import contextlib
import socket
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import uvicorn

from labelspace.checks import check_number
from labelspace.classify.fitted import answerer, check_fitted
from labelspace.config import ServingConfig
from labelspace.errors import ConfigError, InputError
from labelspace.serve.app import is_key, make_app
from labelspace.serve.listening import listen
from labelspace.serve.room import Served

FINISH_SECONDS = 30
"""After SIGTERM, how long requests may take that have begun."""


def read_keys(file: Path) -> list[str]:
    """Return the keys of a file, one a line.

    Raises:
        InputError: there is none, or one that no client can send.
    """
    try:
        keys = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read ({error}); pass a text file with one key a line.") from error
    if not keys:
        raise InputError(f"{file} holds no key; write one key a line.")
    for number, key in enumerate(keys, 1):
        if not is_key(key):
            raise InputError(f"{file}: key {number} has white space or other than ASCII characters; write another one.")
    return keys


def serve(app: Any, bound: socket.socket) -> None:
    """Serve until SIGTERM or Ctrl-C; requests that have begun get their answers first."""
    server_of(app).run(sockets=[bound])


def server_of(app: Any) -> uvicorn.Server:
    """Return the server of an application; requests that have begun get their answers before it ends."""
    config = uvicorn.Config(
        app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=FINISH_SECONDS
    )
    return uvicorn.Server(config)


@contextlib.contextmanager
def running(
    models: Mapping[str, Any], config: ServingConfig | None = None, *, keys: Sequence[str] = (), port: int = 0
) -> Iterator[str]:
    """Serve classifiers from this process, as long as the block lasts: for a notebook, or a test.

    Args:
        models: fitted classifiers by name.
        config: limits.
        keys: keys of which a request must bring one; none: all may ask.
        port: port of this machine; 0 takes a free one.

    Returns:
        A context manager whose value is the address of the service, such as `http://127.0.0.1:8000`.

    Raises:
        ConfigError: the port is taken, or an argument is invalid.
        NotFittedError: a classifier is not fitted.

    Example:
        >>> import urllib.request
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> with running({"news": clf}) as address, urllib.request.urlopen(f"{address}/readyz") as response:
        ...     response.read()
        b'{"status":"ready","models":["news"]}'
    """
    if not isinstance(models, Mapping):
        raise ConfigError(f"give models by their names: {{'news': clf}}. Got {type(models).__name__} instead.")
    if not models:
        raise ConfigError("there is no model to serve; give one or more by their names.")
    if config is not None and not isinstance(config, ServingConfig):
        raise ConfigError(f"config must be a ServingConfig. Got {type(config).__name__} instead.")
    check_number("port", port, least=0, most=65_535, whole=True)
    for name, classifier in models.items():
        if not name or "/" in name:
            raise ConfigError(f"a model's name stands in addresses, so it is not empty and has no '/'. Got {name!r}.")
        if not hasattr(classifier, "answers"):
            raise ConfigError(
                f"model {name!r} must be a labelspace classifier. Got {type(classifier).__name__} instead."
            )
        check_fitted(answerer(classifier))
    most = (config or ServingConfig()).max_options
    served = [Served(name, model, max_options=most) for name, model in models.items()]
    app = make_app(served, config, keys=keys, own_machine=True)
    bound = listen("127.0.0.1", port)
    server = server_of(app)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, name="labelspace-service")
    thread.start()
    try:
        while not server.started and thread.is_alive():
            time.sleep(0.01)
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join()
        bound.close()
