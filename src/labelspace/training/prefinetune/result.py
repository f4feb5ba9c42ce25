"""The record of a pre-finetuning run, as one value."""

from dataclasses import asdict, dataclass
from typing import Any, final

from labelspace.config import PrefinetuneConfig
from labelspace.training.engine import Training
from labelspace.training.prefinetune.measures import Measures


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneResult:
    """Result of `prefinetune`: enough to judge the run and to repeat it."""

    training: Training
    """The training run."""

    before: Measures
    """The encoder's space before training."""

    after: Measures | None
    """The space after training; None if measuring was interrupted or failed."""

    drift: float | None
    """Mean cosine distance between a text's vectors before and after."""

    neighbours_kept: float | None
    """Share of each text's nearest neighbours that remain so."""

    neighbours: int | None
    """Number of nearest neighbours compared."""

    measured_on: str
    """`"pairs held aside"`, or `"training pairs"` if there were too few to hold any aside."""

    measured_pairs: int
    """Number of pairs measured on."""

    active: int | None
    """Directions that may be shrunk (eq. 3); None without the regularizer, like the three below."""

    shrunk_directions: int | None
    """Directions along which any source is shrunk."""

    shrunk_factors: int | None
    """Factors below 1, over all sources and directions (eq. 6)."""

    relation_width: int | None
    """Number of directions: twice the width of the encoder."""

    pairs: dict[str, int]
    """Training pairs of each source."""

    pairs_seen: dict[str, int]
    """Pairs of each source before the draw, with repetitions."""

    max_tokens: int
    """Longest text in tokens during training."""

    encoder: dict[str, Any]
    """The original encoder: name, source, sizes, prompts."""

    config: PrefinetuneConfig
    """All options."""

    seed: int
    """The seed of the run."""

    notes: tuple[str, ...] = ()
    """Remarks beside the numbers."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        # Leave out the losses of perhaps a hundred thousand updates; the looks hold their means.
        training = {name: value for name, value in self.training.to_dict().items() if name != "losses"}
        return {**asdict(self), "training": training, "notes": list(self.notes)}

    def table(self) -> list[tuple[str, str, str]]:
        """Return the measurements as rows of text: name, before, after."""
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
