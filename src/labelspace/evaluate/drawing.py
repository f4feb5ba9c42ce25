"""How a figure comes to paper: one style, no pyplot, the formats by extension, the same bytes each time."""

import io
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.checks import import_optional
from labelspace.errors import OutputError
from labelspace.folders import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# What each format would otherwise tell of the day and the program, so that bytes repeat.
FORMATS: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
DOTS_PER_INCH = 150
STYLE: dict[str, Any] = {
    "font.family": ["DejaVu Sans"],
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.linewidth": 0.6,
    "axes.edgecolor": "#555555",
    "figure.facecolor": "white",
    "axes.facecolor": "white",
    "savefig.facecolor": "white",
    "savefig.bbox": None,
    "text.color": "#111111",
    "text.parse_math": False,  # a label may hold dollars
    "text.usetex": False,
    "svg.hashsalt": "labelspace",
    "svg.fonttype": "path",
    "legend.frameon": False,
}


def files_of(path: str | Path) -> list[Path]:
    """Return the files to write, and refuse before anything is drawn."""
    path = Path(path)
    if not path.suffix:
        return [path.with_name(path.name + suffix) for suffix in (".png", ".svg")]
    if path.suffix.lower() not in FORMATS:
        raise OutputError(f"{path}: a figure is written as {', '.join(FORMATS)}; use one of these, or no extension.")
    return [path]


def short(name: str, most: int) -> str:
    """Cut a name that is longer than so many characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


@contextmanager
def drawing(what: str) -> Iterator[Any]:
    """Hold the style while a figure is drawn and written, and yield what makes one of so many inches."""
    matplotlib = import_optional("matplotlib", package="matplotlib", extra="plot", purpose=what)
    from matplotlib.figure import Figure

    def new_figure(width: float, height: float) -> "Figure":
        return Figure(figsize=(round(width, 2), round(height, 2)), dpi=DOTS_PER_INCH, layout="constrained")

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A label in a script that the font lacks gets boxes; that is no reason to fail.
        warnings.filterwarnings("ignore", message=r"Glyph \d+ .* missing from", category=UserWarning)
        yield new_figure


def write_figure(figure: "Figure", files: Sequence[Path]) -> tuple[Path, ...]:
    """Write a figure in each format asked for, and return the files."""
    for file in files:
        kind = file.suffix.lower()
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind[1:], dpi=DOTS_PER_INCH, metadata=FORMATS[kind])
        write_atomically(file, drawn.getvalue())
    return tuple(files)
