"""The uncertainty-aware paper's experiments, piece by piece: what has its result file is skipped.

    python benchmarks/run_uncertainty.py                              # what is missing, until 20 minutes are up
    python benchmarks/run_uncertainty.py --parts main --encoder all-mpnet-base-v2
    python benchmarks/run_uncertainty.py --full --minutes 600         # 512 tokens, into results/uncertainty-full
    python benchmarks/run_uncertainty.py --small                      # to see that it works, into build/uncertainty
    python benchmarks/run_uncertainty.py --figures docs/figures

Parts: main (tables 2, 3, 7), ablations (tables 4, 7, 8), grid (figure 3), maps (figure 4), usage (calibration and
abstention as a user gets them), cost (table 5, epochs). Figure 5 comes from the results of main.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from pieces import Piece, run_piece, run_pieces
from tasks import DATA, ROOT
from uncertainty.cost import cost_pieces
from uncertainty.experiments import ablation_pieces, grid_pieces, main_pieces, map_pieces
from uncertainty.settings import Settings
from uncertainty.usage import usage_pieces

PARTS: dict[str, Callable[[Settings], Iterable[Piece]]] = {
    "main": main_pieces,
    "ablations": ablation_pieces,
    "grid": grid_pieces,
    "maps": map_pieces,
    "usage": usage_pieces,
    "cost": cost_pieces,
}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/uncertainty, uncertainty-full, build/...")
    parser.add_argument("--states", type=Path, default=ROOT / "build" / "token-states", help="folder for token states")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--minutes", type=float, default=20, help="no piece begins later; 20")
    parser.add_argument("--full", action="store_true", help="512 tokens of each text")
    parser.add_argument("--small", action="store_true", help="one set, one seed, few variants: to see that it works")
    parser.add_argument("--figures", type=Path, help="draw the page's figures into this folder, and run nothing")
    parser.add_argument("--piece", help="PART/NAME: this one alone, in this process")
    options = parser.parse_args()
    if options.figures:
        from uncertainty.pictures import all_figures

        print(*all_figures(options.figures), sep="\n")
        return
    if not options.data.is_dir() and options.parts != ["cost"]:
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
    folder = ROOT / "build" / "uncertainty"
    if not options.small:
        folder = ROOT / "benchmarks" / "results" / ("uncertainty-full" if options.full else "uncertainty")
    settings = Settings(
        data=options.data,
        out=options.out or folder,
        states=options.states,
        encoder=options.encoder,
        small=options.small,
        max_tokens=512 if options.full else Settings.max_tokens,
    )
    pieces = [piece for part in options.parts for piece in PARTS[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; names are those of the files in {settings.out}")
        run_piece(wanted[0], settings.out)
        return
    same = [__file__, "--data", options.data, "--out", settings.out, "--states", options.states]
    same += ["--encoder", options.encoder, "--parts", *options.parts]
    command = [str(word) for word in same] + ["--full"] * options.full + ["--small"] * options.small
    left = run_pieces(pieces, settings.out, minutes=options.minutes, command=command)
    print(f"{left} of {len(pieces)} pieces are left; the same command goes on." if left else "all pieces are there.")


if __name__ == "__main__":
    main()
