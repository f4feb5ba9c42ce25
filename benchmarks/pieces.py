"""A piece of a study: one run, one result file; pieces that have theirs are skipped."""

import contextlib
import functools
import json
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from labelspace.evaluate.provenance import provenance, source_commit, write_result

_OLD_NAMES = {
    "macro_f1": "macro_f1_predicted",
    "macro_f1_by_count": "macro_f1_predicted_by_count",
}

COMMIT = source_commit()
"""Of the code that this process has read: a commit made while it runs is not what it runs."""


@dataclass(frozen=True)
class Piece:
    """One run."""

    part: str
    """Folder of its result."""

    name: str
    """File name of its result, without .json."""

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

    def path(self, out: Path) -> Path:
        """Where its result is."""
        return out / self.part / f"{self.name}.json"


def run_pieces(pieces: Sequence[Piece], out: Path, *, minutes: float, command: Sequence[str]) -> int:
    """Run what is missing until the time is up, and return how many pieces are still to be run.

    A piece that fails does not keep those behind it from running; the call ends with its name. Two calls at once share
    the pieces: what one is at work on, the other passes over.

    Args:
        pieces: in the order to run them.
        out: where the results are.
        minutes: no piece begins after so many.
        command: runs one piece by itself when its part and name are added.
    """
    refuse_stale(pieces, out)
    ends = time.monotonic() + 60 * minutes
    failed: list[str] = []
    for number, piece in enumerate(pieces, 1):
        if piece.path(out).exists():  # asked late: another process may be at work on the same pieces
            continue
        if time.monotonic() > ends:
            break
        name = f"{piece.part}/{piece.name}"
        try:
            with claimed(piece, out):
                if piece.path(out).exists():
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
    return sum(not piece.path(out).exists() for piece in pieces)


@contextlib.contextmanager
def claimed(piece: Piece, out: Path) -> Iterator[None]:
    """Hold a piece against other processes; who is killed holds nothing any more.

    Raises:
        Timeout: another process holds it.
    """
    path = out / ".claims" / f"{piece.part}-{piece.name}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(path, timeout=0):
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def refuse_stale(pieces: Sequence[Piece], out: Path) -> None:
    """End where a result is of other settings than its piece has now: the two would be averaged as one."""
    for piece in pieces:
        if piece.path(out).exists():
            differ = differences(piece.facts, renamed(_read_at(piece.path(out))))
            if differ:
                words = "; ".join(differ)
                raise SystemExit(f"{piece.path(out)} was run with other settings ({words}); move it, or say --out.")


def differences(facts: Mapping[str, Any], there: Mapping[str, Any]) -> list[str]:
    """Return in what a result is not the one that it should be, in words."""
    wanted = json.loads(json.dumps(facts))
    return [f"{name} {there.get(name)}, not {value}" for name, value in wanted.items() if there.get(name) != value]


def run_piece(piece: Piece, out: Path) -> None:
    """Run one piece and keep its result."""
    started = time.perf_counter()
    result = piece.work()
    seconds = time.perf_counter() - started
    if "seconds" in result:
        raise ValueError(f"{piece.part}/{piece.name}: 'seconds' are those of the piece; call its own something else")
    facts = {**piece.facts, **result, "seconds": seconds}
    piece.path(out).parent.mkdir(parents=True, exist_ok=True)
    origin = provenance(seeds=list(piece.seeds), data=piece.data, dtype=piece.dtype) | {"commit": COMMIT}
    write_result(piece.path(out), facts, provenance=origin)


def read_results(out: Path, part: str) -> list[dict[str, Any]]:
    """Results of a part, in the order of their file names."""
    return [_read_at(path) for path in sorted((out / part).glob("*.json"))]


def renamed(found: Any) -> Any:
    """Call macro-F1 over predicted labels too by its name; results that are there already say `macro_f1`."""
    if isinstance(found, dict):
        return {_OLD_NAMES.get(key, key): renamed(value) for key, value in found.items()}
    if isinstance(found, list):
        return [renamed(value) for value in found]
    return _OLD_NAMES.get(found, found) if isinstance(found, str) else found


def _read_at(path: Path) -> dict[str, Any]:
    return _read(path, path.stat().st_mtime_ns)


@functools.cache
def _read(path: Path, _changed: int) -> dict[str, Any]:
    """Read once what many tables ask for; never to be changed by them."""
    return json.loads(path.read_text(encoding="utf-8"))
