"""REZE's experiments.

    python benchmarks/run.py prefinetune --parts encoders main --minutes 600
    python benchmarks/run.py prefinetune --full --minutes 6000    # all pairs, a mix for each target, whole texts
    python benchmarks/run.py prefinetune --encoder all-mpnet-base-v2 --parts quarter

Parts: encoders (figure 3), maps (figure 4), descriptions (ours), main (tables 2, 3 and 5 to 7), sweep (figure 2),
quarter (one finance mix of fewer pairs, for costlier encoders too), targets (scores of guessing). Every part makes the
encoders that it needs if they are missing. Two controls are added to the paper's methods: REZE without shrinking, and a
mix without the sources that share a target's labels.
"""

import argparse
from pathlib import Path
from typing import Any

from runner import Study
from store import SCRATCH

from prefinetune.descriptions import description_pieces
from prefinetune.encoders import encoder_pieces
from prefinetune.experiments import main_pieces, sweep_pieces
from prefinetune.maps import map_pieces
from prefinetune.pictures import FIGURES
from prefinetune.quarter import quarter_pieces
from prefinetune.report import BLOCKS
from prefinetune.settings import Settings
from prefinetune.target_facts import target_pieces


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--encoders", type=Path, default=SCRATCH / "prefinetuned", help="folder for encoders")


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    sizes: dict[str, Any] = {}
    if options.full:
        sizes = {"per_source": None, "test_rows": None, "max_tokens": None, "per_target": True}
    elif options.small:
        sizes = {"per_source": 16, "test_rows": 100}
    return Settings.of(options, **common, **sizes)


STUDY = Study(
    name="prefinetune",
    doc=__doc__,
    parts={
        "encoders": encoder_pieces,
        "maps": map_pieces,
        "descriptions": description_pieces,
        "main": main_pieces,
        "sweep": sweep_pieces,
        "quarter": quarter_pieces,
        "targets": target_pieces,
    },
    blocks=BLOCKS,
    figures=FIGURES,
    settings=settings,
    options=add_options,
)
