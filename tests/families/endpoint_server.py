"""A server on this machine that answers as OpenAI's chat completions do, for tests of hosted models.

It reads the options and the text from the messages, as a model would, and finds the option that shares most words with
the text.
"""

import json
import math
import re
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Body = dict[str, Any]


class Server:
    """The server; a context manager.

    Args:
        logprobs: whether it gives log-probabilities; False: it leaves them out; None: it refuses the request.
        structured: whether it takes a response format.
        temperature: whether it takes a temperature.
        failures: statuses of the first answers.
        fails: the status with which a request is refused; None answers it.
        says: the content of an answer; None: the symbol of the best option.
        tops: changes the likeliest tokens and their log-probabilities.
        page: type and content of what comes in place of any answer.
        delay: seconds before an answer.
    """

    def __init__(
        self,
        *,
        logprobs: bool | None = True,
        structured: bool = True,
        temperature: bool = True,
        failures: tuple[int, ...] = (),
        fails: Callable[[Body], int | None] = lambda body: None,
        says: Callable[[Body], str | None] = lambda body: None,
        tops: Callable[[list[tuple[str, float]]], list[tuple[str, float]]] = lambda top: top,
        page: tuple[str, str] | None = None,
        delay: float = 0.0,
    ) -> None:
        self.logprobs, self.structured, self.temperature = logprobs, structured, temperature
        self.failures, self.fails, self.says, self.tops = list(failures), fails, says, tops
        self.page, self.delay = page, delay
        self.bodies: list[Body] = []
        self.headers: list[dict[str, str]] = []
        self.now, self.most_at_once = 0, 0
        self.lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    @property
    def texts(self) -> list[str]:
        """The texts that it was asked about, once for each request."""
        return [text_of(body) for body in self.bodies]

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def answer(self, body: Body) -> tuple[int, Body]:
        """Return the status and the answer to a request."""
        with self.lock:
            if self.failures:
                return self.failures.pop(0), error("try again")
        status = self.fails(body)
        if status is not None:
            return status, error(f"refused: {body}")
        if self.logprobs is None and "logprobs" in body:
            return 400, error("logprobs are not supported")
        if "response_format" in body and not self.structured:
            return 400, error("response_format is not supported")
        if "temperature" in body and not self.temperature:
            return 400, error("temperature is not supported")
        return 200, completion(body, self)

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with server.lock:
                    server.bodies.append(body)
                    server.headers.append({name.lower(): value for name, value in self.headers.items()})
                    server.now += 1
                    server.most_at_once = max(server.most_at_once, server.now)
                time.sleep(server.delay)
                status, answer = server.answer(body) if self.path == "/v1/chat/completions" else (404, error("no"))
                with server.lock:
                    server.now -= 1
                kind, sent = server.page or ("application/json", json.dumps(answer))
                try:
                    self.send_response(status)
                    self.send_header("Content-Type", kind)
                    self.send_header("Content-Length", str(len(sent.encode())))
                    self.send_header("retry-after-ms", "10")
                    self.end_headers()
                    self.wfile.write(sent.encode())
                except OSError:  # the client has gone
                    pass

            def log_message(self, format: str, *args: Any) -> None:
                pass

        return Handler


def text_of(body: Body) -> str:
    """Return the text that a request asks about."""
    return body["messages"][1]["content"].removeprefix("TEXT:\n")


def options_of(body: Body) -> dict[str, str]:
    """Return symbol and text of each option."""
    found: dict[str, str] = {}
    symbol = ""
    for line in body["messages"][0]["content"].partition("OPTIONS:\n")[2].splitlines():
        option = re.match(r"(\w+)\) (.*)", line)
        symbol = option[1] if option else symbol
        found[symbol] = f"{found.get(symbol, '')} {option[2] if option else line}"
    return found


def top_of(body: Body) -> list[tuple[str, float]]:
    """Return each symbol with its log-probability, likeliest first: two for each shared word, softmax.

    A question without options has none.
    """
    words = set(re.findall(r"\w+", text_of(body).lower()))
    shared = {
        symbol: 2.0 * len(words & set(re.findall(r"\w+", option.lower())))
        for symbol, option in options_of(body).items()
    }
    if not shared:
        return []
    total = math.log(sum(math.exp(value) for value in shared.values()))
    return sorted(((symbol, value - total) for symbol, value in shared.items()), key=lambda pair: -pair[1])


def completion(body: Body, server: Server) -> Body:
    """Return an answer in the form of the protocol."""
    top = server.tops(top_of(body)[: body.get("top_logprobs", 0)])
    content = server.says(body)
    if content is None:
        best = next(iter(top_of(body)), ("", 0.0))[0]
        content = json.dumps({"answer": best}) if "response_format" in body else best
    logprobs = None
    if server.logprobs and body.get("logprobs"):
        listed = [{"token": token, "logprob": value, "bytes": None} for token, value in top]
        logprobs = {"content": [{**listed[0], "top_logprobs": listed}] if listed else []}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 0,
        "model": body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": content, "refusal": None},
                "logprobs": logprobs,
            }
        ],
        "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2},
    }


def error(message: str) -> Body:
    """Return an error in the form of the protocol."""
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None}}
