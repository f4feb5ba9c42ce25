"""The weights of models, and whether they have the same bits."""

from typing import Any

import torch
from torch import Tensor, nn

from labelspace.encoders import Encoder

Weights = dict[str, Tensor]


def weights_of(model: Encoder | nn.Module) -> Weights:
    """Return a copy of the weights of an encoder or a module."""
    module: Any = model.backbone.model if isinstance(model, Encoder) else model
    return {name: tensor.detach().clone() for name, tensor in module.state_dict().items()}


def same_bits(one: Encoder | nn.Module | Weights, other: Encoder | nn.Module | Weights) -> bool:
    """Return whether two models, or copies of their weights, have the same bits."""
    first, second = (given if isinstance(given, dict) else weights_of(given) for given in (one, other))
    return first.keys() == second.keys() and all(torch.equal(first[name], second[name]) for name in first)
