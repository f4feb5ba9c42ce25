"""What a study is, and the command line that all studies share."""

import argparse
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import store
from layout import NOT_YET
from panels import Figures, all_figures
from pieces import Piece, Settings, run_piece, run_pieces
from tasks import DATA


@dataclass(frozen=True, kw_only=True)
class Study:
    """A description of experiments: what is run, and what comes out of it."""

    name: str
    doc: str | None
    parts: Mapping[str, Callable[[Any], Iterable[Piece]]]
    """What makes the pieces of each part from the settings."""

    settings: Callable[..., Settings]
    """From the options; those that all studies have come by name."""

    blocks: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Its tables."""

    figures: Figures = field(default_factory=dict)
    """Its figures, each drawn from results."""

    more_figures: Callable[[Any, Path], Iterable[Path]] = lambda *_: ()
    """Figures that are drawn of more than results, from the settings into a folder."""

    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    """Adds the options that it alone has."""

    on_request: tuple[str, ...] = ()
    """Parts that are run only where --parts names them."""

    without_data: tuple[str, ...] = ()
    """Parts that make do without the data folder."""

    note: Callable[[Any, list[str]], str] = lambda *_: ""
    """What to say at the end of a call, from the settings and the parts."""


def new_parser(study: Study) -> argparse.ArgumentParser:
    """Return a parser of the options of a study."""
    parser = argparse.ArgumentParser(
        prog=f"run.py {study.name}", description=study.doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = [part for part in study.parts if part not in study.on_request]
    parser.add_argument("--parts", nargs="+", default=usual, choices=list(study.parts))
    parser.add_argument("--minutes", type=float, default=20, help="no piece begins later; 20")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, help="table of results; benchmarks/results/..., build/... if --small")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--small", action="store_true", help="one set, one seed, few changes: to see that it works")
    parser.add_argument("--full", action="store_true", help="the paper's protocol, into a table of its own")
    parser.add_argument("--tables", action="store_true", help="print the tables of these results, and run nothing")
    parser.add_argument("--figures", type=Path, help="draw the page's figures into this folder, and run nothing")
    parser.add_argument("--piece", help="PART/NAME: this one alone, in this process")
    study.options(parser)
    return parser


def main(study: Study, script: str, words: list[str]) -> None:
    """Run what is missing of a study, or show what is there.

    Args:
        study: what is run.
        script: starts a study in a process of its own, given the study's name and these words.
        words: of the command line, behind the study's name.
    """
    options = new_parser(study).parse_args(words)
    name = f"{study.name}-full" if options.full else study.name
    out = options.out or (store.SCRATCH if options.small else store.RESULTS) / f"{name}.jsonl"
    settings = study.settings(options, data=options.data, out=out, encoder=options.encoder, small=options.small)
    if options.tables or options.figures:
        store.TABLES[study.name], store.ENCODER = settings.out, settings.short
        if options.tables:
            print(all_tables(study))
        if options.figures:
            drawn = [*all_figures(study.figures, options.figures), *study.more_figures(settings, options.figures)]
            print(*drawn, sep="\n")
        return
    parts = [options.piece.partition("/")[0]] if options.piece else options.parts
    if not options.data.is_dir() and not set(parts) <= set(study.without_data):
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
    pieces = [piece for part in parts if part in study.parts for piece in study.parts[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; its part and name are those of a row of {out}")
        run_piece(wanted[0], out)
        return
    note = study.note(settings, parts)
    try:
        left = run_pieces(pieces, out, minutes=options.minutes, command=[script, study.name, *words])
        print(
            f"{left} of {len(pieces)} pieces are left; the same command goes on." if left else "all pieces are there."
        )
    finally:
        if note:
            print(note)


def all_tables(study: Study) -> str:
    """Return every table of a study that its results have rows for."""
    tables = {name: make() for name, make in study.blocks.items()}
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items() if table != NOT_YET)
