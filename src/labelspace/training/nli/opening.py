"""A transformers folder as a backbone for a head."""

from pathlib import Path
from typing import Any

import torch

from labelspace.encoders.opening import NO_LIMIT, opening, padded_table
from labelspace.errors import EncoderError


def open_backbone(folder: Path, trust_remote_code: bool) -> tuple[Any, Any]:
    """Open backbone and tokenizer from a folder: float32, safetensors only, no hub access.

    Raises:
        EncoderError: transformers cannot open it.
    """
    from transformers import AutoModel, AutoTokenizer

    options: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": True}
    with opening(folder, "transformers model"):
        backbone = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **options)
        tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    return backbone, tokenizer


def token_limit(backbone: Any, tokenizer: Any) -> int:
    """Return the largest number of tokens that the encoder can read."""
    positions = padded_table(backbone) or getattr(backbone.config, "max_position_embeddings", None)
    if positions is None:
        limit = int(tokenizer.model_max_length)
        return limit if limit < NO_LIMIT else 512
    return int(positions)


def check_class_token(tokenizer: Any, name: str) -> None:
    """Refuse an encoder whose pairs do not start with a class token, which the head reads.

    Raises:
        EncoderError: there is no class token, or it is not first.
    """
    ids = tokenizer(["a"], ["b"])["input_ids"][0]
    if tokenizer.cls_token_id is None or ids[0] != tokenizer.cls_token_id or tokenizer.padding_side != "right":
        raise EncoderError(
            f"{name} does not begin a pair with a class token, which the head reads; use an encoder such as "
            "all-MiniLM-L6-v2 or bge-base-en-v1.5."
        )
