"""The description-only study: ablations, learning rates, few-shot rivals, a Chinese task, what readers asked.

    python benchmarks/run.py study --parts ablations --changes default --encoder all-mpnet-base-v2
    python benchmarks/run.py study --parts multilingual --encoder runs/multilingual-e5-small
    python benchmarks/run.py study --figures docs/figures --model-figures

`make .venv/.peers` installs SetFit.
"""

import argparse

from runner import Study

from study.ablations import CHANGES, ablation_pieces
from study.beyond import BLOCKS as BEYOND
from study.dictionary import dictionary_pieces
from study.multilingual import multilingual_pieces
from study.pictures import FIGURES, model_figures
from study.rates import rate_pieces
from study.report import BLOCKS
from study.rivals import curve_pieces, rival_pieces
from study.schedule import schedule_pieces
from study.settings import Settings
from study.transfer import transfer_pieces
from study.unequal import unequal_pieces


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--pooling", choices=("cls", "mean"), help="in place of the encoder's own")
    parser.add_argument("--changes", nargs="+", default=[], choices=[c.name for c in CHANGES], help="ablations to run")
    parser.add_argument("--max-steps", type=int, default=Settings.max_steps)
    parser.add_argument("--test-rows", type=int, default=Settings.test_rows, help="maximum, a fixed sample")
    parser.add_argument("--model-figures", action="store_true", help="with --figures: also those of a trained model")


STUDY = Study(
    name="study",
    doc=__doc__,
    parts={
        "ablations": ablation_pieces,
        "rates": rate_pieces,
        "curve": curve_pieces,
        "rivals": rival_pieces,
        "schedule": schedule_pieces,
        "transfer": transfer_pieces,
        "unequal": unequal_pieces,
        "dictionary": dictionary_pieces,
        "multilingual": multilingual_pieces,
    },
    blocks=BLOCKS | BEYOND,
    figures=FIGURES,
    more_figures=lambda own, folder: model_figures(own, folder) if own.model_figures else (),
    settings=Settings.of,
    options=add_options,
)
