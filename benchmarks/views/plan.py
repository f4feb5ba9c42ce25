"""The consensus study: views of unlabelled train rows, scored on test rows, without a label in any choice.

python benchmarks/run.py consensus                                       # MiniLM and words
python benchmarks/run.py consensus --encoder runs/all-mpnet-base-v2      # MiniLM, mpnet and words
python benchmarks/run.py consensus --parts student                       # students of the same
python benchmarks/run.py consensus --parts third --encoder runs/all-mpnet-base-v2 --llm FILE.gguf

Encoders look at a set once; what they saw is kept in `runs/views`. The other variants start from there.
"""

import argparse
from pathlib import Path

from runner import Study

from views.experiments import (
    consensus_pieces,
    cost_pieces,
    examples_pieces,
    intents_pieces,
    pools_pieces,
    sets_pieces,
    sizes_pieces,
    student_pieces,
)
from views.fitting import none_consensus_pieces, none_pieces, probabilities_pieces
from views.report import BLOCKS
from views.settings import Settings
from views.third import third_pieces


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of this study."""
    parser.add_argument("--test-rows", type=int, default=Settings.test_rows, help="maximum, a fixed sample")
    parser.add_argument("--documents", type=int, default=Settings.documents, help="size of the pool")
    parser.add_argument("--cache", type=Path, default=Settings.cache, help="what encoders saw is kept here")
    parser.add_argument("--llm", type=Path, help="part third: a GGUF file, or the folder of a language model")
    parser.add_argument("--seeds", type=int, default=Settings.seeds, help="draws of descriptions")


STUDY = Study(
    name="consensus",
    doc=__doc__,
    parts={
        "consensus": consensus_pieces,
        "sets": sets_pieces,
        "sizes": sizes_pieces,
        "intents": intents_pieces,
        "pools": pools_pieces,
        "examples": examples_pieces,
        "none": none_pieces,
        "none-consensus": none_consensus_pieces,
        "probabilities": probabilities_pieces,
        "student": student_pieces,
        "third": third_pieces,
        "cost": cost_pieces,
    },
    on_request=("student", "third", "cost"),
    blocks=BLOCKS,
    settings=Settings.of,
    options=add_options,
)
