"""Checks of the files and folders that a command draws into, before any work."""

from pathlib import Path

from labelspace.checks import import_optional
from labelspace.errors import ConfigError, OutputError


def check_picture(option: str, path: Path | None) -> None:
    """Refuse a path of a figure that cannot be written; None is no figure.

    Raises:
        ConfigError: an unknown extension.
        OutputError: its folder is missing.
        MissingDependencyError: matplotlib is not installed.
    """
    if path is None:
        return
    from labelspace.evaluate.drawing import FORMATS

    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"{option} must end in {', '.join(FORMATS)}. Got {path.name!r} instead.")
    check_folder(path.parent)
    import_optional("matplotlib", package="matplotlib", extra="plot", purpose=option)


def check_folder(folder: Path) -> None:
    """Refuse a folder that is not there.

    Raises:
        OutputError: there is no such folder.
    """
    if not folder.is_dir():
        raise OutputError(f"there is no folder {folder}; make it first.")
