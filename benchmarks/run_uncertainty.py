"""The uncertainty-aware paper's experiments, piece by piece: what has its result file is skipped.

    python benchmarks/run_uncertainty.py                              # what is missing, until 20 minutes are up
    python benchmarks/run_uncertainty.py --parts main --encoder all-mpnet-base-v2
    python benchmarks/run_uncertainty.py --full --minutes 600         # 512 tokens, into results/uncertainty-full
    python benchmarks/run_uncertainty.py --small                      # to see that it works, into build/uncertainty
    python benchmarks/run_uncertainty.py --parts cost                 # with nothing else at work on the machine
    python benchmarks/run_uncertainty.py --figures docs/figures

Parts: choice (rates and weights, on train rows alone), main (tables 2, 3, 7), ablations (tables 4, 7, 8), grid
(figure 3), usage (calibration and abstention as a user gets them). One more, cost (table 5, epochs), wants a machine
that does nothing else, so it is run only where --parts names it.
Figures 4 and 5 come from the results of main and ablations. What was chosen stands in main and ablations too: the first
call after choice is whole runs it.
"""

from pathlib import Path

from runner import Parts, chosen_parts, new_parser, run_parts
from tasks import ROOT
from uncertainty.choose import choice_pieces
from uncertainty.cost import cost_pieces
from uncertainty.experiments import ablation_pieces, grid_pieces, main_pieces
from uncertainty.selection import waiting
from uncertainty.settings import Settings
from uncertainty.usage import usage_pieces

PARTS: Parts = {
    "choice": choice_pieces,
    "main": main_pieces,
    "ablations": ablation_pieces,
    "grid": grid_pieces,
    "usage": usage_pieces,
    "cost": cost_pieces,
}


def main() -> None:
    """Run what is missing."""
    parser = new_parser(__doc__, PARTS)
    parser.set_defaults(parts=[part for part in PARTS if part != "cost"])
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/uncertainty, uncertainty-full, build/...")
    parser.add_argument("--states", type=Path, default=ROOT / "build" / "token-states", help="folder for token states")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--full", action="store_true", help="512 tokens of each text")
    parser.add_argument("--small", action="store_true", help="one set, one seed, few variants: to see that it works")
    options = parser.parse_args()
    if options.figures:
        from uncertainty.pictures import all_figures

        print(*all_figures(options.figures), sep="\n")
        return
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
    # Only what was given: a default would write this machine's folders into the provenance of a result.
    command = [__file__, "--encoder", options.encoder]
    for name in ("out", "states"):
        if getattr(options, name) != parser.get_default(name):
            command += [f"--{name}", getattr(options, name)]
    command += ["--full"] * options.full + ["--small"] * options.small
    late = waiting(settings, chosen_parts(options)) if options.data.is_dir() else []
    try:
        run_parts(options, PARTS, settings, command=command, needs_data=chosen_parts(options) != ["cost"])
    finally:
        if late:
            print(
                f"not run: {', '.join(late)}; they want all of part choice for {settings.short}. Run that, then these."
            )


if __name__ == "__main__":
    main()
