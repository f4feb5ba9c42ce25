"""Settings of the pre-finetuning study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pieces

SEEDS = (0, 1, 2)
SIZES = (100, 500, 1000)
SCORED_IN = "float32"
"""Dtype of scoring, as in the paper (appendix B); training uses the encoder's own precision."""


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call. The defaults fit one core; `--full` uses all pairs and a mix per target."""

    encoders: Path
    """Folder of the pre-finetuned encoders; missing ones are made again."""

    per_source: int | None = 1000
    """Maximum pairs of each source, one sample for all methods and seeds; None: all."""

    test_rows: int | None = 1000
    """Maximum scored texts or queries, one sample; None: all."""

    max_tokens: int | None = 128
    """Maximum tokens of a text, in training and scoring; None: the encoder's maximum."""

    per_target: bool = False
    """True: a mix for each target that excludes it, as in the paper; False: one mix per domain that excludes all
    targets scored then, see `sets.SCORED`."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the repeats, for pre-finetuning, the rows of a target, and fine-tuning."""
        return SEEDS[:1] if self.small else SEEDS

    def facts(self, **more: Any) -> dict[str, Any]:
        """Return the facts of every result: encoder and sizes."""
        protocol = {
            "per_source": self.per_source,
            "test_rows": self.test_rows,
            "max_tokens": self.max_tokens,
            "scored in": f"{SCORED_IN} (main, sweep)",
            "left out of the mix": "the target" if self.per_target else "the scored targets of the domain",
        }
        return {"encoder": self.short, **more, "protocol": protocol}
