"""The guards of a consensus: whether a step is safe, and whether a view is heard, told from agreement alone."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.config import ConsensusConfig
from labelspace.consensus.agreement import Columns, kappa, near_agreement
from labelspace.geometry.neighbours import Graph

Table = NDArray[np.float64]

FAR = 2 / 3
"""A view that saw a part is left out if its agreement with the others is below this share of theirs."""

ONE_LABEL = "all documents have the same label"


@final
@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of the consensus."""

    name: str
    """What was done."""

    kept: bool
    """Whether it was kept."""

    reason: str
    """Why, in plain words."""

    changed: float
    """Share of the documents whose likeliest label it changed, or would have changed."""


@final
class Judge:
    """Decides whether a step is safe, and writes down why."""

    def __init__(self, config: ConsensusConfig, labels: int) -> None:
        self._config, self._labels = config, labels
        self.steps: list[Step] = []

    def kappa(self, one: Table, other: Table) -> float:
        """Return how often two views have the same likeliest label, beyond chance; 0 if all have the same label."""
        if alike(one):
            return 0.0
        return kappa(one.argmax(axis=1), other.argmax(axis=1), self._labels)

    def odd(self, view: Table, others: Sequence[Table]) -> str:
        """Return a reason to leave a view out that is far off several others, where these agree and it was asked."""
        rows = asked(view)
        pairs = [self.kappa(one[rows], other[rows]) for one, other in combinations(others, 2)]
        among = float(np.mean(pairs)) if pairs else 0.0
        own = float(np.mean([self.kappa(other[rows], view[rows]) for other in others])) if others else 0.0
        if self._low(among) or own >= FAR * among:
            return ""
        return f"agrees with the others far less (kappa {own:.2f}) than they with one another ({among:.2f})"

    def agreed(self, before: Table, view: Table) -> str:
        """Return the agreement in words."""
        return f"agrees with the answers before it (kappa {self.kappa(before, view):.2f})"

    def chance(self, before: Table, view: Table, *, words: bool = False) -> str:
        """Return a reason to leave a step out if it agrees with the answers so far hardly more than by chance.

        Args:
            before: [text label], the answers so far.
            view: [text label], the answers of the step.
            words: True: they are those of words, whose disagreement speaks against the next step too.
        """
        if alike(before):
            return ONE_LABEL
        found = self.kappa(before, view)
        who = "words agree too little with the answers" if words else "agrees too little with the answers before it"
        return f"{who} (kappa {found:.2f})" if self._low(found) else ""

    def scattered(self, logits: Table, graph: Graph) -> str:
        """Return a reason to leave all steps out if near documents have one label hardly more than by chance."""
        if alike(logits):
            return ONE_LABEL
        found, _ = near_agreement(logits.argmax(axis=1), graph, self._labels)
        return f"near documents agree too little (kappa {found:.2f})" if self._low(found) else ""

    def _low(self, agreement: float) -> bool:
        return agreement < self._config.min_agreement

    def keeps(self, name: str, before: Table, after: Table, against: str, *, reason: str = "") -> bool:
        """Record a step, and return whether it is kept.

        Args:
            name: what was done.
            before: [text label], the answers so far.
            after: [text label], the answers with the step.
            against: a reason to leave it out, or empty.
            reason: why it is kept; empty: its agreement with the answers before it.
        """
        against = against or self._swallows(before.argmax(axis=1), after.argmax(axis=1))
        kept = not (self._config.guards and against)
        self.record(name, before, after, against or reason or self.agreed(before, after), kept=kept)
        return kept

    def record(self, name: str, before: Table, after: Table, reason: str, *, kept: bool = True) -> None:
        """Write down a step."""
        changed = float((before.argmax(axis=1) != after.argmax(axis=1)).mean())
        self.steps.append(Step(name=name, kept=kept, reason=reason, changed=changed))

    def _swallows(self, before: Columns, after: Columns) -> str:
        """Return a reason if one label has most of the documents after a step, and had far fewer before it."""
        was, share = (np.bincount(each, minlength=self._labels) / len(each) for each in (before, after))
        swallows = ((share > 0.5) & (share - was > 0.2)).any()
        return "one label would have most of the documents" if swallows else ""


def alike(logits: Table) -> bool:
    """Return whether all documents have the same likeliest label."""
    return len(np.unique(logits.argmax(axis=1))) == 1


def asked(logits: Table) -> NDArray[np.bool_]:
    """Return which documents a view was asked about, [text]."""
    return ~np.isnan(logits[:, 0])
