"""What the tests of figures look at in a file."""

import re
import struct
from pathlib import Path

from labelspace.evaluate.palette import grey_of


def png_size(path: Path) -> tuple[int, int]:
    """Width and height in pixels."""
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def words_of(svg: Path) -> list[str]:
    """The texts of an SVG, which matplotlib leaves as comments beside the drawn glyphs."""
    return [word.strip() for word in re.findall(r"<!-- (.*?) -->", svg.read_text(), flags=re.DOTALL)]


def nothing_is_cut(png: Path) -> bool:
    """True where the outermost pixels are white all around."""
    from matplotlib.image import imread

    pixels = imread(png)[..., :3]
    sides = (pixels[:2], pixels[-2:], pixels[:, :2], pixels[:, -2:])
    return all(bool((side > 0.99).all()) for side in sides)


def greys(colours: list[tuple[float, ...]]) -> list[float]:
    """What a grey printer makes of colours."""
    return [grey_of(*colour[:3]) for colour in colours]
