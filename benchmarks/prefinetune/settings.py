"""What holds for all pieces of one call of the pre-finetuning study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pieces

SEEDS = (0, 1, 2)
SIZES = (100, 500, 1000)
SCORED_IN = "float32"
"""As in the paper (appendix B): trained in the encoder's own precision, scored in this one."""


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """How much of everything. The defaults fit one core; `--full` takes all pairs and a mix for each target."""

    encoders: Path
    """Folder of the pre-finetuned encoders; each is made again where it is missing."""

    per_source: int | None = 1000
    """At most so many pairs of each source, one draw for all methods and seeds; None: all."""

    test_rows: int | None = 1000
    """At most so many scored texts or queries, one draw; None: all."""

    max_tokens: int | None = 128
    """Texts are cut here, in training and when they are scored; None: where the encoder cuts them."""

    per_target: bool = False
    """True: a mix for each of all targets without that one, as in the paper; False: one for a domain without any of
    those that are scored then, see `sets.SCORED`."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the repeats: of pre-finetuning, of the rows of a target and of fine-tuning alike."""
        return SEEDS[:1] if self.small else SEEDS

    def facts(self, **more: Any) -> dict[str, Any]:
        """Return what goes into every result: the encoder and how much of everything."""
        protocol = {
            "per_source": self.per_source,
            "test_rows": self.test_rows,
            "max_tokens": self.max_tokens,
            "scored in": f"{SCORED_IN} (main, sweep)",
            "left out of the mix": "the target" if self.per_target else "the scored targets of the domain",
        }
        return {"encoder": self.short, **more, "protocol": protocol}
