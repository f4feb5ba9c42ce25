"""The weights of a torch module as the arrays of a `State`, and back."""

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.errors import ShapeError


def module_tensors(module: Any) -> dict[str, NDArray[np.generic]]:
    """Return the weights of a torch module, named `head.` and so on."""
    return {f"head.{name}": part.detach().cpu().numpy() for name, part in module.named_parameters()}


def fill_module(module: Any, tensors: dict[str, NDArray[np.generic]]) -> None:
    """Load weights from `module_tensors` into a torch module.

    Raises:
        KeyError: a weight is missing.
        ShapeError: a weight has the wrong shape, or does not belong to this module.
    """
    own = dict(module.named_parameters())
    foreign = sorted(name for name in tensors if name.startswith("head.") and name[len("head.") :] not in own)
    if foreign:
        raise ShapeError(f"{foreign[0]} is of another head than labelspace.json tells of")
    with torch.no_grad():
        for name, values in own.items():
            saved = torch.from_numpy(tensors[f"head.{name}"])
            if saved.shape != values.shape:
                raise ShapeError(f"head.{name} has shape {tuple(saved.shape)} and should have {tuple(values.shape)}")
            values.copy_(saved)
