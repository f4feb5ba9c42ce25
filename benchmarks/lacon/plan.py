"""The experiments of LaCon.

    python benchmarks/run.py lacon --parts main few           # tables 2 and 4
    python benchmarks/run.py lacon --full --minutes 600       # the paper's protocol

Parts: main (tables 2 and 7), few (table 4, figure 2), imbalance (figure 3, table 5), ablation (tables 3 and 6),
classes (figure 6), grid (figure 5), tuning and tuned (sets of table 2 whole, rate and temperature chosen), tsne
(figure 4), curve (zero labels to 64), setfit (SetFit's curve, truncated), setfit-whole (truncated runs with the full
schedule, if it is short enough), setfit-default (SetFit's package defaults), speed. The protocol is in
`lacon/protocol.py`; each row records it, and one table holds one protocol.
"""

import argparse
from typing import Any

from runner import Study

from lacon.cost import speed_pieces
from lacon.curve import curve_pieces
from lacon.experiments import ablation_pieces, class_pieces, few_pieces, grid_pieces, imbalance_pieces, main_pieces
from lacon.pictures import FIGURES
from lacon.protocol import PAPER, SMALL, Settings, changed
from lacon.report import BLOCKS
from lacon.setfit_curve import default_pieces, setfit_pieces, whole_pieces
from lacon.tsne import tsne_pieces
from lacon.tuned import tuned_pieces, tuning_pieces


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--pooling", choices=("mean", "cls"), help="default: the encoder's own; the paper has cls")
    parser.add_argument("--repeats", type=int, help="seeds of every part; default: 1 to 5 by part, with --full 10")
    for name, value in SMALL.to_dict().items():
        if name != "validation":
            kind = float if name.endswith("rate") else int
            parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"default: {value}")


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    return Settings.of(options, **common, protocol=changed(PAPER if options.full else SMALL, vars(options)))


STUDY = Study(
    name="lacon",
    doc=__doc__,
    parts={
        "main": main_pieces,
        "few": few_pieces,
        "imbalance": imbalance_pieces,
        "ablation": ablation_pieces,
        "classes": class_pieces,
        "grid": grid_pieces,
        "tuning": tuning_pieces,
        "tuned": tuned_pieces,
        "tsne": tsne_pieces,
        "speed": speed_pieces,
        "curve": curve_pieces,
        "setfit": setfit_pieces,
        "setfit-whole": whole_pieces,
        "setfit-default": default_pieces,
    },
    blocks=BLOCKS,
    figures=FIGURES,
    settings=settings,
    options=add_options,
    without_data=("speed",),
)
