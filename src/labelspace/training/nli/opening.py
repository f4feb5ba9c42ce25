"""A transformers folder opened as a backbone that a head can stand on."""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError

from labelspace.errors import EncoderError

# Their positions start after the padding index, so they read fewer tokens than they have positions.
_SHIFTED = ("roberta", "xlm-roberta", "camembert", "mpnet")
# Tokenizers of models without a limit report this order of magnitude.
NO_LIMIT = 1_000_000


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Keep the bars and notes of transformers off the user's screen while it loads or saves."""
    from transformers.utils import logging as transformers_logging

    logger = logging.getLogger("transformers")
    level, bars = logger.level, transformers_logging.is_progress_bar_enabled()
    transformers_logging.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers_logging.enable_progress_bar()


def open_backbone(folder: Path, trust_remote_code: bool) -> tuple[Any, Any]:
    """Open backbone and tokenizer of a folder: float32, safetensors only, nothing from the hub.

    Raises:
        EncoderError: transformers cannot open it.
    """
    from transformers import AutoModel, AutoTokenizer

    try:
        with quiet_transformers():
            options: dict[str, Any] = {"trust_remote_code": trust_remote_code, "local_files_only": True}
            backbone = AutoModel.from_pretrained(folder, use_safetensors=True, dtype=torch.float32, **options)
            tokenizer = AutoTokenizer.from_pretrained(folder, **options)
    except (
        OSError,
        ValueError,
        KeyError,
        RuntimeError,
        ImportError,
        AttributeError,
        TypeError,
        SafetensorError,
    ) as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EncoderError(
            f"{str(folder)!r} cannot be opened as a transformers model: {first_line[:300]} "
            "Check that the folder is whole and holds safetensors weights."
        ) from error
    return backbone, tokenizer


def token_limit(backbone: Any, tokenizer: Any) -> int:
    """Return how many tokens the encoder can read."""
    positions = getattr(backbone.config, "max_position_embeddings", None)
    if positions is None:
        limit = int(tokenizer.model_max_length)
        return limit if limit < NO_LIMIT else 512
    shift = (backbone.config.pad_token_id or 0) + 1 if backbone.config.model_type in _SHIFTED else 0
    return int(positions) - shift


def check_class_token(tokenizer: Any, name: str) -> None:
    """Refuse an encoder whose first token is none that the head could read.

    Raises:
        EncoderError: a pair does not begin with the class token.
    """
    ids = tokenizer(["a"], ["b"])["input_ids"][0]
    if tokenizer.cls_token_id is None or ids[0] != tokenizer.cls_token_id or tokenizer.padding_side != "right":
        raise EncoderError(
            f"{name} does not begin a pair with a class token, which the head reads; take an encoder such as "
            "all-MiniLM-L6-v2 or bge-base-en-v1.5."
        )
