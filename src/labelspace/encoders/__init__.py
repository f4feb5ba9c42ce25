"""Encoders: text to vectors, with sentence-transformers inside.

The registry is plain data. `Encoder` needs torch, so it is imported on first use.
"""

from typing import TYPE_CHECKING

from labelspace.encoders.registry import DEFAULT_ENCODER, KNOWN_ENCODERS, EncoderSpec, find_spec
from labelspace.late import late_names

__all__ = ["DEFAULT_ENCODER", "KNOWN_ENCODERS", "Encoder", "EncoderSpec", "find_spec"]

if TYPE_CHECKING:
    from labelspace.encoders.encoder import Encoder

__getattr__ = late_names(
    __name__,
    {
        "encoder": "Encoder",
    },
)
