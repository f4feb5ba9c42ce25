"""The description-only study, piece by piece: what has its result file is skipped.

    python benchmarks/run_study.py                       # everything that is missing, until 20 minutes are up
    python benchmarks/run_study.py --parts rivals        # ablations, rates, rivals, curve
    python benchmarks/run_study.py --parts ablations --changes default --encoder all-mpnet-base-v2
    python benchmarks/run_study.py --small --out build/study
    python benchmarks/run_study.py --figures docs/figures

Then `python benchmarks/tables.py` writes docs/study.md. SetFit is among the packages of
`make .venv/.peers`.
"""

from pathlib import Path

from runner import Parts, new_parser, run_parts
from study.ablations import CHANGES, ablation_pieces
from study.pictures import model_figures, result_figures
from study.rates import rate_pieces
from study.rivals import curve_pieces, rival_pieces
from study.settings import Settings
from tasks import ROOT

PARTS: Parts = {
    "ablations": ablation_pieces,
    "rates": rate_pieces,
    "curve": curve_pieces,
    "rivals": rival_pieces,
}


def main() -> None:
    """Run what is missing."""
    parser = new_parser(__doc__, PARTS)
    parser.add_argument("--out", type=Path, default=ROOT / "benchmarks" / "results" / "study")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--pooling", choices=("cls", "mean"), help="another than the encoder's own")
    parser.add_argument("--changes", nargs="+", default=[], choices=[c.name for c in CHANGES], help="of the ablations")
    parser.add_argument("--max-steps", type=int, default=Settings.max_steps)
    parser.add_argument("--test-rows", type=int, default=Settings.test_rows, help="at most so many, a fixed draw")
    parser.add_argument("--small", action="store_true", help="one task, one seed, few changes: to see that it works")
    parser.add_argument(
        "--model-figures", action="store_true", help="with --figures: those of a model too, trained first"
    )
    options = parser.parse_args()
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
    command = [__file__, "--out", options.out, "--encoder", options.encoder, "--max-steps", options.max_steps]
    command += ["--test-rows", options.test_rows] + ["--small"] * options.small
    command += ["--pooling", options.pooling] if options.pooling else []
    run_parts(options, PARTS, settings, command=command)


if __name__ == "__main__":
    main()
