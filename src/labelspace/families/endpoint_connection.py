"""A connection to a hosted model that several threads use, and that can be given up while requests are on their way."""

import threading
from typing import Any, final

from labelspace.families.endpoint_address import import_client, key_for


@final
class GivenUp(BaseException):
    """The request is not sent, for its run has ended. Not an `Exception`, because the client repeats after those."""


@final
class Connection:
    """A connection to a server.

    A client that is closed while another thread reads from it leaves that thread waiting until its time is up. So a
    connection that is given up is closed by the last request that is on its way.

    Args:
        url: address of the server; None for OpenAI's.
        timeout: seconds until a request is given up.
        retries: how often a request is repeated.

    Raises:
        ConfigError: OpenAI is meant, and there is no key.
        MissingDependencyError: the package openai is not installed.
    """

    def __init__(self, url: str | None, *, timeout: float, retries: int) -> None:
        package = import_client()
        http = package.DefaultHttpxClient(event_hooks={"request": [self._before_sending]})
        self._client = package.OpenAI(
            base_url=url, api_key=key_for(url), timeout=timeout, max_retries=retries, http_client=http
        )
        self._lock = threading.Lock()
        self._on_their_way = 0
        self._given_up = False

    def ask(self, **request: Any) -> Any:
        """Return the answer of the server to a request for a chat completion.

        Raises:
            GivenUp: the connection was given up before the request, or one of its repetitions, was sent.
        """
        with self._lock:
            self._before_sending()
            self._on_their_way += 1
        try:
            return self._client.chat.completions.create(**request)
        finally:
            with self._lock:
                self._on_their_way -= 1
                self._close_if_unused()

    def give_up(self) -> None:
        """Send nothing more, and close as soon as nothing is on its way."""
        with self._lock:
            self._given_up = True
            self._close_if_unused()

    @property
    def closed(self) -> bool:
        """Whether it is closed."""
        return self._client.is_closed()

    def _before_sending(self, *_: object) -> None:
        if self._given_up:
            raise GivenUp

    def _close_if_unused(self) -> None:
        if self._given_up and not self._on_their_way:
            self._client.close()
