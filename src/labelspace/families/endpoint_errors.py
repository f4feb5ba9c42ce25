"""Errors of a hosted model, in one line of our own words."""

from typing import Any

from labelspace.errors import EncoderError, EncoderNotFoundError
from labelspace.families.endpoint_address import KEY, NO_KEY, import_client, key_for


def in_our_words(error: Any, who: str, *, url: str | None, retries: int, timeout: float) -> EncoderError:
    """Return an error of the client in our words: no key, no text, nothing that the server wrote.

    Args:
        error: what the package openai raised.
        who: the model as the user named it.
        url: address of the server; None: OpenAI's.
        retries: how often the request was repeated.
        timeout: seconds until a request was given up.
    """
    tries = f"{retries + 1} tries" if retries else "one try"
    status = getattr(error, "status_code", None)
    if status == 404:
        return EncoderNotFoundError(
            f"{who} was not found (404); check the name of the model, and the URL, which often ends in /v1."
        )
    if status == 401:
        given = key_for(url) != NO_KEY
        cure = "check it" if given else "set it in the environment"
        return EncoderError(f"{who} {'refuses' if given else 'wants'} a key (401), from {KEY}; {cure}.")
    if status == 403:
        return EncoderError(f"{who} does not allow this (403); check what the key in {KEY} may use.")
    if status == 429:
        return EncoderError(
            f"{who} had too many requests, or has no credit left (429 after {tries}); wait or look at the account, "
            "then repeat the command."
        )
    if status is not None and status < 500:
        return EncoderError(f"{who} refuses the request ({status}); check the name of the model and what it can do.")
    if status is not None:
        return EncoderError(f"{who} failed with status {status} after {tries}; look at the server, then repeat.")
    if isinstance(error, import_client().APITimeoutError):
        return EncoderError(f"{who} did not answer within {timeout:g} s ({tries}); look at the server, then repeat.")
    return EncoderError(f"{who} cannot be reached ({tries}); check that the server runs and the URL is right.")
