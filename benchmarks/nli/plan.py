"""Binary or three-way heads for an NLI cross-encoder on a small encoder.

    python benchmarks/run.py nli --parts heads --minutes 20    # a training goes on in the next call
    python benchmarks/run.py nli --parts btzsc                 # trains a head that is missing

Parts: heads (both variants, two settings of the rates, three seeds; scores on NLI dev pairs), btzsc (the same heads on
its sets). Give all calls the same number of threads: it decides the last bits, so with another heads are trained anew.
"""

import argparse
import time
from pathlib import Path
from typing import Any

from runner import Study
from store import SCRATCH

from nli.heads import head_pieces
from nli.report import BLOCKS
from nli.sets import set_pieces
from nli.settings import Settings


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--models", type=Path, default=SCRATCH / "nli-heads", help="folder for trained heads")


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    sizes: dict[str, Any] = {}
    if options.small:
        sizes = {"max_pairs": 64, "epochs": 1, "stop_per_class": 2, "dev_per_class": 2, "rows": 20}
    ends = time.monotonic() + 60 * options.minutes
    return Settings.of(options, **common, ends=ends, **sizes)


STUDY = Study(
    name="nli",
    doc=__doc__,
    parts={"heads": head_pieces, "btzsc": set_pieces},
    blocks=BLOCKS,
    settings=settings,
    options=add_options,
)
