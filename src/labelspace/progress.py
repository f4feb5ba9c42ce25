"""Progress of long work: a bar with an ETA on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Protocol

SECONDS_BETWEEN_LINES = 10.0


class Progress(Protocol):
    """A callback that receives the amount done, the total and a note."""

    def __call__(self, done: float, total: float | None = None, note: str = "") -> None: ...


def silent(done: float, total: float | None = None, note: str = "") -> None:
    """Report nothing."""


def stage(what: str, *, verbose: bool = True) -> None:
    """Name the next part of a work of several bars, on stderr.

    Args:
        what: the part.
        verbose: False shows nothing.
    """
    if verbose:
        say(what)


def say(line: str) -> None:
    """Print a line on stderr; where that is closed or full, the work goes on without it."""
    with suppress(OSError, ValueError):
        print(line, file=sys.stderr, flush=True)


@contextmanager
def progress_bar(what: str, *, verbose: bool = True) -> Iterator[Progress]:
    """Show progress on stderr while the block runs.

    Args:
        what: name of the work, two or three words.
        verbose: False shows nothing.

    Yields:
        A `Progress`.
    """
    if not verbose:
        yield silent
    elif sys.stderr.isatty():
        with _bar(what) as report:
            yield report
    else:
        yield _lines(what)


@contextmanager
def _bar(what: str) -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("ETA"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with RichProgress(*columns, console=Console(stderr=True), transient=False) as bar:
        task = bar.add_task(what, total=None, note="")

        def report(done: float, total: float | None = None, note: str = "") -> None:
            bar.update(task, completed=done, total=total, note=note)

        yield report


def _lines(what: str) -> Progress:
    started = time.monotonic()
    last = started

    def report(done: float, total: float | None = None, note: str = "") -> None:
        nonlocal last
        now = time.monotonic()
        finished = total is not None and done >= total
        if now - last < SECONDS_BETWEEN_LINES and not finished:
            return
        last = now
        of = f" of {total:,.0f}" if total else ""
        left = (
            f", about {(now - started) * (total - done) / done:,.0f} s left" if total and done and not finished else ""
        )
        say(f"{what}: {done:,.0f}{of}{left}{'; ' + note if note else ''}")

    return report
