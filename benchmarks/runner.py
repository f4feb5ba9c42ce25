"""The command line that scripts of pieces share: which part, for how long, one piece alone, or the figures."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pieces import Piece, run_piece, run_pieces
from tasks import DATA

Parts = Mapping[str, Callable[[Any], Iterable[Piece]]]


def new_parser(doc: str | None, parts: Parts) -> argparse.ArgumentParser:
    """Return a parser with the options that every script has.

    Args:
        doc: of the script.
        parts: what makes the pieces of each part from the settings.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--parts", nargs="+", default=list(parts), choices=list(parts))
    parser.add_argument("--minutes", type=float, default=20, help="no piece begins later; 20")
    parser.add_argument("--figures", type=Path, help="draw the page's figures into this folder, and run nothing")
    parser.add_argument("--piece", help="PART/NAME: this one alone, in this process")
    return parser


def chosen_parts(options: argparse.Namespace) -> list[str]:
    """Return the parts that are asked for; a piece is of one."""
    return [options.piece.partition("/")[0]] if options.piece else options.parts


def run_parts(
    options: argparse.Namespace, parts: Parts, settings: Any, *, command: Sequence[object], needs_data: bool = True
) -> None:
    """Run what is missing of the parts, or the one piece, and say what is left.

    Args:
        options: of `new_parser`.
        parts: the same as there.
        settings: what the parts are made from; its `out` is the folder of results.
        command: starts the script again with the same settings, for pieces in a process of their own.
        needs_data: False: the parts make do without the data folder.
    """
    if needs_data and not options.data.is_dir():
        raise SystemExit(f"no data in {options.data}; say where it is with --data")
    pieces = [piece for part in chosen_parts(options) if part in parts for piece in parts[part](settings)]
    if options.piece:
        wanted = [piece for piece in pieces if f"{piece.part}/{piece.name}" == options.piece]
        if not wanted:
            raise SystemExit(f"no piece {options.piece}; names are those of the files in {settings.out}")
        run_piece(wanted[0], settings.out)
        return
    words = [str(word) for word in (*command, "--data", options.data)]
    left = run_pieces(pieces, settings.out, minutes=options.minutes, command=words)
    print(f"{left} of {len(pieces)} pieces are left; the same command goes on." if left else "all pieces are there.")
