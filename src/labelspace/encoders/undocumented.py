"""What transformers offers in no documented way; where a later version has none of it, things go on without."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

_LENGTH = "sequence-length-is-longer-than-the-specified-maximum"


def attention_of(config: Any) -> str | None:
    """Return the name of a transformer's attention, if it is told."""
    return getattr(config, "_attn_implementation", None)


@contextmanager
def attention_for_training(model: Any, device: torch.device) -> Iterator[None]:
    """Give a transformer the attention that trains fastest inside the block, and its own afterwards."""
    own = attention_of(model.config)
    # On a CPU the backward pass of fused attention is slower than plain products (up to 3 times in bfloat16).
    switched = device.type == "cpu" and own == "sdpa"
    if switched:
        model.set_attn_implementation("eager")
    try:
        yield
    finally:
        if switched:
            model.set_attn_implementation(own)


def silence_lengths(tokenizer: Any) -> None:
    """Keep a tokenizer from warning about long texts, for good."""
    _given(tokenizer)[_LENGTH] = True


@contextmanager
def quiet_tokenizer(tokenizer: Any) -> Iterator[None]:
    """Silence the tokenizer's warning about long texts; counting their tokens needs no warning."""
    given = _given(tokenizer)
    said = given.get(_LENGTH)
    silence_lengths(tokenizer)
    try:
        yield
    finally:
        if said is None:
            given.pop(_LENGTH, None)


def _given(tokenizer: Any) -> dict[str, bool]:
    """Return which warnings a tokenizer has given; each is given once."""
    return getattr(tokenizer, "deprecation_warnings", {})
