"""Results go to stdout, everything else to stderr; only our own words are shown, each thing on one line."""

import json
import logging
import math
import shlex
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labelspace.errors import LabelSpaceWarning

if TYPE_CHECKING:
    from rich.console import Console

_logger = logging.getLogger("labelspace")
_NOISY = ("transformers", "sentence_transformers", "huggingface_hub", "umap", "matplotlib")
# Where stdout is no terminal, nobody knows its width; tables should not be cut there.
WIDTH_ELSEWHERE = 160


def one_line(message: object) -> str:
    """Return a message without line breaks.

    Example:
        >>> one_line("one\\n  two")
        'one two'
    """
    return " ".join(str(message).split())


def tell(message: str) -> None:
    """Say something on stderr."""
    print(message, file=sys.stderr, flush=True)


def note(message: str) -> None:
    """Say something on stderr that `--quiet` leaves out."""
    _logger.info(message)


def resuming() -> str:
    """Return the command line that goes on from where this one was interrupted."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
    return f"labelspace {shlex.join(words)} --resume"


def hush(quiet: bool) -> None:
    """Leave notes out from here to the end of the command, if asked to."""
    if quiet:
        _logger.setLevel(logging.WARNING)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print plain values as JSON that every parser reads; NaN and infinities become null."""
    print(json.dumps(_plain(value), ensure_ascii=False, indent=indent, allow_nan=False))


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print `name  value` lines with the values in one column."""
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name:<{width}}  {value}")


def console() -> "Console":
    """Return a console on stdout: colours on a terminal only, no cut lines elsewhere."""
    from rich.console import Console

    return Console(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE)


@contextmanager
def busy(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show on a terminal that something goes on whose end nobody knows."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


@contextmanager
def only_our_words() -> Iterator[None]:
    """Show warnings and notes of labelspace as one line each, and nothing of the libraries below."""
    handler = _Notes()
    levels = {name: logging.getLogger(name).level for name in (*_NOISY, _logger.name)}
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    _logger.setLevel(logging.INFO)
    _logger.addHandler(handler)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", LabelSpaceWarning)
            warnings.showwarning = _shown_once()
            yield
    finally:
        _logger.removeHandler(handler)
        for name, level in levels.items():
            logging.getLogger(name).setLevel(level)


class _Notes(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        tell(f"note: {one_line(record.getMessage())}")


def _shown_once() -> Callable[..., None]:
    """Return what shows warnings; a file that is opened twice, to be checked and to be read, is warned of once."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        line = one_line(message)
        # Libraries set filters of their own when they are imported, so look again.
        if issubclass(category, LabelSpaceWarning) and line not in told:
            told.add(line)
            tell(f"warning: {line}")

    return show


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if hasattr(value, "tolist"):  # numpy
        return _plain(value.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value
