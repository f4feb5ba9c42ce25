"""The experiments of LaCon, piece by piece: what has its result file is skipped.

    python benchmarks/run_lacon.py                            # everything that is missing, until 20 minutes are up
    python benchmarks/run_lacon.py --parts main few           # tables 2 and 4
    python benchmarks/run_lacon.py --full --minutes 600       # the paper's protocol, into results/lacon-full
    python benchmarks/run_lacon.py --small                    # to see that it works, into build/lacon
    python benchmarks/run_lacon.py --full --tables            # the tables of docs/lacon.md, of those results
    python benchmarks/run_lacon.py --figures docs/figures

Parts: main (table 2), few (table 4, figure 2), imbalance (figure 3, table 5), ablation (tables 3 and 6), classes
(figure 6), grid (figure 5), tsne (figure 4), curve (zero labels to 64), setfit (its curve, cut short),
setfit-whole (what was cut, to its end where that is near), setfit-default (at the defaults of its package), speed. The protocol is
`lacon/protocol.py`; a result holds its own, and one folder holds results of one protocol.
"""

import argparse
from pathlib import Path

from lacon import runs
from lacon.cost import speed_pieces
from lacon.curve import curve_pieces
from lacon.experiments import (
    ablation_pieces,
    class_pieces,
    few_pieces,
    grid_pieces,
    imbalance_pieces,
    main_pieces,
)
from lacon.protocol import PAPER, SMALL, Protocol, Settings, changed
from lacon.report import BLOCKS
from lacon.setfit_curve import default_pieces, setfit_pieces, whole_pieces
from lacon.tsne import tsne_pieces
from layout import NOT_YET
from pieces import read_results
from runner import Parts, chosen_parts, new_parser, run_parts
from tasks import ROOT

PARTS: Parts = {
    "main": main_pieces,
    "few": few_pieces,
    "imbalance": imbalance_pieces,
    "ablation": ablation_pieces,
    "classes": class_pieces,
    "grid": grid_pieces,
    "tsne": tsne_pieces,
    "speed": speed_pieces,
    "curve": curve_pieces,
    "setfit": setfit_pieces,
    "setfit-whole": whole_pieces,
    "setfit-default": default_pieces,
}
# Options that change the protocol.
NUMBERS = {
    "rows": int,
    "test_rows": int,
    "max_tokens": int,
    "epochs": int,
    "few_epochs": int,
    "learning_rate": float,
    "head_learning_rate": float,
    "batch_size": int,
    "curve_rows": int,
    "description_steps": int,
    "setfit_steps": int,
}


def refuse_another_protocol(out: Path, protocol: Protocol) -> None:
    """End where results of another protocol are in the folder: they would be averaged with these."""
    for part in PARTS:
        for result in read_results(out, part):
            theirs = result.get("protocol", protocol.to_dict())
            differ = [name for name, value in theirs.items() if getattr(protocol, name, None) != value]
            if differ:
                words = ", ".join(f"{name} {theirs[name]}, not {getattr(protocol, name, 'there')}" for name in differ)
                raise SystemExit(f"{out / part} holds results of another protocol ({words}); say --out another folder.")


def main() -> None:
    """Run what is missing."""
    parser = new_parser(__doc__, PARTS)
    parser.add_argument("--out", type=Path, help="default: benchmarks/results/lacon, lacon-full, build/lacon")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--pooling", choices=("mean", "cls"), help="default: the encoder's own; the paper has cls")
    parser.add_argument("--tables", action="store_true", help="print the tables of these results, and run nothing")
    parser.add_argument("--repeats", type=int, help="seeds of every part; default: 1 to 5 by part, with --full 10")
    parser.add_argument("--full", action="store_true", help="the paper's rows, epochs, rates and repeats")
    parser.add_argument("--small", action="store_true", help="one set, one seed, few changes: to see that it works")
    for name, kind in NUMBERS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", type=kind, help=f"default: {getattr(SMALL, name)}")
    options = parser.parse_args()
    if options.figures:
        from lacon.pictures import all_figures

        print(*all_figures(options.figures), sep="\n")
        return
    settings = Settings(
        data=options.data,
        out=options.out or _folder(options),
        encoder=options.encoder,
        pooling=options.pooling,
        protocol=changed(PAPER if options.full else SMALL, vars(options)),
        full=options.full,
        small=options.small,
        repeats=options.repeats,
    )
    if options.tables:
        print(all_tables(settings))
        return
    if not options.piece:
        refuse_another_protocol(settings.out, settings.protocol)
    needs_data = chosen_parts(options) != ["speed"]
    run_parts(options, PARTS, settings, command=_same(options, settings), needs_data=needs_data)


def all_tables(settings: Settings) -> str:
    """Return every table of the page that the results in a folder, with one encoder, have rows for."""
    runs.OUT, runs.ENCODER = settings.out, settings.short
    tables = {name: make() for name, make in BLOCKS.items()}
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items() if table != NOT_YET)


def _folder(options: argparse.Namespace) -> Path:
    """Where results go: a small run is none of those that the page shows."""
    if options.small:
        return ROOT / "build" / "lacon"
    return ROOT / "benchmarks" / "results" / ("lacon-full" if options.full else "lacon")


def _same(options: argparse.Namespace, settings: Settings) -> list[object]:
    """Words that start this script again with the same settings."""
    words: list[object] = [__file__, "--out", settings.out, "--encoder", settings.encoder]
    for name in ("repeats", *NUMBERS):
        if getattr(options, name) is not None:
            words += [f"--{name.replace('_', '-')}", getattr(options, name)]
    if options.pooling:
        words += ["--pooling", options.pooling]
    return words + ["--full"] * options.full + ["--small"] * options.small


if __name__ == "__main__":
    main()
