"""A minimal objective: a line through points, with a noise generator shared by all updates."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from labelspace.training.objective import Group, Plan


@dataclass(frozen=True, kw_only=True)
class ToyLook:
    """The toy's look."""

    step: int
    value: float


class Toy:
    """Learns y = 2x; the values of its looks can be given.

    Args:
        total: number of updates.
        every: updates between two looks.
        values: one per look; None: the distance of the weight from 2.
        options: fields of the plan.
    """

    def __init__(self, total: int = 12, every: int = 2, values: Sequence[float] | None = None, **options: Any) -> None:
        self.weight = nn.Parameter(torch.zeros(1))
        self.every, self.values = every, values
        self.updates: list[int] = []
        self.plan = Plan(
            groups=[Group("learning_rate", [("weight", self.weight)], 0.1)],
            total=total,
            factor=lambda step: 1 - step / total,
            weight_decay=0.01,
            look_every=every,
            look=ToyLook,
            better=lambda look, best: best is None or look.value < best.value,
            told=lambda look: {"distance": look.value},
            noise=torch.Generator().manual_seed(1),
            **options,
        )

    def update(self, step: int) -> tuple[float, dict[str, float]]:
        self.updates.append(step)
        x = torch.randn(8, generator=self.plan.noise)
        loss = ((self.weight * x - 2 * x) ** 2).mean()
        loss.backward()
        return loss.item(), {"step": float(step)}

    def look(self, made: int, losses: Sequence[float], parts: Sequence[dict[str, float]]) -> ToyLook:
        assert len(parts) <= len(losses)
        if self.values is not None:
            return ToyLook(step=made, value=self.values[(made - 1) // self.every])
        return ToyLook(step=made, value=abs(self.weight.item() - 2))
