"""How much of everything: what two cores do in a few hours, or the protocol of the paper.

Hours of each part on one core stand in the table of the page; a repeat of table 2 alone takes more than one. The paper
asks for no curve.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

import pieces

# Repeats of the default protocol. Table 2 has seven data sets in English to test over.
REPEATS: Mapping[str, int] = {"main": 2, "few": 3, "imbalance": 1, "ablation": 1, "classes": 1, "grid": 1}
PAPER_REPEATS = 10
CURVE_SEEDS = 5
CURVE_OPTIONS = ("curve_rows", "description_steps", "setfit_steps")
"""What the curve has of the protocol; LaCon itself is there as it comes."""


@dataclass(frozen=True, kw_only=True)
class Protocol:
    """What a run trains and scores on. The defaults fit two cores; `PAPER` is section 3.1."""

    rows: int | None = 1024
    """Labelled rows of a run, as many of each class as it has room for; None: the paper's 5,000 of each of two
    classes or 1,000 of each of more, and all of MRPC, RTE and CoLA. 256 teach the small encoder no set of
    pairs but QQP."""

    test_rows: int | None = 500
    """At most so many scored rows, one draw for all runs; None: all."""

    max_tokens: int | None = 64
    """Texts, and pairs, are cut here; None: where the encoder cuts them. The paper does not say."""

    epochs: int = 3
    """Times that each row is seen."""

    few_epochs: int = 12
    """The same where rows are few or their number differs: table 4, figures 2, 3 and 6; 20 in section 4.1."""

    learning_rate: float = 1e-4
    """Of the encoder. The paper's 1e-5 to 3e-5 are for thousands of updates of a larger encoder; 200 updates of a small
    one are over before those rates move it. Chosen beforehand and the same for all methods; nothing was searched."""

    head_learning_rate: float = 1e-3
    """Of what stands on it."""

    batch_size: int = 16
    """Rows of an update; the paper searches 8 to 96."""

    validation: float = 0.0
    """Share held out for early stopping; the paper's 5 % of 1,024 rows are 51, too few to choose by."""

    curve_rows: int | None = 1000
    """At most so many scored rows of the curve."""

    description_steps: int = 60
    """Updates of description-only training, as in the description-only study."""

    setfit_steps: int | None = 100
    """SetFit stops after so many updates of 16 pairs; None: 20 pairs of each kind for each text, as in its paper."""

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
    """What holds for all pieces of one call; the paper reads [CLS], so its pooling is `"cls"`."""

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
        """Return what goes into every result: the encoder and the protocol."""
        return {"encoder": self.short, **more, "protocol": self.protocol.to_dict()}

    def curve_facts(self, **more: Any) -> dict[str, Any]:
        """Return the same for the curve."""
        protocol = self.protocol.to_dict()
        return self.facts(**more) | {"protocol": {name: protocol[name] for name in CURVE_OPTIONS}}


def changed(protocol: Protocol, options: Mapping[str, Any]) -> Protocol:
    """Return the protocol with the options that were given; None is one that was not."""
    names = {one.name for one in fields(Protocol)}
    return replace(protocol, **{name: value for name, value in options.items() if name in names and value is not None})
