"""REZE's experiments, piece by piece: what has its result file is skipped.

    python benchmarks/run_prefinetune.py                              # what is missing, until 20 minutes are up
    python benchmarks/run_prefinetune.py --parts encoders main --minutes 600
    python benchmarks/run_prefinetune.py --full --minutes 6000        # all pairs, a mix for each target, whole texts
    python benchmarks/run_prefinetune.py --small                      # into build/prefinetune-small
    python benchmarks/run_prefinetune.py --encoder all-mpnet-base-v2 --parts main    # more rows of table 2
    python benchmarks/run_prefinetune.py --full --tables              # the tables of those results
    python benchmarks/run_prefinetune.py --figures docs/figures

Parts: encoders (figure 3), main (tables 2, 3 and 5 to 7), sweep (figure 2), maps (figure 4), descriptions (ours),
targets (what guessing would score). Any part makes the encoders that it needs and that are not there any more. Beside
the paper's methods are controls: REZE with nothing shrunk, and a mix without the sources that share a target's labels.
"""

import argparse
from pathlib import Path
from typing import Any

from layout import NOT_YET
from prefinetune import report
from prefinetune.descriptions import description_pieces
from prefinetune.encoders import encoder_pieces
from prefinetune.experiments import main_pieces, sweep_pieces
from prefinetune.maps import map_pieces
from prefinetune.settings import Settings
from prefinetune.target_facts import target_pieces
from runner import Parts, new_parser, run_parts
from tasks import ROOT

PARTS: Parts = {
    "encoders": encoder_pieces,
    "maps": map_pieces,
    "descriptions": description_pieces,
    "main": main_pieces,
    "sweep": sweep_pieces,
    "targets": target_pieces,
}


def _results(options: argparse.Namespace) -> Path:
    # A small run has the names of a large one, and must not be taken for it.
    if options.small:
        return ROOT / "build" / "prefinetune-small"
    return ROOT / "benchmarks" / "results" / ("prefinetune-full" if options.full else "prefinetune")


def main() -> None:
    """Run what is missing."""
    parser = new_parser(__doc__, PARTS)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/prefinetune, or -full; build/ if --small")
    parser.add_argument("--encoders", type=Path, default=ROOT / "build" / "prefinetuned", help="folder for encoders")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--full", action="store_true", help="the paper's: all pairs and rows, a mix for each target")
    parser.add_argument("--small", action="store_true", help="two targets, one seed, few pairs: to see that it works")
    parser.add_argument("--tables", action="store_true", help="print the tables of these results, and run nothing")
    options = parser.parse_args()
    if options.figures or options.tables:
        report.OUT, report.ENCODER = options.out or _results(options), Path(options.encoder).name
        if options.tables:
            print(all_tables())
        if options.figures:
            from prefinetune.pictures import all_figures

            print(*all_figures(options.figures), sep="\n")
        return
    sizes: dict[str, Any] = {}
    if options.full:
        sizes = {"per_source": None, "test_rows": None, "max_tokens": None, "per_target": True}
    elif options.small:
        sizes = {"per_source": 16, "test_rows": 100}
    settings = Settings(
        data=options.data,
        out=options.out or _results(options),
        encoders=options.encoders,
        encoder=options.encoder,
        small=options.small,
        **sizes,
    )
    run_parts(options, PARTS, settings, command=[__file__])  # no piece has a process of its own


def all_tables() -> str:
    """Return every table of the page that the results have rows for."""
    tables = {name: make() for name, make in report.BLOCKS.items()}
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items() if table != NOT_YET)


if __name__ == "__main__":
    main()
