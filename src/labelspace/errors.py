"""The tree of all errors that labelspace raises on purpose.

    LabelSpaceError
    ├── ConfigError               (ValueError)         an invalid option
    ├── LabelFileError            (ValueError)         a label file or label space that cannot be used
    ├── InputError                (ValueError)         documents or labels that cannot be used
    │   └── ColumnError           (KeyError)           a table without the requested column
    ├── ShapeError                (ValueError)         tensors whose shapes do not match
    ├── EncoderError              (ValueError)         an encoder that cannot be used
    │   ├── EncoderNotFoundError  (FileNotFoundError)  no such folder, package or reachable hub name
    │   └── RemoteCodeError       (PermissionError)    an encoder with code of its own that was not allowed to run
    ├── ModelFolderError          (ValueError)         a saved model that is broken, unsafe, too new or of another kind
    ├── TrainingError             (RuntimeError)       training that cannot go on
    ├── OutputError               (OSError)            results that cannot be written
    └── MissingDependencyError    (ImportError)        an optional package that is not installed

Each class also inherits the built-in error that a caller would catch. A message is one line: what was wrong,
what came, what to do. Warnings are `LabelSpaceWarning` (a `UserWarning`).
"""

import inspect
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class LabelSpaceError(Exception):
    """Base of every error that labelspace raises on purpose."""

    def __str__(self) -> str:
        # KeyError and OSError would format their arguments differently.
        return str(self.args[0]) if self.args else ""


class ConfigError(LabelSpaceError, ValueError):
    """An option has an invalid value, alone or in combination with others."""


class LabelFileError(LabelSpaceError, ValueError):
    """A label file or a label space cannot be used; the message names the file, line and label."""


class InputError(LabelSpaceError, ValueError):
    """Documents or labels given by the caller cannot be used."""


class ColumnError(InputError, KeyError):
    """A table has no column of the requested name."""


class ShapeError(LabelSpaceError, ValueError):
    """Tensors do not have the shapes that a formula needs."""


class EncoderError(LabelSpaceError, ValueError):
    """An encoder cannot be used as asked."""


class EncoderNotFoundError(EncoderError, FileNotFoundError):
    """No folder, package or reachable hub repository has the encoder's name."""


class RemoteCodeError(EncoderError, PermissionError):
    """An encoder brings its own code, and the caller has not allowed it to run."""


class ModelFolderError(LabelSpaceError, ValueError):
    """A saved model is truncated, unsafe (it contains a pickle), of a newer format or of another kind."""


class TrainingError(LabelSpaceError, RuntimeError):
    """Training cannot go on, for example because the loss is no longer finite."""


class OutputError(LabelSpaceError, OSError):
    """Results cannot be written; those already written stay on disk."""


class MissingDependencyError(LabelSpaceError, ImportError):
    """An optional package is not installed; the message contains the install command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}'; install it with: pip install 'labelspace[{extra}]'")
        self.package = package
        self.extra = extra
        self.purpose = purpose

    def __reduce__(self) -> "tuple[type[MissingDependencyError], tuple[str, str, str]]":
        # A worker process sends its errors; by default only the message would come, for three arguments.
        return type(self), (self.package, self.extra, self.purpose)


class LabelSpaceWarning(UserWarning):
    """Something the caller should know; the work continues."""


_FILTERS = threading.RLock()
_UNSAID: ContextVar[tuple[str, ...]] = ContextVar("unsaid", default=())


@contextmanager
def own_filters() -> Iterator[None]:
    """Let the block set warning filters of its own, which end with it.

    Filters belong to the process. Of two threads that put back what they found, the later one would put back what the
    other had set, and hide the user's warnings for good; so one thread at a time is here.
    """
    with _FILTERS, warnings.catch_warnings():  # noqa: TID251
        yield


@contextmanager
def unsaid(start: str) -> Iterator[None]:
    """Leave out our own warnings that start so, in this thread, where the caller knows better what happened.

    Example:
        >>> with unsaid("training was"):
        ...     warn("training was interrupted.")
    """
    token = _UNSAID.set((*_UNSAID.get(), start))
    try:
        yield
    finally:
        _UNSAID.reset(token)


def warn(message: str) -> None:
    """Warn with a `LabelSpaceWarning` that tells the line outside of labelspace from which the call came."""
    if message.startswith(_UNSAID.get()):
        return
    level, frame = 1, inspect.currentframe()
    # contextlib stands between the two halves of a context manager of ours.
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] in ("labelspace", "contextlib"):
        level, frame = level + 1, frame.f_back
    warnings.warn(message, LabelSpaceWarning, stacklevel=level)  # noqa: TID251
