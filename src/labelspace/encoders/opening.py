"""Shared by everything that opens a transformers folder: no output, and one clear error."""

import logging
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from labelspace.errors import EncoderError, own_filters

# Tokenizers without a limit report a number above this.
NO_LIMIT = 1_000_000

TOKENIZING = threading.Lock()
"""Held while a tokenizer is used: how it cuts is set on the tokenizer, which threads and copies share."""

_FAILS = (OSError, ValueError, KeyError, RuntimeError, ImportError, AttributeError, TypeError, SafetensorError)


@contextmanager
def quiet_loading() -> Iterator[None]:
    """Hide the progress bars and log lines of transformers while it loads or saves."""
    from transformers.utils import logging as transformers_logging

    logger = logging.getLogger("transformers")
    with own_filters():  # also for the level and the bars: one thread at a time
        level, bars = logger.level, transformers_logging.is_progress_bar_enabled()
        transformers_logging.disable_progress_bar()
        logger.setLevel(logging.ERROR)
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
            if bars:
                transformers_logging.enable_progress_bar()


@contextmanager
def opening(folder: str | Path, kind: str, *, holds: str = "safetensors weights") -> Iterator[None]:
    """Open a model inside the block without output; turn whatever transformers raises into one error.

    Args:
        folder: the folder or name to open.
        kind: what it should be, for the message.
        holds: what a complete folder contains, for the message.

    Raises:
        EncoderError: the block failed.
    """
    try:
        with quiet_loading():
            yield
    except _FAILS as error:
        first_line = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise EncoderError(
            f"{str(folder)!r} cannot be opened as a {kind}: {first_line[:300]} "
            f"Check that the folder is whole and holds {holds}."
        ) from error


def padded_table(model: Any) -> int | None:
    """Number of usable positions in a position table that starts with padding; None if there is no such table.

    RoBERTa, XLM-R and MPNet start counting after the padding index, so two of 514 positions are never used.
    """
    for name, module in model.named_modules():
        if name.endswith("position_embeddings") and getattr(module, "padding_idx", None) is not None:
            return int(module.num_embeddings - module.padding_idx - 1)
    return None
