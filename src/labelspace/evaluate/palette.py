"""Colours of labels that differ in hue and in lightness, so that they stay distinct in greyscale."""

import colorsys

# Ordered so that neighbours differ most in lightness: about 25, 68, 45, 58, 35, 76, 52, 40 of 100.
FEW = ("#1f3b8f", "#e8a200", "#b3261e", "#2f9e74", "#6a2c91", "#7cc4f0", "#c2649b", "#7a4a1c")

# Markers of documents; the star and the triangle are reserved for verbalizers and descriptions.
MARKERS = ("o", "s", "D", "P", "X", "p", "h", "d")

GOLDEN_RATIO = 0.618033988749895
GREYS = (0.25, 0.68, 0.46)


def label_colours(count: int) -> list[str]:
    """Return one colour per label as `#rrggbb`; the same count gives the same colours.

    Args:
        count: number of labels. Beyond eight, hues step by the golden ratio and rotate through three grey levels.

    Example:
        >>> label_colours(2), len(set(label_colours(150)))
        (['#1f3b8f', '#e8a200'], 150)
    """
    if count <= len(FEW):
        return list(FEW[:count])
    colours = []
    for number in range(count):
        rgb = _of_grey((0.6 + number * GOLDEN_RATIO) % 1.0, GREYS[number % len(GREYS)])
        colours.append("#" + "".join(f"{round(255 * part):02x}" for part in rgb))
    return colours


def grey_of(red: float, green: float, blue: float) -> float:
    """Return the grey level of a colour, from 0 (black) to 1 (white), by Rec. 601."""
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _of_grey(hue: float, grey: float) -> tuple[float, float, float]:
    """Return the colour of a hue at a grey level; at equal HLS lightness, yellow is far paler than blue."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if grey_of(*colorsys.hls_to_rgb(hue, middle, 0.7)) < grey else (low, middle)
    return colorsys.hls_to_rgb(hue, low, 0.7)
