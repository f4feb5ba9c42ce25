"""`TokenTree`: continuations that begin alike, as one sequence in which each token sees its own ancestors only.

    a b c        nodes  a b c d e         c sees a b c
    a b d               0 1 2 2 1  depth  d sees a b d
    a e                                   e sees a e

What several continuations begin with is computed once, and no token is padding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, final

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

# Architectures known to read positions and a mask as they are given, layer type by layer type; each has its test.
_TREE_READERS = frozenset({"gemma3_text", "llama", "qwen2", "qwen3"})


@final
@dataclass(frozen=True)
class TokenTree:
    """Continuations with what they share."""

    input_ids: Int[Tensor, " node"]
    """The token of each node; parents before their children."""

    depth: Int[Tensor, " node"]
    """0 for a first token."""

    sees: Bool[Tensor, "node node"]
    """Row by row: the node itself and its ancestors."""

    last: Int[Tensor, " continuation"]
    """Where each continuation ends."""

    def attention_mask(
        self, prefix: int, kept: int, dtype: torch.dtype, window: int | None = None
    ) -> Float[Tensor, "1 1 node key"]:
        """Return what is added to the attention logits: 0 where a node looks, the least number elsewhere.

        Args:
            prefix: tokens that came before the tree.
            kept: how many of them, the last ones, still have keys.
            dtype: of the model.
            window: how far back a sliding layer looks, a token itself counted in; None: to the start.

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
        """Return the mask as a model of this configuration takes it: one, or one for each type of layer.

        Args:
            config: of a model that takes a tree.
            prefix: tokens in its cache; a sliding layer keeps one less than its window of them.
            dtype: of the model.
            device: of the model.
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
    """Return whether the model attends as a four-dimensional mask says."""
    return config.model_type in _TREE_READERS and config._attn_implementation in ("eager", "sdpa")


def plant(continuations: Sequence[Sequence[int]]) -> TokenTree:
    """Join continuations into a tree.

    Args:
        continuations: token ids, one or more of each; the same one may come twice.

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
    """Group continuations into trees of at most `most` nodes; those that begin alike stay together.

    Args:
        continuations: token ids.
        most: nodes of a tree; a single longer continuation is a tree alone.

    Returns:
        Lists of indices; every index comes exactly once.

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
        # In sorted order the last one added is the one that shares most.
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
    """Return with how many tokens both begin."""
    most = min(len(first), len(second))
    return next((place for place in range(most) if first[place] != second[place]), most)
