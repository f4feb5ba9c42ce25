"""`TokenTree`: continuations in one sequence, in which each token attends to its own ancestors only.

    a b c        nodes  a b c d e         c sees a b c
    a b d               0 1 2 2 1  depth  d sees a b d
    a e                                   e sees a e

A beginning that several continuations share is computed once, and there is no padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from labelspace.encoders.undocumented import attention_of

# Architectures that use the given positions and mask, per layer type; each has a test.
_TREE_READERS = frozenset({"gemma3_text", "llama", "qwen2", "qwen3"})


@final
@dataclass(frozen=True)
class TokenTree:
    """Continuations joined by the beginnings that they share."""

    input_ids: Int[Tensor, " node"]
    """The token of each node; parents before their children."""

    depth: Int[Tensor, " node"]
    """0 for a first token."""

    sees: Bool[Tensor, "node node"]
    """True in row i for node i and its ancestors."""

    last: Int[Tensor, " continuation"]
    """The last node of each continuation."""

    def attention_mask(
        self, prefix: int, kept: int, dtype: torch.dtype, window: int | None = None
    ) -> Float[Tensor, "1 1 node key"]:
        """Return the additive attention mask: 0 where a node attends, the lowest finite number elsewhere.

        Args:
            prefix: number of tokens before the tree.
            kept: number of these, the last ones, that still have keys.
            dtype: dtype of the model.
            window: tokens that a sliding layer attends to, the token itself included; None: all.

        Returns:
            [1 1 node kept+node].
        """
        seen = torch.cat([torch.ones(len(self.depth), kept, dtype=torch.bool), self.sees], dim=1)
        if window is not None:
            at = torch.cat([torch.arange(-kept, 0), self.depth]) + prefix
            seen &= (self.depth[:, None] + prefix) - at[None, :] < window
        mask = torch.zeros(seen.shape, dtype=dtype).masked_fill_(~seen, torch.finfo(dtype).min)
        return mask[None, None]

    def masks_for(
        self, config: Any, prefix: int, dtype: torch.dtype, device: torch.device
    ) -> Tensor | dict[str, Tensor]:
        """Return the mask in the form that the model takes: one, or one per layer type.

        Args:
            config: configuration of the model.
            prefix: tokens in its cache; a sliding layer keeps the last window - 1 of them.
            dtype: dtype of the model.
            device: device of the model.
        """
        full = self.attention_mask(prefix, prefix, dtype).to(device)
        if not hasattr(config, "layer_types"):
            return full
        masks = {"full_attention": full}
        if "sliding_attention" in config.layer_types:
            window = int(config.sliding_window)
            masks["sliding_attention"] = self.attention_mask(prefix, min(prefix, window - 1), dtype, window).to(device)
        return masks


def takes_a_tree(config: Any) -> bool:
    """Return whether the model accepts a four-dimensional attention mask."""
    return config.model_type in _TREE_READERS and attention_of(config) in ("eager", "sdpa")


def plant(continuations: Sequence[Sequence[int]]) -> TokenTree:
    """Join continuations into a tree.

    Args:
        continuations: token ids of each, at least one; duplicates are allowed.

    Example:
        >>> tree = plant([[1, 2, 3], [1, 2, 4], [1, 5]])
        >>> tree.input_ids.tolist(), tree.depth.tolist(), tree.last.tolist()
        ([1, 2, 3, 4, 5], [0, 1, 2, 2, 1], [2, 3, 4])
    """
    children: dict[tuple[int, int], int] = {}
    input_ids: list[int] = []
    parents: list[int] = []
    last: list[int] = []
    for ids in continuations:
        node = -1
        for token in ids:
            child = children.setdefault((node, token), len(input_ids))
            if child == len(input_ids):
                input_ids.append(token)
                parents.append(node)
            node = child
        last.append(node)
    sees = torch.eye(len(input_ids), dtype=torch.bool)
    depth = [0] * len(input_ids)
    for node, parent in enumerate(parents):
        if parent >= 0:
            sees[node] |= sees[parent]
            depth[node] = depth[parent] + 1
    return TokenTree(torch.tensor(input_ids), torch.tensor(depth), sees, torch.tensor(last))


def plan_trees(continuations: Sequence[Sequence[int]], most: int) -> list[list[int]]:
    """Group continuations into trees of at most `most` nodes, so that those with a shared beginning stay together.

    Args:
        continuations: token ids.
        most: most nodes of a tree; a longer continuation is a tree of its own.

    Returns:
        Lists of indices; every index occurs exactly once.

    Example:
        >>> plan_trees([[1, 2, 3], [7, 8], [1, 2, 4]], most=4)
        [[0, 2], [1]]
    """
    order = sorted(range(len(continuations)), key=lambda index: list(continuations[index]))
    trees: list[list[int]] = []
    nodes = 0
    before: Sequence[int] = ()
    for index in order:
        ids = continuations[index]
        # In sorted order the previous continuation shares the longest beginning.
        new = len(ids) - _shared(before, ids)
        if trees and nodes + new <= most:
            trees[-1].append(index)
            nodes += new
        else:
            trees.append([index])
            nodes = len(ids)
        before = ids
    return trees


def _shared(first: Sequence[int], second: Sequence[int]) -> int:
    """Return the length of the beginning that both share."""
    most = min(len(first), len(second))
    return next((place for place in range(most) if first[place] != second[place]), most)
