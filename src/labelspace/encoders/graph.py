"""An encoder as one graph, token ids in and unit vectors out, for other runtimes."""

import logging
import os
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, final

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram
from torch.nn import functional as F

from labelspace.checks import import_optional
from labelspace.encoders.batching import TokenBatch, pad
from labelspace.errors import EncoderError, LabelSpaceError, own_filters

VECTORS = "vectors"
"""Name of the output, [text dim]."""

_MOST_TEXTS = 65_536
_EXAMPLE = [[2, 3, 4, 5, 6], [2, 3, 4]]  # token ids of two texts, one of them padded
_NO_REPORTS = "ORT_DISABLE_TELEMETRY"


@final
class Graph(nn.Module):
    """The modules of an encoder in a row, then scaling to unit length.

    Args:
        modules: sentence-transformers' modules, in order; they are shared, and stay float32.
        inputs: what the first one reads: `input_ids`, `attention_mask` and, perhaps, `token_type_ids`.
        max_tokens: most tokens of a text.
        pad_token_id: token id used as padding.
        pad_left: whether padding goes before the text.
    """

    def __init__(
        self, modules: Iterable[nn.Module], inputs: Sequence[str], *, max_tokens: int, pad_token_id: int, pad_left: bool
    ) -> None:
        super().__init__()
        self.parts = nn.ModuleList(modules)
        self.inputs, self.max_tokens = list(inputs), max_tokens
        self.pad_token_id, self.pad_left = pad_token_id, pad_left

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> Float[Tensor, "text dim"]:
        """Return the unit vectors of a padded batch."""
        features = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            features["token_type_ids"] = token_type_ids
        for part in self.parts:
            features = part(features)
        return F.normalize(features["sentence_embedding"], dim=-1)

    def batch(self, token_ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the inputs of a batch, each [text token], in the order of `inputs`."""
        every = list(range(len(token_ids)))
        padded: TokenBatch = pad(token_ids, every, pad_token_id=self.pad_token_id, left=self.pad_left)
        batch = [padded.input_ids, padded.attention_mask]
        return [*batch, torch.zeros_like(padded.input_ids)] if len(self.inputs) > len(batch) else batch

    def program(self) -> ExportedProgram:
        """Return the graph with a free number of texts and of tokens.

        Raises:
            EncoderError: torch cannot make a graph of these modules.
        """
        free = {0: Dim("text", max=_MOST_TEXTS), 1: Dim("token", max=self.max_tokens)}
        example = self.batch(_EXAMPLE)
        with exporting():
            return torch.export.export(self, tuple(example), dynamic_shapes=(free,) * len(example), strict=False)


@contextmanager
def exporting() -> Iterator[None]:
    """Make a graph inside the block without torch's notes about itself; turn whatever it raises into one error.

    Raises:
        EncoderError: the block failed.
    """
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with own_filters():
            warnings.simplefilter("ignore")
            yield
    except (LabelSpaceError, OSError, MemoryError):
        raise
    except Exception as error:  # each of three exporters has errors of its own, with no base but this one
        first_line = str(error).strip().partition("\n")[0] or type(error).__name__
        raise EncoderError(
            f"this encoder cannot be made a graph for other runtimes: {first_line[:200]} Choose another encoder, or "
            "run it with torch."
        ) from error
    finally:
        logger.setLevel(level)


def import_openvino(purpose: str) -> Any:
    """Import OpenVINO without its telemetry, which would report the import to its makers.

    Args:
        purpose: the feature that needs it, as the subject of a sentence.

    Raises:
        MissingDependencyError: it is not installed.
    """
    modules: dict[str, Any] = sys.modules
    known = "openvino_telemetry" in modules
    if not known:
        modules["openvino_telemetry"] = None  # its import fails, and OpenVINO does without
    try:
        return import_optional("openvino", package="openvino", extra="export", purpose=purpose)
    finally:
        if not known:
            del modules["openvino_telemetry"]


def import_onnxruntime(purpose: str) -> Any:
    """Import ONNX Runtime without its telemetry, which would report the import and every model to its makers.

    Args:
        purpose: the feature that needs it, as the subject of a sentence.

    Raises:
        MissingDependencyError: it is not installed.
    """
    # It asks the environment, once and only when it is imported; afterwards the environment is as it was.
    known = _NO_REPORTS in os.environ
    os.environ.setdefault(_NO_REPORTS, "1")
    try:
        return import_optional("onnxruntime", package="onnxruntime", extra="export", purpose=purpose)
    finally:
        if not known:
            del os.environ[_NO_REPORTS]
