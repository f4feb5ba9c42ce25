"""The address of a hosted model, `MODEL[@URL]`, and the key for it, which comes from the environment alone."""

import os
import re
from typing import Any
from urllib.parse import urlsplit

from labelspace.checks import import_optional
from labelspace.errors import ConfigError

BASE_URL = "OPENAI_BASE_URL"
KEY = "OPENAI_API_KEY"
# What the client sends to a server that wants no key; it refuses to send nothing.
NO_KEY = "none"

_WITH_URL = re.compile(r"(?P<model>.+?)@(?P<url>https?://.*)", re.IGNORECASE)


def address_of(name: str) -> tuple[str, str | None]:
    """Return the model and the URL of `MODEL[@URL]`; without a URL, that of the environment, or None for OpenAI's.

    No message repeats what came, because it may hold a password.

    Raises:
        ConfigError: the model is missing, or the URL is none or holds credentials.

    Example:
        >>> address_of("qwen3:8b@http://localhost:8000/v1")
        ('qwen3:8b', 'http://localhost:8000/v1')
    """
    found = _WITH_URL.fullmatch(name)
    model = found["model"] if found else name
    if not model.strip() or "://" in model or "@" in model[1:]:
        raise ConfigError(
            "a hosted model is openai:MODEL or openai:MODEL@URL, and the URL begins with http:// or https://. "
            "Got another form; write it like openai:MODEL@http://localhost:8000/v1."
        )
    if found:
        return model, _checked(found["url"], "the URL of an openai: view")
    url = os.environ.get(BASE_URL)
    return model, _checked(url, BASE_URL) if url else None


def check_endpoint(view: str) -> None:
    """Refuse a view `openai:MODEL[@URL]` that cannot work, before any call.

    Raises:
        ConfigError: the model is missing, the URL is none or holds credentials, or OpenAI is meant without a key.
        MissingDependencyError: the package openai is not installed.
    """
    key_for(address_of(view.removeprefix("openai:"))[1])
    import_client()


def import_client() -> Any:
    """Return the package openai.

    Raises:
        MissingDependencyError: it is not installed.
    """
    return import_optional("openai", package="openai", extra="openai", purpose="A hosted model")


def key_for(url: str | None) -> str:
    """Return the key in the environment, or a word in its place for a server that may want none.

    Raises:
        ConfigError: OpenAI is meant, and there is no key.
    """
    key = os.environ.get(KEY)
    if not key and (url is None or urlsplit(url).hostname == "api.openai.com"):
        raise ConfigError(
            f"OpenAI wants a key, and {KEY} is not set; set it in the environment, or name another server: "
            "openai:MODEL@URL."
        )
    return key or NO_KEY


def _checked(url: str, what: str) -> str:
    try:
        parts = urlsplit(url)
        extra = parts.username or parts.password or parts.query or parts.fragment or "@" in parts.netloc
        valid = parts.scheme.lower() in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        extra, valid = None, False
    if extra or not valid or re.search(r"\s", url):
        raise ConfigError(
            f"{what} must be like https://HOST/v1, without user, password, query or fragment. "
            f"Got another form; put a key into {KEY}."
        )
    return url
