"""A sweep: every description against every verbalizer, as token ids cut into chunks.

A sweep is one optimizer update (description-only supervision, section 3.1). It is tokenized once.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

import torch
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.losses import cosine_scores, infonce_columns, infonce_in_blocks, infonce_rows, symmetric_infonce
from labelspace.training.features import Features
from labelspace.training.gradients import backpropagate
from labelspace.training.rows import Chunk, cut, tokenize

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone

MOST_SCORES = 2**23
"""Most scores, descriptions times labels, whose loss is computed of the whole table: 32 MiB."""

SweepLoss = Callable[[Tensor, Tensor, Tensor], Tensor]
"""(descriptions [desc dim], verbalizers [label dim], targets [desc]) -> scalar."""

OBJECTIVES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "both": symmetric_infonce,
    "rows": infonce_rows,
    "columns": infonce_columns,
}


@final
@dataclass(frozen=True)
class Sweep:
    """All descriptions and all verbalizers of a label space, ready for the encoder."""

    chunks: tuple[Chunk, ...]
    """Chunks that together hold every text once: descriptions first, then verbalizers."""

    targets: Tensor
    """[desc], the column of each description's label."""

    @property
    def descriptions(self) -> int:
        """Number of descriptions."""
        return len(self.targets)


def sweep_texts(space: LabelSpace) -> tuple[list[str], list[int]]:
    """Return the descriptions of all labels, stacked, and the column of each description's label.

    A label without a description is represented by its verbalizer: it attracts nothing, but still repels the others,
    and every column of the loss has a positive.

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
    """Tokenize a label space and cut it into chunks of at most `max_tokens_in_memory` tokens."""
    descriptions, targets = sweep_texts(space)
    chunks = cut(encoder.backbone, tokenize(encoder, descriptions), max_tokens_in_memory)
    labels = cut(encoder.backbone, tokenize(encoder, space.verbalizers, role="label"), max_tokens_in_memory)
    return Sweep(
        chunks=(*chunks, *(_after(len(descriptions), chunk) for chunk in labels)),
        targets=torch.tensor(targets, dtype=torch.long),
    )


def sweep_loss(objective: str, temperature: float) -> SweepLoss:
    """Return the loss of a sweep as a function of its embeddings (description-only supervision, eq. 1-3)."""
    formula = OBJECTIVES[objective]

    def loss(descriptions: Tensor, verbalizers: Tensor, targets: Tensor) -> Tensor:
        if len(descriptions) * len(verbalizers) > MOST_SCORES:
            return infonce_in_blocks(descriptions, verbalizers, targets, temperature, objective)
        return formula(cosine_scores(descriptions, verbalizers, temperature), targets)

    return loss


def sweep_gradient(
    backbone: "Backbone", sweep: Sweep, loss: SweepLoss, *, seed: int, max_tokens_in_memory: int
) -> float:
    """Add the gradient of a sweep's loss to the encoder's weights and return the loss; see `backpropagate`."""

    def of_features(features: Features) -> Tensor:
        # Two slices would each take room for the gradient of all rows.
        count = sweep.descriptions
        descriptions, verbalizers = features.values.split([count, len(features.values) - count])
        return loss(descriptions, verbalizers, sweep.targets.to(backbone.device))

    return backpropagate(
        backbone, sweep.chunks, of_features, words=False, seed=seed, max_tokens_in_memory=max_tokens_in_memory
    )


def _after(offset: int, chunk: Chunk) -> Chunk:
    """Shift a chunk's rows by `offset`."""
    positions = [offset + row for row in chunk.batch.positions]
    return replace(chunk, batch=replace(chunk.batch, positions=positions))
