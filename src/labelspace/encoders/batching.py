"""Length-sorted batches under a token budget, and their padding.

Sorting by length keeps padding small: the texts of a batch are nearly equally long.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import final

import torch
from jaxtyping import Int
from torch import Tensor


@final
@dataclass(frozen=True)
class TokenBatch:
    """A padded batch, and the index of each of its rows."""

    positions: list[int]
    """Index of each row in the input texts."""

    input_ids: Int[Tensor, "text token"]
    """Token ids, padded to the longest row."""

    attention_mask: Int[Tensor, "text token"]
    """1 for a token, 0 for padding."""

    @property
    def tokens(self) -> int:
        """Tokens in the batch, including padding."""
        return self.input_ids.numel()


def plan_batches(lengths: Sequence[int], token_budget: int) -> list[list[int]]:
    """Group indices into batches of similar length, at most `token_budget` padded tokens each.

    Args:
        lengths: tokens of each text.
        token_budget: most tokens per batch, including padding; a longer text gets a batch of its own.

    Returns:
        Lists of indices, longest texts first. Every index appears exactly once. Texts of equal length keep their
        order, so the plan depends only on the lengths.

    Example:
        >>> plan_batches([2, 9, 3, 2], token_budget=6)
        [[1], [2, 0], [3]]
    """
    order = sorted(range(len(lengths)), key=lambda index: -lengths[index])
    batches: list[list[int]] = []
    for index in order:
        # The first text of a batch is its longest and sets the width.
        if batches and (len(batches[-1]) + 1) * max(1, lengths[batches[-1][0]]) <= token_budget:
            batches[-1].append(index)
        else:
            batches.append([index])
    return batches


def rounded_up(length: int) -> int:
    """Return the next of few lengths: four for each doubling, multiples of 4 at least.

    Example:
        >>> [rounded_up(length) for length in (1, 4, 13, 33, 40, 65)]
        [4, 4, 16, 40, 40, 80]
    """
    step = 2 ** max(2, (length - 1).bit_length() - 3)
    return -(-length // step) * step


def pad(
    token_ids: Sequence[Sequence[int]],
    positions: list[int],
    *,
    pad_token_id: int,
    left: bool,
    at_least: int = 1,
) -> TokenBatch:
    """Pad the texts at `positions` to one width.

    Args:
        token_ids: the ids of every text.
        positions: the texts in the batch.
        pad_token_id: token id used as padding.
        left: True pads on the left, for models that pool the last token.
        at_least: the least width, in tokens.
    """
    width = max(at_least, max(len(token_ids[index]) for index in positions))
    input_ids = torch.full((len(positions), width), pad_token_id, dtype=torch.long)
    attention_mask = torch.zeros((len(positions), width), dtype=torch.long)
    for row, index in enumerate(positions):
        ids = torch.tensor(token_ids[index], dtype=torch.long)
        span = slice(width - len(ids), width) if left else slice(0, len(ids))
        input_ids[row, span] = ids
        attention_mask[row, span] = 1
    return TokenBatch(positions=positions, input_ids=input_ids, attention_mask=attention_mask)


def windows(texts: Iterable[str], size: int) -> Iterator[list[str]]:
    """Cut an iterable into lists of `size`, the last one possibly shorter; only one is in memory at a time."""
    window: list[str] = []
    for text in texts:
        window.append(text)
        if len(window) == size:
            yield window
            window = []
    if window:
        yield window
