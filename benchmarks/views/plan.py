"""The consensus study: views of unlabelled train rows, scored on test rows, without a label in any choice.

python benchmarks/run.py consensus                                       # MiniLM and words
python benchmarks/run.py consensus --encoder runs/all-mpnet-base-v2      # MiniLM, mpnet and words
python benchmarks/run.py consensus --parts student                       # students of the same
"""

import argparse
from typing import Any

from runner import Study

from views.experiments import Settings, consensus_pieces, student_pieces
from views.report import BLOCKS


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--test-rows", type=int, default=Settings.test_rows, help="maximum, a fixed sample")
    parser.add_argument("--documents", type=int, default=Settings.documents, help="size of the pool")
    parser.add_argument("--seeds", type=int, default=Settings.seeds, help="draws of descriptions")


def settings(options: argparse.Namespace, **common: Any) -> Settings:
    """Make the settings from the options."""
    return Settings(**common, test_rows=options.test_rows, documents=options.documents, seeds=options.seeds)


STUDY = Study(
    name="consensus",
    doc=__doc__,
    parts={"consensus": consensus_pieces, "student": student_pieces},
    on_request=("student",),
    blocks=BLOCKS,
    settings=settings,
    options=add_options,
)
