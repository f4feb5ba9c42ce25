"""A piece of a study: one run, one row of its table; a piece whose row is there is skipped."""

import contextlib
import json
import re
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from store import COMMIT, ENCODER, Row, Table, refuse_dirty

from labelspace.evaluate.provenance import provenance

ROUNDED = ("seconds", "fit_seconds", "training_seconds")
"""Kept to the millisecond: more digits would only fill the table."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What holds for all pieces of one call; each study adds its own."""

    data: Path
    out: Path
    """The table of results."""

    encoder: str = ENCODER
    pooling: str | None = None
    """Another than the encoder's own."""

    small: bool = False
    """True: one set, one seed, few changes, to see that it works."""

    @property
    def short(self) -> str:
        """The encoder's name without the way to it, and its pooling where that is not its own."""
        name = Path(self.encoder).name
        return name if self.pooling is None else f"{name}-{self.pooling}"


@dataclass(frozen=True)
class Piece:
    """One run."""

    part: str
    name: str
    facts: dict[str, Any]
    """What it is a run of; goes into the result."""

    work: Callable[[], dict[str, Any]] = field(repr=False)
    """Does it."""

    seeds: tuple[int, ...] = ()
    data: str = ""
    dtype: str | None = None
    """Number format of what is scored; None: what an encoder chooses."""

    alone: bool = False
    """True: in a process of its own, because its peak memory is part of the result."""

    def result(self, out: Path) -> Row | None:
        """Return its row; None: it is still to be run."""
        return Table(out).row(self.part, self.name)


def run_pieces(pieces: Sequence[Piece], out: Path, *, minutes: float, command: Sequence[str]) -> int:
    """Run what is missing until the time is up, and return how many pieces are still to be run.

    A piece that fails does not keep those behind it from running; the call ends with its name. Two calls at once share
    the pieces: what one is at work on, the other passes over.

    Args:
        pieces: in the order to run them.
        out: the table of results.
        minutes: no piece begins after so many.
        command: runs one piece by itself when its part and name are added.
    """
    refuse_dirty(out, COMMIT)
    refuse_stale(pieces, out)
    ends = time.monotonic() + 60 * minutes
    failed: list[str] = []
    for number, piece in enumerate(pieces, 1):
        if piece.result(out):  # asked late: another process may be at work on the same pieces
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
        except Exception:  # noqa: BLE001  hours of other pieces wait behind it
            traceback.print_exc()
            failed.append(name)
    if failed:
        raise SystemExit(f"{len(failed)} pieces failed: {', '.join(failed)}; the same command tries them again.")
    return sum(not piece.result(out) for piece in pieces)


@contextlib.contextmanager
def claimed(piece: Piece, out: Path) -> Iterator[None]:
    """Hold a piece against other processes; who is killed holds nothing any more.

    Raises:
        Timeout: another process holds it.
    """
    path = out.parent / ".claims" / f"{out.stem}-{piece.part}-{piece.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=0):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def refuse_stale(pieces: Sequence[Piece], out: Path) -> None:
    """End where a row has other settings than its piece has now, or its part another protocol: both would be averaged.

    Raises:
        SystemExit: with what differs.
    """
    protocols = {piece.part: piece.facts["protocol"] for piece in pieces if "protocol" in piece.facts}
    facts = {(piece.part, piece.name): piece.facts for piece in pieces}
    for row in Table(out).rows():
        part, name = row["part"], row["name"]
        wanted = facts.get((part, name)) or {"protocol": protocols.get(part, row.get("protocol"))}
        if words := "; ".join(differences(wanted, row)):
            raise SystemExit(f"{out.name}: {part}/{name} was run with other settings ({words}); say another --out.")


def differences(facts: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Return in what a result is not the one that it should be, in words."""
    wanted = json.loads(json.dumps(facts))
    return [f"{name} {there.get(name)}, not {value}" for name, value in wanted.items() if there.get(name) != value]


def run_piece(piece: Piece, out: Path) -> None:
    """Run one piece and add its row."""
    started = time.perf_counter()
    result = piece.work()
    seconds = time.perf_counter() - started
    if "seconds" in result:
        raise ValueError(f"{piece.part}/{piece.name}: 'seconds' are those of the piece; call its own something else")
    row = {**piece.facts, **result, "seconds": seconds}
    row |= {name: round(row[name], 3) for name in ROUNDED if name in row}
    origin = provenance(seeds=list(piece.seeds), data=piece.data, dtype=piece.dtype)
    # One call is one command, also where it runs pieces in processes of their own.
    origin |= {"commit": COMMIT, "command": re.sub(r" --piece \S+", "", origin["command"])}
    Table(out).add(piece.part, piece.name, row, provenance=origin)
