"""What holds for all pieces of one call of the description-only study."""

from dataclasses import dataclass

import pieces


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """What holds for all pieces of one call."""

    max_steps: int = 60
    test_rows: int | None = 2000
    """At most so many scored rows, a fixed draw."""

    changes: tuple[str, ...] = ()
    """Of the ablations, these alone; none: all."""

    model_figures: bool = False
    """True: figures of a model too, which is trained first."""
