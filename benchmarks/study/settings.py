"""What holds for all pieces of one call of run_study.py."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Settings:
    """What holds for all pieces of one call."""

    data: Path
    out: Path
    encoder: str = "all-MiniLM-L6-v2"
    pooling: str | None = None
    max_steps: int = 60
    test_rows: int | None = 2000
    changes: tuple[str, ...] = ()
    """Of the ablations, these alone; none: all."""

    small: bool = False

    @property
    def short(self) -> str:
        """The encoder's name without the way to it, and the pooling where it is not its own."""
        name = Path(self.encoder).name
        return f"{name}-{self.pooling}" if self.pooling else name
