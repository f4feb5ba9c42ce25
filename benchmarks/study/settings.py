"""Settings of the description-only study."""

from dataclasses import dataclass

import pieces


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    max_steps: int = 60
    test_rows: int | None = 2000
    """Maximum scored rows, a fixed sample."""

    prompt: str | None = None
    """Prefix of every text and label, in place of the encoder's own prompts."""

    changes: tuple[str, ...] = ()
    """Ablations to run; empty: all."""

    model_figures: bool = False
    """True: also train a model and draw its figures."""
