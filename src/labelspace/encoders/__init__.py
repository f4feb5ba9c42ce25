"""Encoders: text to vectors, with sentence-transformers inside.

The registry is plain data; `Encoder` brings torch and is loaded when first asked for.
"""

from typing import TYPE_CHECKING, Any

from labelspace.encoders.registry import DEFAULT_ENCODER, KNOWN_ENCODERS, EncoderSpec, find_spec

__all__ = ["DEFAULT_ENCODER", "KNOWN_ENCODERS", "Encoder", "EncoderSpec", "find_spec"]

if TYPE_CHECKING:
    from labelspace.encoders.encoder import Encoder


def __getattr__(name: str) -> Any:
    if name == "Encoder":
        from labelspace.encoders.encoder import Encoder

        return Encoder
    raise AttributeError(f"module 'labelspace.encoders' has no attribute {name!r}")
