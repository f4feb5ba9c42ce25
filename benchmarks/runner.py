"""The description of a study, and the command line shared by all studies."""

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
    """A study: its experiments, tables and figures."""

    name: str
    doc: str | None
    parts: Mapping[str, Callable[[Any], Iterable[Piece]]]
    """Part -> function that makes its pieces from the settings."""

    settings: Callable[..., Settings]
    """Makes the settings from the options; those common to all studies are keyword arguments."""

    blocks: Mapping[str, Callable[[], str]] = field(default_factory=dict)
    """Tables of the study."""

    figures: Figures = field(default_factory=dict)
    """Figures drawn from the results."""

    more_figures: Callable[[Any, Path], Iterable[Path]] = lambda *_: ()
    """Draws figures that need more than results, from the settings into a folder."""

    options: Callable[[argparse.ArgumentParser], None] = lambda _: None
    """Adds the study's own options."""

    on_request: tuple[str, ...] = ()
    """Parts that are run only if --parts names them."""

    without_data: tuple[str, ...] = ()
    """Parts that need no data folder."""

    note: Callable[[Any, list[str]], str] = lambda *_: ""
    """Makes the note printed at the end of a call, from the settings and the parts."""


def new_parser(study: Study) -> argparse.ArgumentParser:
    """Return the option parser of a study."""
    parser = argparse.ArgumentParser(
        prog=f"run.py {study.name}", description=study.doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    usual = [part for part in study.parts if part not in study.on_request]
    parser.add_argument("--parts", nargs="+", default=usual, choices=list(study.parts))
    parser.add_argument("--minutes", type=float, default=20, help="start no piece after this; default: 20")
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--out", type=Path, help="table of results; default: benchmarks/results/, with --small build/")
    parser.add_argument("--encoder", default=Settings.encoder)
    parser.add_argument("--small", action="store_true", help="a smoke test: one set, one seed, few changes")
    parser.add_argument("--full", action="store_true", help="the paper's protocol, into a separate table")
    parser.add_argument("--tables", action="store_true", help="print the tables of the results; run nothing")
    parser.add_argument("--figures", type=Path, help="draw the page's figures into this folder; run nothing")
    parser.add_argument("--piece", help="PART/NAME: run only this piece, in this process")
    study.options(parser)
    return parser


def main(study: Study, script: str, words: list[str]) -> None:
    """Run the missing pieces of a study, or show its results.

    Args:
        study: the study.
        script: script that runs a study in its own process, given the study's name and these words.
        words: command line after the study's name.
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
        raise SystemExit(f"no data in {options.data}; give its folder with --data")
    pieces = [piece for part in parts if part in study.parts for piece in study.parts[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; give PART/NAME of a row of {out}")
        run_piece(wanted[0], out)
        return
    note = study.note(settings, parts)
    try:
        left = run_pieces(pieces, out, minutes=options.minutes, command=[script, study.name, *words])
        print(
            f"{left} of {len(pieces)} pieces are left; repeat the command to go on." if left else "all pieces are done."
        )
    finally:
        if note:
            print(note)


def all_tables(study: Study) -> str:
    """Return all tables of a study that have results."""
    tables = {name: make() for name, make in study.blocks.items()}
    return "\n\n".join(f"{name}\n\n{table}" for name, table in tables.items() if table != NOT_YET)
