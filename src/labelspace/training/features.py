"""Rows through the encoder: in chunks for training, and all of them for inference."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from labelspace.encoders import Encoder
from labelspace.encoders.batching import plan_batches
from labelspace.encoders.side_by_side import side_by_side
from labelspace.training.rows import Chunk, Rows, make_chunk

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone


@final
@dataclass(frozen=True)
class Features:
    """Encoder output for some texts."""

    values: Float[Tensor, "text dim"] | Float[Tensor, "text token dim"]
    """Text vectors, or token states."""

    mask: Bool[Tensor, "text token"] | None
    """True at tokens; None for text vectors."""

    def __getitem__(self, rows: slice) -> "Features":
        return Features(self.values[rows], None if self.mask is None else self.mask[rows])


def run_chunk(backbone: "Backbone", chunk: Chunk, *, words: bool, training: bool) -> Features:
    """Run the encoder on one chunk.

    Args:
        backbone: the encoder.
        chunk: rows padded to one width.
        words: True for token states, False for text vectors.
        training: True keeps gradients.
    """
    if words:
        return Features(*backbone.states(chunk.batch, token_types=chunk.token_types, training=training))
    vectors = backbone.embed(
        chunk.batch, prompt_tokens=chunk.prompt_tokens, token_types=chunk.token_types, training=training
    )
    return Features(vectors, None)


def rows_of(chunks: Sequence[Chunk]) -> list[Tensor]:
    """Return the place of each chunk's rows among the rows of all chunks, in row order."""
    order = torch.tensor([row for chunk in chunks for row in chunk.batch.positions])
    return list(order.argsort().argsort().split([len(chunk.batch.positions) for chunk in chunks]))


def gather(parts: Sequence[Features], chunks: Sequence[Chunk]) -> Features:
    """Restore row order, and pad token states to one width."""
    back = torch.cat(rows_of(chunks)).argsort().to(parts[0].values.device)
    if parts[0].mask is None:
        return Features(torch.cat([part.values for part in parts])[back], None)
    width = max(part.values.shape[1] for part in parts)
    values, masks = [], []
    for part in parts:
        assert part.mask is not None
        gap = width - part.values.shape[1]
        values.append(F.pad(part.values, (0, 0, 0, gap)))
        masks.append(F.pad(part.mask, (0, gap)))
    return Features(torch.cat(values)[back], torch.cat(masks)[back])


def answers(
    encoder: Encoder, rows: Rows, work: Callable[[Features], Tensor], *, words: bool, width: int
) -> NDArray[np.float32]:
    """Run rows through the encoder and then through `work`, without gradients, in constant memory.

    Args:
        encoder: the encoder.
        rows: texts or pairs.
        work: turns the features of a few rows into [text width]; called from several threads at once.
        words: True for token states, False for text vectors.
        width: number of output columns.

    Returns:
        [text width], in row order.
    """
    found = np.empty((len(rows), width), dtype=np.float32)

    packed = None if words or rows.token_types is not None else encoder.packed()
    if packed is None:
        encoder.backbone.prepare()

    def run(positions: list[int]) -> NDArray[np.float32]:
        if packed is not None:
            features = Features(packed.embed([rows.token_ids[index] for index in positions]), None)
        else:
            chunk = make_chunk(encoder.backbone, rows, positions)
            features = run_chunk(encoder.backbone, chunk, words=words, training=False)
        return work(features).float().cpu().numpy()

    plan = plan_batches(rows.lengths, encoder.config.token_budget)
    for positions, block in side_by_side(run, plan, encoder.device, ready=packed is not None):
        found[positions] = block
    return found


def width_of(encoder: Encoder, *, words: bool) -> int:
    """Return the width of token states, or of text vectors."""
    return encoder.backbone.hidden_size if words else encoder.dimension


def plain_vectors(encoder: Encoder, rows: Rows, *, words: bool) -> NDArray[np.float32]:
    """Return unit vectors of rows without a head: the encoder's own, or means of token states; see `answers`."""
    return answers(encoder, rows, _unit_vectors, words=words, width=width_of(encoder, words=words))


def _unit_vectors(features: Features) -> Tensor:
    if features.mask is None:
        return F.normalize(features.values, dim=-1)
    words = features.values.masked_fill(~features.mask[..., None], 0)
    return F.normalize(words.sum(dim=1), dim=-1)
