"""Settings of all pieces of one call."""

from dataclasses import dataclass
from pathlib import Path

import pieces
from store import ENCODER, ROOT


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    test_rows: int = 2000
    """Maximum scored rows, a fixed sample."""

    documents: int = 3000
    """Documents of the pool, drawn from the train rows."""

    seeds: int = 5
    """Draws of five of the ten descriptions of each label."""

    cache: Path = ROOT / "runs" / "views"
    """What encoders saw is kept here, so that every variant of a consensus starts from the same views."""

    llm: Path | None = None
    """A GGUF file, or the folder of a language model, for the part `third`."""

    @property
    def encoders(self) -> tuple[str, ...]:
        """MiniLM, and the other encoder if one is given."""
        return (ENCODER,) if Path(self.encoder).name == Path(ENCODER).name else (ENCODER, self.encoder)
