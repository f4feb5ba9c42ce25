"""Create and write figures: one style, no pyplot, the format by extension, reproducible bytes."""

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

# Metadata to leave out of each format (date, program), so that the same figure gives the same bytes.
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
    "text.parse_math": False,  # a label may contain dollar signs
    "text.usetex": False,
    "svg.hashsalt": "labelspace",
    "svg.fonttype": "path",
    "legend.frameon": False,
}


def files_of(path: str | Path) -> list[Path]:
    """Return the files to write; refuse an unknown extension before anything is drawn."""
    path = Path(path)
    if not path.suffix:
        return [path.with_name(path.name + suffix) for suffix in (".png", ".svg")]
    if path.suffix.lower() not in FORMATS:
        raise OutputError(f"{path}: a figure is written as {', '.join(FORMATS)}; use one of these, or no extension.")
    return [path]


def short(name: str, most: int) -> str:
    """Shorten a name to at most `most` characters."""
    return name if len(name) <= most else name[: most - 1] + "…"


@contextmanager
def drawing(what: str) -> Iterator[Any]:
    """Apply the style while a figure is drawn and written; yield a function (width, height in inches) -> Figure."""
    matplotlib = import_optional("matplotlib", package="matplotlib", extra="plot", purpose=what)
    from matplotlib.figure import Figure

    def new_figure(width: float, height: float) -> "Figure":
        return Figure(figsize=(round(width, 2), round(height, 2)), dpi=DOTS_PER_INCH, layout="constrained")

    with matplotlib.rc_context(STYLE), warnings.catch_warnings():
        # A label in a script that the font lacks is drawn as boxes; the warning must not fail a strict caller.
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
