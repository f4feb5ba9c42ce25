"""What results have in common: plain values, a report, and how they look as the last line of a notebook's cell."""

from abc import ABC, abstractmethod
from dataclasses import asdict
from pathlib import Path
from typing import Any


def _show(result: Any, printer: Any, cycle: bool) -> None:
    printer.text("..." if cycle else str(result))


class Shown:
    """A result that a notebook shows as `print` does; `repr` stays that of a dataclass."""

    def __init_subclass__(cls) -> None:
        # In the class itself: IPython would take the `__repr__` of a dataclass before what that inherits.
        cls._repr_pretty_ = _show


class Plain:
    """A dataclass that JSON can hold."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)  # pyright: ignore[reportArgumentType]


class Report(Plain, Shown, ABC):
    """A result whose text is a report; `print` and a notebook show it."""

    @abstractmethod
    def to_text(self) -> str:
        """Return a report."""

    def __str__(self) -> str:
        return self.to_text()


class FigureFiles(tuple[Path, ...]):
    """The files of a figure; a notebook shows the picture, if one of them is a .png or an .svg."""

    __slots__ = ()

    def _repr_png_(self) -> bytes | None:
        return self._picture(".png")

    def _repr_svg_(self) -> str | None:
        # Either is enough, and the other may have megabytes.
        found = None if self._picture(".png") else self._picture(".svg")
        return None if found is None else found.decode()

    def _picture(self, suffix: str) -> bytes | None:
        return next((file.read_bytes() for file in self if file.suffix.lower() == suffix and file.is_file()), None)
