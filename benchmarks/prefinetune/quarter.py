"""The finance mix with a quarter of its pairs: short enough to run once with an encoder eight times as costly.

The pieces are those of the other parts, with fewer pairs, one seed and the fewest rows of each target.
"""

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain

from pieces import Piece

from prefinetune.descriptions import description_pieces
from prefinetune.encoders import encoder_pieces
from prefinetune.experiments import UNTUNED, main_pieces
from prefinetune.sets import TARGETS, UNNAMED_MIX
from prefinetune.settings import SEEDS, SIZES, Settings

DOMAIN = "finance"
PAIRS = 250
"""Maximum pairs of each source."""

QUARTERED = ("pft", "reze", "reze-printed")
"""The encoders that are made."""

STARTS = (UNTUNED, "base", *QUARTERED, f"pft-{UNTUNED}", f"reze-{UNTUNED}")


def quarter_pieces(settings: Settings) -> Iterator[Piece]:
    """Make the encoders first, then score each by descriptions and with the fewest rows of each target."""
    there = replace(settings, per_source=min(PAIRS, settings.per_source or PAIRS))
    for piece in chain(encoder_pieces(there), description_pieces(there), main_pieces(there)):
        facts = piece.facts
        domain = TARGETS[facts["target"]].domain if "target" in facts else facts["mix"].partition("-without-")[0]
        starts = facts.get("start") in STARTS or facts.get("method") in QUARTERED
        fewest = facts.get("rows_wanted", min(SIZES)) == min(SIZES)
        named = facts.get("mix") != UNNAMED_MIX
        if domain == DOMAIN and starts and named and fewest and facts["seed"] == SEEDS[0]:
            yield replace(piece, part="quarter")
