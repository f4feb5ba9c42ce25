"""REZE's experiments, piece by piece: what has its result file is skipped.

    python benchmarks/run_prefinetune.py                              # what is missing, until 20 minutes are up
    python benchmarks/run_prefinetune.py --parts encoders main --minutes 600
    python benchmarks/run_prefinetune.py --full --minutes 6000        # all pairs, a mix for each target, whole texts
    python benchmarks/run_prefinetune.py --small                      # into build/prefinetune-small
    python benchmarks/run_prefinetune.py --figures docs/figures

Parts: encoders (figure 3), main (tables 2, 3 and 5 to 7), sweep (figure 2), maps (figure 4), descriptions (ours). Any
part makes the encoders that it needs and that are not there any more.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from pieces import Piece, run_piece, run_pieces
from prefinetune.descriptions import description_pieces
from prefinetune.encoders import encoder_pieces
from prefinetune.experiments import main_pieces, sweep_pieces
from prefinetune.maps import map_pieces
from prefinetune.settings import Settings
from tasks import DATA, ROOT

PARTS: dict[str, Callable[[Settings], Iterable[Piece]]] = {
    "encoders": encoder_pieces,
    "main": main_pieces,
    "descriptions": description_pieces,
    "maps": map_pieces,
    "sweep": sweep_pieces,
}


def _results(options: argparse.Namespace) -> Path:
    # A small run has the names of a large one, and must not be taken for it.
    if options.small:
        return ROOT / "build" / "prefinetune-small"
    return ROOT / "benchmarks" / "results" / ("prefinetune-full" if options.full else "prefinetune")


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/prefinetune, or -full; build/ if --small")
    parser.add_argument("--encoders", type=Path, default=ROOT / "build" / "prefinetuned", help="folder for encoders")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--minutes", type=float, default=20, help="no piece begins later; 20")
    parser.add_argument("--full", action="store_true", help="the paper's: all pairs and rows, a mix for each target")
    parser.add_argument("--small", action="store_true", help="two targets, one seed, few pairs: to see that it works")
    parser.add_argument("--figures", type=Path, help="draw the figures into this folder, and run nothing")
    parser.add_argument("--piece", help="PART/NAME: this one alone, in this process")
    options = parser.parse_args()
    if options.figures:
        from prefinetune.pictures import all_figures

        print(*all_figures(options.figures), sep="\n")
        return
    if not options.data.is_dir():
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
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
    pieces = [piece for part in options.parts for piece in PARTS[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; names are those of the files in {settings.out}")
        run_piece(wanted[0], settings.out)
        return
    left = run_pieces(pieces, settings.out, minutes=options.minutes, command=[])
    print(f"{left} of {len(pieces)} pieces are left; the same command goes on." if left else "all pieces are there.")


if __name__ == "__main__":
    main()
