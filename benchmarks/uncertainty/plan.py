"""The experiments of the uncertainty-aware paper.

    python benchmarks/run.py uncertainty --parts main --encoder all-mpnet-base-v2
    python benchmarks/run.py uncertainty --full --minutes 600    # 512 tokens of each text
    python benchmarks/run.py uncertainty --parts cost            # on an otherwise idle machine

Parts: choice (learning rates and weights, on train rows only), main (tables 2, 3, 7), ablations (tables 4, 7, 8), grid
(figure 3), deviation (its form, the sum of KL, what ranks documents; with --full IMDB alone), cases (figure 7),
compared (main's answers row by row: gains, areas, figure 5), usage (calibration and abstention with defaults). The
part cost (table 5, epochs) needs an idle machine, so it is run only if --parts names it. Chosen options are runs of
main and ablations too: the first call after choice is complete runs them.
"""

import argparse
from pathlib import Path
from typing import Any

from runner import Study
from store import SCRATCH

from uncertainty import differences, report
from uncertainty.cases import cases_pieces
from uncertainty.choose import choice_pieces
from uncertainty.compared import compared_pieces
from uncertainty.cost import cost_pieces
from uncertainty.deviation import deviation_pieces
from uncertainty.experiments import ablation_pieces, grid_pieces, main_pieces
from uncertainty.pictures import FIGURES
from uncertainty.selection import waiting
from uncertainty.settings import Settings
from uncertainty.usage import usage_pieces


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--states", type=Path, default=SCRATCH / "token-states", help="folder for token states")
    parser.add_argument("--answers", type=Path, default=SCRATCH / "answers", help="folder for answers row by row")


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    tokens = 512 if options.full else Settings.max_tokens
    return Settings.of(options, **common, max_tokens=tokens)


def note(settings: Settings, parts: list[str]) -> str:
    """Name the variants that were not run because choices are missing."""
    late = waiting(settings, parts) if settings.data.is_dir() else []
    words = f"not run: {', '.join(late)}; they want all of part choice for {settings.short}. Run that, then these."
    return words if late else ""


STUDY = Study(
    name="uncertainty",
    doc=__doc__,
    parts={
        "choice": choice_pieces,
        "main": main_pieces,
        "ablations": ablation_pieces,
        "grid": grid_pieces,
        "deviation": deviation_pieces,
        "cases": cases_pieces,
        "compared": compared_pieces,
        "usage": usage_pieces,
        "cost": cost_pieces,
    },
    blocks={**report.BLOCKS, **differences.BLOCKS},
    figures=FIGURES,
    settings=settings,
    options=add_options,
    on_request=("cost",),
    without_data=("cost",),
    note=note,
)
