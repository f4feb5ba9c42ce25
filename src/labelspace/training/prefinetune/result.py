"""The record of a pre-finetuning run, as one value."""

from dataclasses import asdict, dataclass
from typing import Any, final

from labelspace.config import PrefinetuneConfig
from labelspace.notebook import Report
from labelspace.text_table import text_table
from labelspace.training.engine import Training
from labelspace.training.prefinetune.measures import Measures

_BETTER = {
    "uniformity": "lower is better spread",
    "alignment": "lower is nearer",
    "isoscore": "higher is more isotropic",
}


@final
@dataclass(frozen=True, kw_only=True)
class PrefinetuneResult(Report):
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

    def to_text(self) -> str:
        """Return a report: the pairs and the training, the space before and after, and the notes."""
        training, sources = self.training, len(self.pairs)
        first, last = training.looks[0], training.looks[-1]
        did = [
            ("pairs", f"{sum(self.pairs.values()):,} of {sources} source{'' if sources == 1 else 's'}"),
            ("steps", f"{training.best_step} of {training.total_steps}, in {training.seconds:,.0f} s"),
            ("loss", f"{first.loss:.4f} -> {last.loss:.4f}"),
        ]
        if first.regularizer is not None and last.regularizer is not None:
            did.append(("regularizer", f"{first.regularizer:.4f} -> {last.regularizer:.4f}"))
            shrunk = f"{self.shrunk_directions} of {self.active} active ones, of {self.relation_width}"
            did.append(("directions shrunk", shrunk))
        space = [("", "before", "after", ""), *((*row, _BETTER.get(row[0], "")) for row in self.table())]
        on = f"on {self.measured_pairs:,} {self.measured_on}"
        notes = ["", *(f"note: {line}" for line in self.notes)] if self.notes else []
        return "\n".join([text_table(did, left=(0, 1)), "", on, text_table(space, left=(0, 3)), *notes])


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4f}"
