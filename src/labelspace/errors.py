"""Every error labelspace raises on purpose, drawn as one tree.

    LabelSpaceError
    ├── ConfigError               (ValueError)         an option that makes no sense
    ├── LabelFileError            (ValueError)         a label file or label space that cannot be used
    ├── InputError                (ValueError)         documents or labels that cannot be used
    │   └── ColumnError           (KeyError)           a table without the column asked for
    ├── ShapeError                (ValueError)         tensors whose shapes do not fit
    ├── EncoderError              (ValueError)         an encoder that cannot be used
    │   ├── EncoderNotFoundError  (FileNotFoundError)  no such folder, package or reachable hub name
    │   └── RemoteCodeError       (PermissionError)    the encoder brings code and was not allowed to run it
    ├── ModelFolderError          (ValueError)         a saved model that is broken, unsafe, too new or of another kind
    ├── TrainingError             (RuntimeError)       training that cannot go on
    ├── OutputError               (OSError)            results that cannot be written
    └── MissingDependencyError    (ImportError)        an optional package that is not installed

Each class also inherits the built-in that a caller would catch. A message is one line: what was wrong,
what came, what to do. The warnings are `LabelSpaceWarning` (a `UserWarning`).
"""


class LabelSpaceError(Exception):
    """Base of every error that labelspace raises on purpose."""

    def __str__(self) -> str:
        # KeyError and OSError print their arguments in their own way; one line is enough for everybody.
        return str(self.args[0]) if self.args else ""


class ConfigError(LabelSpaceError, ValueError):
    """An option has a value that makes no sense, alone or beside the others."""


class LabelFileError(LabelSpaceError, ValueError):
    """A label file or a label space cannot be used; the message names file, line and label."""


class InputError(LabelSpaceError, ValueError):
    """Documents or labels given by the caller cannot be used."""


class ColumnError(InputError, KeyError):
    """A table has no column of the name asked for."""


class ShapeError(LabelSpaceError, ValueError):
    """Tensors do not have the shapes that a formula needs."""


class EncoderError(LabelSpaceError, ValueError):
    """An encoder cannot be used as asked."""


class EncoderNotFoundError(EncoderError, FileNotFoundError):
    """No folder, no package and no reachable hub name stands behind an encoder's name."""


class RemoteCodeError(EncoderError, PermissionError):
    """An encoder brings its own code, and nobody has allowed it by name."""


class ModelFolderError(LabelSpaceError, ValueError):
    """A saved model is truncated, unsafe (it holds a pickle), of a newer format or of another kind."""


class TrainingError(LabelSpaceError, RuntimeError):
    """Training cannot go on, for example because the loss is no longer finite."""


class OutputError(LabelSpaceError, OSError):
    """Results cannot be written; what was finished before stays on disk."""


class MissingDependencyError(LabelSpaceError, ImportError):
    """An optional package is not installed; the message holds the install command."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(f"{purpose} needs the package '{package}'; install it with: pip install 'labelspace[{extra}]'")
        self.package = package
        self.extra = extra


class LabelSpaceWarning(UserWarning):
    """Something the caller should know, though the work goes on."""
