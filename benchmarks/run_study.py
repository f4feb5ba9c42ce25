"""The description-only study, piece by piece: what has its result file is skipped.

    python benchmarks/run_study.py                       # everything that is missing, until 20 minutes are up
    python benchmarks/run_study.py --parts rivals        # ablations, rates, rivals, curve
    python benchmarks/run_study.py --parts ablations --changes default --encoder all-mpnet-base-v2
    python benchmarks/run_study.py --small --out build/study
    python benchmarks/run_study.py --figures docs/figures

Then `python benchmarks/tables.py` writes docs/study.md. SetFit is among the packages of
`make .venv/.peers`.
"""

import argparse
from collections.abc import Callable, Iterable
from pathlib import Path

from pieces import Piece, run_piece, run_pieces
from study.ablations import CHANGES, ablation_pieces
from study.pictures import model_figures, result_figures
from study.rates import rate_pieces
from study.rivals import curve_pieces, rival_pieces
from study.settings import Settings
from tasks import DATA, ROOT

PARTS: dict[str, Callable[[Settings], Iterable[Piece]]] = {
    "ablations": ablation_pieces,
    "rates": rate_pieces,
    "curve": curve_pieces,
    "rivals": rival_pieces,
}


def main() -> None:
    """Run what is missing."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "study")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--pooling", choices=("cls", "mean"), help="another than the encoder's own")
    parser.add_argument("--changes", nargs="+", default=[], choices=[c.name for c in CHANGES], help="of the ablations")
    parser.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--minutes", type=float, default=20, help="no piece begins later; 20")
    parser.add_argument("--max-steps", type=int, default=Settings.max_steps)
    parser.add_argument("--test-rows", type=int, default=Settings.test_rows, help="at most so many, a fixed draw")
    parser.add_argument("--small", action="store_true", help="one task, one seed, few changes: to see that it works")
    parser.add_argument("--figures", type=Path, help="draw the page's figures into this folder, and run nothing")
    parser.add_argument(
        "--model-figures", action="store_true", help="with --figures: those of a model too, trained first"
    )
    parser.add_argument("--piece", help="PART/NAME: this one alone, in this process")
    options = parser.parse_args()
    if not options.data.is_dir():
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
    settings = Settings(
        data=options.data,
        out=options.out,
        encoder=options.encoder,
        pooling=options.pooling,
        changes=tuple(options.changes),
        max_steps=options.max_steps,
        test_rows=options.test_rows,
        small=options.small,
    )
    if options.figures:
        drawn = list(result_figures(options.figures))
        if options.model_figures:
            drawn += model_figures(settings, options.figures)
        print(*drawn, sep="\n")
        return
    pieces = [piece for part in options.parts for piece in PARTS[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; names are those of the files in {options.out}")
        run_piece(wanted[0], settings.out)
        return
    same = ["--data", options.data, "--out", options.out, "--encoder", options.encoder]
    same += ["--max-steps", options.max_steps, "--test-rows", options.test_rows]
    command = [str(word) for word in (__file__, *same)] + ["--small"] * options.small
    command += ["--pooling", options.pooling] if options.pooling else []
    left = run_pieces(pieces, settings.out, minutes=options.minutes, command=command)
    print(f"{left} of {len(pieces)} pieces are left; the same command goes on." if left else "all pieces are there.")


if __name__ == "__main__":
    main()
