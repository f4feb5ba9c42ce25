"""Output: results on stdout, everything else on stderr; only our own messages, one line each."""

import json
import logging
import math
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from labelspace.errors import LabelSpaceWarning
from labelspace.progress import say
from labelspace.shell import command_line

if TYPE_CHECKING:
    from rich.console import Console

_logger = logging.getLogger("labelspace")
_NOISY = ("transformers", "sentence_transformers", "huggingface_hub", "umap", "matplotlib")
# Width of tables if stdout is not a terminal, wide enough that nothing is cut.
WIDTH_ELSEWHERE = 160


def one_line(message: object) -> str:
    """Return a message without line breaks.

    Example:
        >>> one_line("one\\n  two")
        'one two'
    """
    return " ".join(str(message).split())


def harmless(text: str) -> str:
    """Return a text for stdout; on a terminal without codes that would clear it, or write to the clipboard."""
    if not sys.stdout.isatty():
        return text
    return re.sub(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", lambda found: f"\\x{ord(found[0]):02x}", text)


tell = say
"""Print a message on stderr."""


def note(message: str) -> None:
    """Print a note on stderr; `--quiet` hides it."""
    _logger.info(message)


def resuming() -> str:
    """Return the command line that resumes this run."""
    words = [word for word in sys.argv[1:] if word not in ("--resume", "--overwrite")]
    return command_line("labelspace", *words, "--resume")


def hush(quiet: bool) -> None:
    """Hide notes for the rest of the command, if `quiet`."""
    if quiet:
        _logger.setLevel(logging.WARNING)


def print_json(value: Any, *, indent: int | None = 2) -> None:
    """Print plain values as strict JSON; NaN and infinities become null."""
    narrow = not str(sys.stdout.encoding).lower().startswith("utf")
    print(json.dumps(_plain(value), ensure_ascii=narrow, indent=indent, allow_nan=False))


def print_pairs(pairs: Sequence[tuple[str, str]]) -> None:
    """Print `name  value` lines with the values in one column."""
    from labelspace.text_table import text_table

    print(text_table(pairs, left=(0, 1)))


def console() -> "Console":
    """Return a console on stdout; colours on a terminal, fixed width elsewhere."""
    from rich.console import Console

    class Piped(Console):
        def on_broken_pipe(self) -> None:
            raise  # rich would end with 1; the command ends as with `print`

    return Piped(file=sys.stdout, highlight=False, width=None if sys.stdout.isatty() else WIDTH_ELSEWHERE)


@contextmanager
def busy(what: str, *, quiet: bool = False) -> Iterator[None]:
    """Show a spinner on a terminal during work of unknown length."""
    if quiet or not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(f"{what} ..."):
        yield


@contextmanager
def only_our_words() -> Iterator[None]:
    """Print labelspace's warnings and notes on one line each, and hide those of other libraries."""
    handler = _Notes()
    levels = {name: logging.getLogger(name).level for name in (*_NOISY, _logger.name)}
    for name in _NOISY:
        logging.getLogger(name).setLevel(logging.ERROR)
    _logger.setLevel(logging.INFO)
    _logger.addHandler(handler)
    try:
        with warnings.catch_warnings():  # noqa: TID251  # as long as the command, so threads must not wait for it
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
    """Return a `showwarning` that prints each warning once; a file is opened twice, to check and to read it."""
    told: set[str] = set()

    def show(message: Warning | str, category: type[Warning], *_: object, **__: object) -> None:
        line = one_line(message)
        # Check the category again: libraries change the filters when they are imported.
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
