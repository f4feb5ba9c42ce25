"""What one kind of training is, for the engine: a plan, what an update is, what a look measures.

There is one for each paper: `description/objective.py`, `lacon/objective.py`, `uncertainty/objective.py`,
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
    """Weights that learn at one rate."""

    option: str
    """The option that sets the rate: `"learning_rate"` or `"head_learning_rate"`."""

    weights: Sequence[tuple[str, nn.Parameter]]
    """Each with its name."""

    rate: float
    """The highest rate."""


@final
@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is settled before the first update."""

    groups: Sequence[Group]
    """What learns; callbacks are told the rate of the first."""

    total: int
    """Updates that the schedule covers."""

    factor: Callable[[int], float]
    """The schedule: share of the highest rates at an update, counted from 0."""

    weight_decay: float
    """AdamW's, on all weights."""

    end: str = "epochs"
    """Why the run ends when all updates are made: `"epochs"` or `"max_steps"`."""

    epochs: int | None = None
    """Times that each row is seen; None where there are no rows."""

    training: Callable[[], AbstractContextManager[Any]] = nullcontext
    """The context of updates; looks that come after an update are outside of it."""

    noise: torch.Generator | None = None
    """What draws go on with from update to update, where they are no child seeds of its number."""

    look_every: int
    """Updates between two looks; after the last one there always is a look."""

    looks_first: bool = False
    """True for a look before the first update too."""

    judges_loss: bool = False
    """True where a look judges weights by the loss of the update under way, and so comes before they move; False where
    it comes after."""

    look: type[Any] | None = None
    """The class of its looks, a frozen dataclass with the field `step`; None where nothing is measured."""

    better: Callable[[Any, Any], bool] | None = None
    """Whether the weights of a look are to be kept rather than those of the best one so far, which is None at first;
    None: the last ones are kept."""

    patience: int | None = None
    """Looks in a row without a better one after which training stops; None: all updates are made."""

    told: Callable[[Any], dict[str, float]] | None = None
    """What callbacks and progress are told of a look; None: nothing."""


class Objective(Protocol):
    """What one kind of training is."""

    @property
    def plan(self) -> Plan:
        """What is settled before the first update."""
        ...

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        """Add the gradients of an update, counted from 0, and return its loss and named parts of it.

        Where the loss is not finite no gradient need be added.
        """
        ...

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> Any:
        """Measure, after so many updates.

        Args:
            made: updates made.
            losses: of every update so far.
            parts: those of the updates since the last look.

        Returns:
            One of the plan's class; None where nothing is measured and the last weights are kept.
        """
        ...


def check_finite(loss: float, what: str, step: int, plan: Plan) -> None:
    """Stop a training that has gone astray.

    Raises:
        TrainingError: the loss is not finite; the message names the option that helps.
    """
    if not math.isfinite(loss):
        raise diverged(f"{what} is {loss}", step, plan)


def diverged(what: str, step: int, plan: Plan) -> TrainingError:
    """Return the error of a training that has gone astray, with the rate to try."""
    first, *others = plan.groups
    also = "".join(f", a lower {group.option}" for group in others)
    return TrainingError(
        f"{what} at step {step} with {first.option}={first.rate:.1e}; use a lower one, for example "
        f"{first.option}={first.rate / 10:.0e}{also}, or an encoder with dtype='float32'."
    )
