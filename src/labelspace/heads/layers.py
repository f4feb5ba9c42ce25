"""What the heads share: layers whose first values come from a generator, and states made ready to be summed."""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from labelspace.errors import ConfigError

States = Float[Tensor, "text token dim"]


def linear(inputs: int, outputs: int, generator: torch.Generator, *, bias: bool = True) -> nn.Linear:
    """A linear layer with the first values that torch gives it, drawn from `generator`.

    Example:
        >>> linear(2, 3, torch.Generator().manual_seed(0)).weight.shape
        torch.Size([3, 2])
    """
    # Made without memory first: nn.Linear itself would draw from torch's own generator.
    layer = nn.Linear(inputs, outputs, bias=bias, device="meta").to_empty(device="cpu")
    with torch.no_grad():
        for values in layer.parameters():
            values.uniform_(-(inputs**-0.5), inputs**-0.5, generator=generator)
    return layer


def widened(states: States, words: Bool[Tensor, "text token"]) -> States:
    """Words in float32 or wider, and zeros at padding, whatever stood there."""
    wide = states.to(torch.promote_types(states.dtype, torch.float32))
    return wide.masked_fill(~words[..., None], 0)


def check_generator(generator: torch.Generator) -> None:
    """Raise ConfigError unless the generator is on the CPU: first values shall not depend on the device."""
    if generator.device.type != "cpu":
        raise ConfigError(
            f"generator must be on the cpu. Got one on {generator.device} instead; make the head, then move it."
        )
