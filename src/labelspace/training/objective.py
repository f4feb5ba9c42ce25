"""A kind of training, as the engine sees it: a plan, the update, and the look that measures.

Each method has one: `description/objective.py`, `lacon/objective.py`, `uncertainty/objective.py`,
`prefinetune/objective.py` (REZE) and `nli/objective.py`.
"""

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any, Protocol, final

import torch
from torch import nn

from labelspace.errors import TrainingError


@final
@dataclass(frozen=True)
class Group:
    """Weights that share a learning rate."""

    option: str
    """The option that sets the rate: `"learning_rate"` or `"head_learning_rate"`."""

    weights: Sequence[tuple[str, nn.Parameter]]
    """Names and weights."""

    rate: float
    """Peak learning rate."""


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """Everything fixed before the first update."""

    groups: Sequence[Group]
    """Trainable weights; callbacks receive the rate of the first group."""

    total: int
    """Number of updates that the schedule covers."""

    factor: Callable[[int], float]
    """The schedule: share of the peak rates at an update, counted from 0."""

    weight_decay: float
    """AdamW's weight decay, on all weights."""

    end: str = "epochs"
    """Reason recorded if all updates are made: `"epochs"` or `"max_steps"`."""

    epochs: int | None = None
    """Number of epochs; None if there are no rows."""

    training: Callable[[], AbstractContextManager[Any]] = nullcontext
    """Context of the updates; looks that follow an update are outside it."""

    noise: torch.Generator | None = None
    """Generator that is shared by all updates, if draws are not from child seeds of the update's number."""

    look_every: int
    """Updates between two looks; the last update is always followed by a look."""

    looks_first: bool = False
    """True also looks before the first update."""

    judges_loss: bool = False
    """True: a look judges the weights by the loss of the current update, so it comes before they change. False: it
    comes after."""

    look: type[Any] | None = None
    """Class of the looks, a frozen dataclass with the field `step`; None if nothing is measured."""

    better: Callable[[Any, Any], bool] | None = None
    """(look, best so far or None) -> whether to keep the weights of the look; None always keeps the latest."""

    patience: int | None = None
    """Number of looks in a row without improvement before training stops; None: all updates are made."""

    told: Callable[[Any], dict[str, float]] | None = None
    """Returns a look's values for callbacks and progress; None: no values."""


class Objective(Protocol):
    """A kind of training."""

    @property
    def plan(self) -> Plan:
        """Everything fixed before the first update."""
        ...

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradient of an update, counted from 0; return its loss and named parts of it.

        If the loss is not finite, the gradient may be left out.
        """
        ...

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Any:
        """Measure after some updates.

        Args:
            made: number of updates made.
            losses: the loss of every update so far.
            parts: parts of the loss for each update since the last look.

        Returns:
            An instance of the plan's look class; None if nothing is measured, which keeps the latest weights.
        """
        ...


def check_finite(loss: float, what: str, step: int, plan: Plan) -> None:
    """Stop training if a loss is not finite.

    Raises:
        TrainingError: the loss is not finite; the message names the option that helps.
    """
    if not math.isfinite(loss):
        raise diverged(f"{what} is {loss}", step, plan)


def diverged(what: str, step: int, plan: Plan) -> TrainingError:
    """Return the error for diverged training, with a rate to try."""
    first, *others = plan.groups
    also = "".join(f", a lower {group.option}" for group in others)
    return TrainingError(
        f"{what} at step {step} with {first.option}={first.rate:.1e}; use a lower one, for example "
        f"{first.option}={first.rate / 10:.0e}{also}, or an encoder with dtype='float32'."
    )
