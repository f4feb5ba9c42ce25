"""Pieces of a study: each is one run and one row of its table, and is skipped if the row exists."""

import argparse
import contextlib
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from filelock import FileLock, Timeout
from store import COMMIT, ENCODER, Row, Table, refuse_dirty, rounded

from labelspace.evaluate.provenance import provenance

ROUNDED = ("seconds", "fit_seconds", "training_seconds")
"""Fields rounded to milliseconds, to keep the table small."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of all pieces of one call; each study adds its own."""

    data: Path
    out: Path
    """The table of results."""

    encoder: str = ENCODER
    pooling: str | None = None
    """Pooling in place of the encoder's own."""

    small: bool = False
    """True for a smoke test: one set, one seed, few changes."""

    @property
    def short(self) -> str:
        """The encoder's name without its path, and its pooling if that is not its own."""
        name = Path(self.encoder).name
        return name if self.pooling is None else f"{name}-{self.pooling}"

    @classmethod
    def of(cls, options: argparse.Namespace, **others: Any) -> Self:
        """Make the settings from the options that are named as a field, and from others, which count first."""
        named = {one.name: getattr(options, one.name) for one in fields(cls) if hasattr(options, one.name)}
        own = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
        return cls(**{**own, **others})


@dataclass(frozen=True)
class Piece:
    """One run."""

    part: str
    name: str
    facts: dict[str, Any]
    """Facts that identify the run, copied into the result."""

    work: Callable[[], dict[str, Any]] = field(repr=False)
    """Runs the piece and returns its result."""

    seeds: tuple[int, ...] = ()
    data: str = ""
    dtype: str | None = None
    """Dtype of scoring; None: the encoder's choice."""

    alone: bool = False
    """True: run in its own process, because peak memory is part of the result."""

    def result(self, out: Path) -> Row | None:
        """Return the piece's row; None if it has not been run."""
        return Table(out).row(self.part, self.name)


class Unfinished(SystemExit):
    """Raised by a piece that stops because the time is up; its work is stored, and the next call goes on with it."""


def run_pieces(pieces: Sequence[Piece], out: Path, *, minutes: float, command: Sequence[str]) -> int:
    """Run missing pieces until the time is up, and return the number of pieces left.

    A failing piece does not stop the next ones; the call ends with its name. Concurrent calls share the work: each
    skips the pieces that another is running.

    Args:
        pieces: pieces, in the order to run them.
        out: the table of results.
        minutes: no piece starts after this many minutes; a long one may stop then by raising `Unfinished`.
        command: command that runs one piece when `--piece PART/NAME` is appended.
    """
    refuse_dirty(out, COMMIT)
    refuse_stale(pieces, out)
    ends = time.monotonic() + 60 * minutes
    failed: list[str] = []
    for number, piece in enumerate(pieces, 1):
        if piece.result(out):  # checked at each turn: another process may have finished it
            continue
        if time.monotonic() > ends:
            break
        name = f"{piece.part}/{piece.name}"
        try:
            with claimed(piece, out):
                if piece.result(out):
                    continue
                print(f"[{number} of {len(pieces)}] {name}", flush=True)
                if piece.alone:
                    subprocess.run([sys.executable, *command, "--piece", name], check=True)
                else:
                    run_piece(piece, out)
        except Timeout:
            continue
        except Unfinished as stopped:
            print(stopped, flush=True)
        except Exception:  # noqa: BLE001  one failure must not stop hours of other pieces
            traceback.print_exc()
            failed.append(name)
    if failed:
        raise SystemExit(f"{len(failed)} pieces failed: {', '.join(failed)}; repeat the command to retry them.")
    return sum(not piece.result(out) for piece in pieces)


@contextlib.contextmanager
def claimed(piece: Piece, out: Path) -> Iterator[None]:
    """Lock a piece against other processes; the lock of a killed process is released.

    Raises:
        Timeout: another process holds the lock.
    """
    path = out.parent / ".claims" / f"{out.stem}-{piece.part}-{piece.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=0):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def refuse_stale(pieces: Sequence[Piece], out: Path) -> None:
    """Refuse a table with rows of other settings or another protocol, which would be averaged with the new ones.

    Raises:
        SystemExit: a row differs; the message names the difference.
    """
    protocols = {piece.part: piece.facts["protocol"] for piece in pieces if "protocol" in piece.facts}
    facts = {(piece.part, piece.name): piece.facts for piece in pieces}
    for row in Table(out).rows():
        part, name = row["part"], row["name"]
        wanted = facts.get((part, name)) or {"protocol": protocols.get(part, row.get("protocol"))}
        if words := "; ".join(differences(wanted, row)):
            raise SystemExit(f"{out.name}: {part}/{name} was run with other settings ({words}); give another --out.")


def differences(facts: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """List the facts in which a stored result differs from the wanted ones."""
    wanted, stored = rounded(json.loads(json.dumps(facts))), rounded(there)
    return [f"{name} {stored.get(name)}, not {value}" for name, value in wanted.items() if stored.get(name) != value]


def run_piece(piece: Piece, out: Path) -> None:
    """Run one piece and add its row."""
    started = time.perf_counter()
    result = piece.work()
    seconds = time.perf_counter() - started
    if "seconds" in result:
        raise ValueError(
            f"{piece.part}/{piece.name}: 'seconds' is reserved for the time of the piece; rename the result's field"
        )
    row = {**piece.facts, **result, "seconds": seconds}
    row |= {name: round(row[name], 3) for name in ROUNDED if name in row}
    origin = provenance(seeds=list(piece.seeds), data=piece.data, dtype=piece.dtype)
    origin |= {"commit": COMMIT, "command": told(origin["command"])}
    Table(out).add(piece.part, piece.name, row, provenance=origin)


def told(command: str) -> str:
    """Return the command of the whole call, also for a piece in its own process, without folders of this machine.

    Example:
        >>> told("run.py study --encoder /home/me/models/mpnet --piece part/name")
        'run.py study --encoder mpnet'
    """
    return re.sub(r"(?<=[ =])/\S*/", "", re.sub(r" --piece \S+", "", command))
