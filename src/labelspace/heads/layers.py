"""Shared parts of the heads: linear layers initialised from a generator, masked states and a masked softmax."""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from labelspace.errors import ConfigError

States = Float[Tensor, "text token dim"]
Mask = Bool[Tensor, "text token"] | Int[Tensor, "text token"]


def linear(inputs: int, outputs: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """Return a linear layer with torch's initialisation, drawn from `generator`.

    Example:
        >>> linear(2, 3, torch.Generator().manual_seed(0)).weight.shape
        torch.Size([3, 2])
    """
    # Created on the meta device, because nn.Linear would draw from torch's global generator.
    layer = nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        for values in layer.parameters():
            values.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
    return layer


def widened(states: States, words: Bool[Tensor, "text token"]) -> States:
    """Return the states in float32 or wider, with zeros at padding."""
    wide = states.to(torch.promote_types(states.dtype, torch.float32))
    return wide.masked_fill(~words[..., None], 0)


def word_weights(scores: Float[Tensor, "... token"], words: Bool[Tensor, "... token"]) -> Float[Tensor, "... token"]:
    """Return the softmax over the words of each text, with 0 at padding, even for a text without words."""
    lowest = torch.finfo(scores.dtype).min  # not -inf: a row of only -inf would become nan
    return scores.masked_fill(~words, lowest).softmax(dim=-1).masked_fill(~words, 0)


def check_generator(generator: torch.Generator) -> None:
    """Raise ConfigError unless the generator is on the CPU: initial values must not depend on the device."""
    if generator.device.type != "cpu":
        raise ConfigError(
            f"generator must be on the cpu. Got one on {generator.device} instead; make the head, then move it."
        )
