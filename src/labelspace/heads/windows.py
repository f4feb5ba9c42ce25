"""Convolution over tokens with max-pooling, with a gradient computed from the winning windows only.

Each filter keeps one window per text, so the gradient of its weights is a weighted sum of one window per text. The cost
of the backward pass does not grow with the length of the texts; training costs little more than the forward pass.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from labelspace.heads.layers import States


def windows_maximum(
    states: States, lengths: Int[Tensor, " text"], weight: Float[Tensor, "filter window"], kernel: int
) -> Float[Tensor, "text filter"]:
    """Return the largest response of each filter over the windows within each text.

    A text shorter than the kernel has one window, which starts at its first token.

    Args:
        states: [text token dim], tokens followed by zeros, at least `kernel` of them.
        lengths: [text], number of tokens.
        weight: [filter window], a window being `kernel` consecutive tokens.
        kernel: number of tokens under a filter.

    Returns:
        [text filter], float32 or wider; products are computed in the dtype of `states`.

    Example:
        >>> states = torch.tensor([[[1.0], [3.0], [2.0], [0.0]]])
        >>> windows_maximum(states, torch.tensor([3]), torch.tensor([[1.0, 1.0]]), kernel=2).tolist()
        [[5.0]]
    """
    if states.requires_grad:  # autograd handles the gradient of the states
        return _widened(_responses(states, lengths, weight, kernel).amax(dim=1))
    return _WindowsMaximum.apply(states, lengths, weight, kernel)


def _responses(
    states: States, lengths: Int[Tensor, " text"], weight: Float[Tensor, "filter window"], kernel: int
) -> Float[Tensor, "text place filter"]:
    """Return the response of every filter at every window, -inf where the window leaves the text."""
    windows = _windows(states, kernel)
    texts, places, size = windows.shape
    # One product over copied windows is faster than torch's convolution in bfloat16.
    scores = F.linear(windows.reshape(texts * places, size), weight.to(states.dtype)).view(texts, places, -1)
    last = (lengths - kernel).clamp(min=0)
    outside = torch.arange(places, device=states.device) > last[:, None]  # [text place]
    return scores.masked_fill(outside[..., None], -torch.inf)


def _windows(states: States, kernel: int) -> Float[Tensor, "text place window"]:
    """Return all windows without copying; they overlap in memory."""
    states = states.contiguous()
    texts, tokens, dim = states.shape
    return states.as_strided((texts, tokens - kernel + 1, kernel * dim), (tokens * dim, dim, 1))


def _widened(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))


class _WindowsMaximum(torch.autograd.Function):
    """`windows_maximum` for states without a gradient."""

    @staticmethod
    def forward(ctx: Any, states: Tensor, lengths: Tensor, weight: Tensor, kernel: int) -> Tensor:
        best, places = _responses(states, lengths, weight, kernel).max(dim=1)
        ctx.save_for_backward(states, places)
        ctx.kernel = kernel
        return _widened(best)

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> tuple[None, None, Tensor, None]:
        states, places = ctx.saved_tensors
        windows = _windows(states, ctx.kernel)
        texts, count, size = windows.shape
        rows = places + count * torch.arange(texts, device=places.device)[:, None]  # [text filter]
        gradient = F.embedding_bag(
            rows.T.contiguous(),
            windows.reshape(texts * count, size),
            per_sample_weights=outer[0].T.contiguous().to(states.dtype),
            mode="sum",
        )
        return None, None, gradient.to(outer[0].dtype), None
