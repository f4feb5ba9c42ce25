"""Settings of the uncertainty study."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pieces

from uncertainty.sets import revision

SEEDS = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call. By default all rows, truncated for two cores; `--full` truncates at 512."""

    states: Path
    """Folder of the token states shared by runs."""

    answers: Path
    """Folder of main's row-by-row answers, read by part `compared`; not part of the results."""

    rows: int | None = None
    """Labelled rows to train on, one stratified sample for all seeds; None: all."""

    test_rows: int | None = None
    """Scored rows, one sample; None: all."""

    max_tokens: int | None = 128
    """Maximum tokens of a text; None: the encoder's maximum, 512 in the paper."""

    @property
    def seeds(self) -> tuple[int, ...]:
        """Seeds of the repeats."""
        return SEEDS[:1] if self.small else SEEDS

    def facts(self, name: str, **more: Any) -> dict[str, Any]:
        """Return the facts of every result on a set: encoder, data, and sizes."""
        protocol = {"rows": self.rows, "test_rows": self.test_rows, "max_tokens": self.max_tokens}
        which = {"set": name, "revision": revision(self.data / "mteb" / name)}
        return {"encoder": self.short, **which, **more, "protocol": protocol}
