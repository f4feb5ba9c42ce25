"""Create and write figures: one style, no pyplot, the format by extension, reproducible bytes."""

import io
import re
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from labelspace.checks import import_optional
from labelspace.errors import OutputError, own_filters, warn
from labelspace.folders import write_atomically
from labelspace.notebook import FigureFiles

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Metadata to leave out of each format (date, program), so that the same figure gives the same bytes.
FORMATS: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None, "Creator": None},
    ".pdf": {"CreationDate": None, "Creator": None, "Producer": None},
}
DOTS_PER_INCH = 150
FONT = "DejaVu Sans"
"""The font of figures, which comes with matplotlib."""
MORE_FONTS = (
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans CJK KR", "Noto Sans CJK TC", "Noto Sans CJK", "Noto Sans SC"),
    *("Source Han Sans SC", "Source Han Sans", "WenQuanYi Micro Hei", "WenQuanYi Zen Hei", "Microsoft YaHei", "SimHei"),
    *("PingFang SC", "Hiragino Sans", "Yu Gothic", "Malgun Gothic", "Noto Sans Thai", "Noto Sans Arabic"),
    *("Noto Sans Devanagari", "Nirmala UI", "Tahoma", "Arial Unicode MS"),
)
"""Fonts for the characters that it lacks, as far as they are installed."""
STYLE: dict[str, Any] = {
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
_LACKING = re.compile(r"Glyph (\d+) .* missing from")


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

    lacking: dict[str, None] = {}
    with matplotlib.rc_context({**STYLE, "font.family": _fonts()}), own_filters():
        # matplotlib warns of every character each time that it is measured or drawn.
        warnings.filterwarnings("always", message=_LACKING.pattern, category=UserWarning)
        warnings.showwarning = _collecting(lacking)
        yield new_figure
    if lacking:
        first, *others = lacking
        more = f" and {len(others)} other character{'s' * (len(others) > 1)}" if others else ""
        warn(
            f"no installed font has {first!r}{more}, so the figure shows boxes; install a Noto Sans font of the script "
            "(Noto Sans CJK for Chinese, Japanese and Korean), or set matplotlib's font.family."
        )


def _fonts() -> list[str]:
    """Return the fonts to look for a character in: those that the user set, ours, and those of other scripts."""
    from matplotlib import font_manager, rcParams, rcParamsDefault

    def chosen(settings: Any) -> list[str]:
        return [name for family in settings["font.family"] for name in settings.get(f"font.{family}", [family])]

    own = chosen(rcParams)
    wanted = [*(own if own != chosen(rcParamsDefault) else ()), FONT, *MORE_FONTS]
    installed = {FONT, *font_manager.get_font_names()}
    return [name for name in dict.fromkeys(wanted) if name in installed]


def _collecting(lacking: dict[str, None]) -> Callable[..., None]:
    """Return a `showwarning` that notes the characters that no font has, and shows all other warnings."""
    show_other = warnings.showwarning

    def show(message: Warning | str, *rest: Any, **more: Any) -> None:
        found = _LACKING.match(str(message))
        if found is None:
            show_other(message, *rest, **more)
        else:
            lacking[chr(int(found[1]))] = None

    return show


def write_figure(figure: "Figure", files: Sequence[Path]) -> FigureFiles:
    """Write a figure in each format asked for, and return the files, which a notebook shows."""
    for file in files:
        kind = file.suffix.lower()
        drawn = io.BytesIO()
        figure.savefig(drawn, format=kind[1:], dpi=DOTS_PER_INCH, metadata=FORMATS[kind])
        write_atomically(file, drawn.getvalue())
    return FigureFiles(files)
