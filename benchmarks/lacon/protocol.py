"""Numbers of rows, updates and repeats: for a few hours on two cores, or the paper's protocol.

The page has a table with the hours of each part on one core; a repeat of table 2 takes more than one. The curve is not
in the paper.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import pieces

# Repeats of the default protocol. Table 2 has seven English data sets to test over.
REPEATS: Mapping[str, int] = {"main": 2, "few": 3, "imbalance": 1, "ablation": 1, "classes": 1, "grid": 1, "tuned": 5}
PAPER_REPEATS = 10
CURVE_SEEDS = 5
CURVE_OPTIONS = ("curve_rows", "description_steps", "setfit_steps")
"""Options of the protocol that apply to the curve; LaCon itself has its defaults there."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """Sizes and training options of a run. The defaults fit two cores; `PAPER` is section 3.1."""

    rows: int | None = 1024
    """Labelled rows of a run, equally many of each class; None: the paper's 5,000 per class for two classes, 1,000 for
    more, and all rows of MRPC, RTE and CoLA. With 256 the small encoder learns no set of pairs but QQP."""

    test_rows: int | None = 500
    """Maximum scored rows, one sample for all runs; None: all."""

    max_tokens: int | None = 64
    """Maximum tokens of a text or pair; None: the encoder's maximum. The paper does not say."""

    epochs: int = 3
    """Epochs."""

    few_epochs: int = 12
    """Epochs with few or varying numbers of rows: table 4, figures 2, 3 and 6; 20 in section 4.1."""

    learning_rate: float = 1e-4
    """Learning rate of the encoder. The paper's 1e-5 to 3e-5 suit thousands of updates of a larger encoder; they hardly
    change a small one in 200 updates. Fixed in advance for all methods, without a search."""

    head_learning_rate: float = 1e-3
    """Learning rate of the head."""

    batch_size: int = 16
    """Rows per update; the paper searches 8 to 96."""

    validation: float = 0.0
    """Share held out for early stopping. The paper's 5 % of 1,024 rows would be 51, too few to select by."""

    curve_rows: int | None = 1000
    """Maximum scored rows of the curve."""

    description_steps: int = 60
    """Updates of description-only training, as in the description-only study."""

    setfit_steps: int | None = 100
    """Maximum updates of SetFit, 16 pairs each; None: 20 pairs of each kind for each text, as in its paper."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)

    def training(self, **changes: Any) -> dict[str, Any]:
        """Return the options that every method shares."""
        shared = ("epochs", "learning_rate", "head_learning_rate", "batch_size", "validation")
        return {name: getattr(self, name) for name in shared} | changes


SMALL = Protocol()
PAPER = Protocol(
    rows=None,
    test_rows=None,
    max_tokens=128,
    epochs=10,
    few_epochs=20,
    learning_rate=2e-5,
    head_learning_rate=2e-5,
    validation=0.05,
    curve_rows=None,
    setfit_steps=None,
)


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call; the paper's pooling is `"cls"`."""

    protocol: Protocol = field(default=SMALL)
    full: bool = False
    repeats: int | None = None

    def seeds(self, part: str) -> tuple[int, ...]:
        """Return the seeds of a part's repeats."""
        count = PAPER_REPEATS if self.full else REPEATS[part]
        if self.small:
            count = 1
        return tuple(range(self.repeats or count))

    @property
    def curve_seeds(self) -> tuple[int, ...]:
        """Return the seeds of the learning curve."""
        return tuple(range(self.repeats or (1 if self.small else CURVE_SEEDS)))

    def facts(self, **more: Any) -> dict[str, Any]:
        """Return the facts of every result: encoder and protocol."""
        return {"encoder": self.short, **more, "protocol": self.protocol.to_dict()}

    def curve_facts(self, **more: Any) -> dict[str, Any]:
        """Return the facts of every result of the curve."""
        protocol = self.protocol.to_dict()
        return self.facts(**more) | {"protocol": {name: protocol[name] for name in CURVE_OPTIONS}}


def changed(protocol: Protocol, options: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the given options; None leaves an option unchanged."""
    names = {one.name for one in fields(Protocol)}
    return replace(protocol, **{name: value for name, value in options.items() if name in names and value is not None})
