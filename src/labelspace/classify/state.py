"""A fitted classifier as plain values and arrays, for saving and loading."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

import numpy as np
import torch
from numpy.typing import NDArray

from labelspace.classify.anchors import LabelVectors
from labelspace.errors import ShapeError
from labelspace.labels import LabelSpace


@final
@dataclass(frozen=True, kw_only=True)
class State:
    """The complete state of a fitted classifier."""

    encoder: Any
    """The `Encoder` with its current weights; None if the model has none."""

    started_from: str
    """Name of the encoder that `fit` started from."""

    space: LabelSpace
    """The labels."""

    label_vectors: dict[str, LabelVectors]
    """Encoded label texts by label name."""

    parameters: dict[str, Any]
    """Constructor arguments without the labels; plain values if they are to be saved."""

    fit: dict[str, Any] | None = None
    """The fit result as plain values; None if nothing was trained."""

    facts: dict[str, Any] = field(default_factory=dict)
    """Entries that the class adds to `labelspace.json`; after reading, all of its entries."""

    tensors: dict[str, NDArray[Any]] = field(default_factory=dict)
    """Content of the class's `tensors_file`."""

    members: tuple[Any, ...] = ()
    """Fitted classifiers that the model consists of, each saved as a model of its own."""

    place: Path = Path("the model")
    """The folder it was read from, for messages."""


@final
@dataclass(frozen=True)
class SavedFit:
    """The fit result of a loaded model, as plain values from `FitResult.to_dict` or the like."""

    values: dict[str, Any]
    """Curve, learning rate, seed and the like."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values


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
