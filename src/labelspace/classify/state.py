"""A fitted classifier as plain values and arrays: what saving writes, and what opening gives back."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.classify.anchors import LabelVectors
from labelspace.encoders import Encoder
from labelspace.errors import ShapeError
from labelspace.labels import LabelSpace


@final
@dataclass(frozen=True, kw_only=True)
class State:
    """Everything that a fitted classifier is."""

    encoder: Encoder
    """With the weights it has now."""

    started_from: str
    """The name of the encoder that `fit` started from."""

    space: LabelSpace
    """The labels."""

    label_vectors: dict[str, LabelVectors]
    """Their encoded texts, by name."""

    parameters: dict[str, Any]
    """Arguments of the constructor, without the labels; plain values where they are to be written."""

    fit: dict[str, Any] | None = None
    """What was done in `fit`, as plain values; None where nothing was trained."""

    facts: dict[str, Any] = field(default_factory=dict)
    """What the class adds to `labelspace.json`; of a folder that was read, all that stands there."""

    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    """What the class keeps in a file of its own, `tensors_file`."""

    place: Path = Path("the model")
    """The folder it was read from, for messages."""


@final
@dataclass(frozen=True)
class SavedFit:
    """What a saved model knows of its fit: the plain values of `FitResult.to_dict` and its kin."""

    values: dict[str, Any]
    """Curve, learning rate, seed and the like."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values


def module_tensors(module: Any) -> dict[str, NDArray[np.generic]]:
    """Return the weights of a torch module, named `head.` and so on."""
    return {f"head.{name}": part.detach().cpu().numpy() for name, part in module.named_parameters()}


def fill_module(module: Any, tensors: dict[str, NDArray[np.generic]]) -> None:
    """Give a torch module the weights that `module_tensors` returned.

    Raises:
        KeyError: one of them is not there.
        ShapeError: one has another shape, or is of another module.
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
