"""What holds for all pieces of one call of the uncertainty study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pieces

from uncertainty.sets import revision

SEEDS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """How much of everything: all rows that are here, texts cut where two cores can follow; `--full` cuts at 512."""

    states: Path
    """Folder of the token states that runs share."""

    answers: Path
    """Folder of what main's runs answered row by row, which part `compared` reads; it is no part of the results."""

    rows: int | None = None
    """Labelled rows to train on, one draw for all seeds, as many of each class as its share; None: all."""

    test_rows: int | None = None
    """Scored rows, one draw; None: all."""

    max_tokens: int | None = 128
    """Texts are cut here; None: where the encoder cuts them, 512 in the paper."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the repeats."""
        return SEEDS[:1] if self.small else SEEDS

    def facts(self, name: str, **more: Any) -> dict[str, Any]:
        """Return what goes into every result on a set: the encoder, which data, and how much of everything."""
        protocol = {"rows": self.rows, "test_rows": self.test_rows, "max_tokens": self.max_tokens}
        which = {"set": name, "revision": revision(self.data / "mteb" / name)}
        return {"encoder": self.short, **which, **more, "protocol": protocol}
