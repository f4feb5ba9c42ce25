"""A fitted classifier as plain values and arrays, for saving and loading."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, final

from numpy.typing import NDArray

from labelspace.classify.anchors import LabelVectors
from labelspace.labels import LabelSpace
from labelspace.training.fit_report import FitReport


@final
@dataclass(frozen=True, kw_only=True)
class State:
    """The complete state of a fitted classifier."""

    space: LabelSpace
    """The labels."""

    parameters: dict[str, Any]
    """Constructor arguments without the labels; plain values if they are to be saved."""

    encoder: Any = None
    """The `Encoder` with its current weights; None if the model has none."""

    started_from: str = ""
    """Name of the encoder that `fit` started from."""

    label_vectors: dict[str, LabelVectors] = field(default_factory=dict)
    """Encoded label texts by label name."""

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
class SavedFit(FitReport):
    """The fit result of a loaded model, as plain values from `FitResult.to_dict` or the like."""

    values: dict[str, Any]
    """Curve, learning rate, seed and the like."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values
