"""Settings of the study of NLI heads."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pieces

SEEDS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    models: Path
    """Folder of the trained heads; missing ones are trained."""

    ends: float = math.inf
    """Value of `time.monotonic()` after which a training stops, to go on in the next call."""

    max_pairs: int | None = 24_000
    """Maximum training pairs, drawn at random; None: all 95,640, with which each of 12 heads takes up to two hours."""

    epochs: int = 3
    """Maximum epochs, as in the paper."""

    max_tokens: int = 128
    """Maximum tokens of a training pair."""

    stop_per_class: int = 60
    """Dev pairs of each class and source whose loss stops training: the default of `labelspace train-nli`."""

    dev_per_class: int = 1000
    """Maximum dev pairs of each class and source on which heads are compared."""

    rows: int = 1000
    """Maximum rows of each set of BTZSC, as in the paper."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the repeats: new weights of the head, order of the pairs, dropout."""
        return SEEDS[:1] if self.small else SEEDS

    def facts(self, protocol: tuple[str, ...], **more: Any) -> dict[str, Any]:
        """Return the facts of a result: encoder, and the settings that decide it."""
        return {"encoder": self.short, **more, "protocol": {name: getattr(self, name) for name in protocol}}
