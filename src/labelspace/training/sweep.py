"""One sweep: every description against every verbalizer, as token ids cut into chunks.

A sweep is one optimizer update (description-only supervision, section 3.1). It is tokenised once; the
chunks are length-sorted batches under a token budget, so that they hold next to no padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import torch
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.encoders.batching import TokenBatch, plan_batches
from labelspace.labels import LabelSpace

# Beyond this a chunk's products are wide enough; smaller ones stay in the processor's cache.
CHUNK_TOKENS = 2048


@final
@dataclass(frozen=True)
class Chunk:
    """Texts that go through the encoder together."""

    batch: TokenBatch
    """Token ids; `positions` are rows among the sweep's texts, descriptions first, then verbalizers."""

    prompt_tokens: int
    """Tokens that pooling leaves out; 0 for most encoders."""


@final
@dataclass(frozen=True)
class Sweep:
    """All descriptions and all verbalizers of a label space, ready for the encoder."""

    chunks: tuple[Chunk, ...]
    """Together they hold every text once."""

    targets: Tensor
    """[desc], the column of each description's label."""

    labels: int
    """How many labels, and so verbalizers, there are."""

    tokens: int
    """Tokens of all chunks, padding counted in."""

    @property
    def descriptions(self) -> int:
        """How many descriptions there are."""
        return len(self.targets)


def sweep_texts(space: LabelSpace) -> tuple[list[str], list[int]]:
    """Return the descriptions of all labels, stacked, and the column of each one's label.

    A label without a description stands in with its verbalizer: it pulls nothing, but still pushes the
    others away, and no column of the loss is left without a positive.

    Example:
        >>> from labelspace.labels import Label, LabelSpace
        >>> space = LabelSpace([Label("a", descriptions=["one", "two"]), Label("b")], template="{label}!")
        >>> sweep_texts(space)
        (['one', 'two', 'b!'], [0, 0, 1])
    """
    texts: list[str] = []
    targets: list[int] = []
    for column, (descriptions, verbalizer) in enumerate(zip(space.descriptions, space.verbalizers, strict=True)):
        own = descriptions or (verbalizer,)
        texts.extend(own)
        targets.extend([column] * len(own))
    return texts, targets


def build_sweep(encoder: Encoder, space: LabelSpace, *, max_tokens_in_memory: int) -> Sweep:
    """Tokenise a label space and cut it into chunks no larger than `max_tokens_in_memory`."""
    descriptions, targets = sweep_texts(space)
    budget = min(CHUNK_TOKENS, max_tokens_in_memory)
    chunks = [
        *_chunks(encoder, descriptions, "text", budget, offset=0),
        *_chunks(encoder, space.verbalizers, "label", budget, offset=len(descriptions)),
    ]
    return Sweep(
        chunks=tuple(chunks),
        targets=torch.tensor(targets, dtype=torch.long),
        labels=len(space),
        tokens=sum(chunk.batch.tokens for chunk in chunks),
    )


def _chunks(encoder: Encoder, texts: Sequence[str], role: str, budget: int, *, offset: int) -> list[Chunk]:
    token_ids = encoder.tokenize(texts, role=role)
    prompt_tokens = encoder.backbone.prompt_tokens(encoder.prompts[role])
    chunks = []
    for positions in plan_batches([len(ids) for ids in token_ids], budget):
        batch = encoder.backbone.batch(token_ids, positions)
        moved = TokenBatch([offset + row for row in positions], batch.input_ids, batch.attention_mask)
        chunks.append(Chunk(moved, prompt_tokens))
    return chunks
