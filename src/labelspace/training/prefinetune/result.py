"""All that is to be said of a pre-finetuning, as one value."""

from dataclasses import asdict, dataclass
from typing import Any, final

from labelspace.config import PrefinetuneConfig
from labelspace.training.engine import Training
from labelspace.training.prefinetune.measures import Measures


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneResult:
    """What `prefinetune` did: everything needed to tell a good run from a bad one, and to repeat it."""

    training: Training
    """The updates, and the loss on the way."""

    before: Measures
    """The space of the encoder as it came."""

    after: Measures | None
    """The space afterwards; None where measuring was interrupted."""

    drift: float | None
    """Mean cosine distance of each text from where the encoder that came had it."""

    neighbours_kept: float | None
    """Share of the nearest texts of each text that are still the nearest."""

    neighbours: int | None
    """How many of the nearest are looked at."""

    measured_on: str
    """`"pairs held aside"`, or `"training pairs"` where there were too few to hold any aside."""

    measured_pairs: int
    """How many of them."""

    active: int | None
    """Directions that may be shrunk (eq. 3); None without the regularizer, as the three below."""

    shrunk_directions: int | None
    """Directions along which any source is shrunk."""

    shrunk_factors: int | None
    """Factors of all sources and directions that are below 1 (eq. 6)."""

    relation_width: int | None
    """Directions there are: twice the width of the encoder."""

    pairs: dict[str, int]
    """Pairs of each source that were trained on."""

    pairs_seen: dict[str, int]
    """Pairs that each source had, with repetitions, before any were drawn."""

    max_tokens: int
    """Tokens of a text that were read in training."""

    encoder: dict[str, Any]
    """The encoder that came: name, source, sizes, prompts."""

    config: PrefinetuneConfig
    """All options."""

    seed: int
    """Of everything random."""

    notes: tuple[str, ...] = ()
    """What should be known beside the numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        # The looks have the means of the losses, which are one for each of perhaps a hundred thousand updates.
        training = {name: value for name, value in self.training.to_dict().items() if name != "losses"}
        return {**asdict(self), "training": training, "notes": list(self.notes)}

    def table(self) -> list[tuple[str, str, str]]:
        """Return what is known before and after as rows of text: name, before, after."""
        after = self.after
        rows = [
            (name, _number(getattr(self.before, name)), _number(None if after is None else getattr(after, name)))
            for name in ("uniformity", "alignment", "isoscore")
        ]
        rows.append(("drift", "", _number(self.drift)))
        rows.append((f"nearest {self.neighbours or ''} kept".replace("  ", " "), "", _number(self.neighbours_kept)))
        return rows


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
