"""Colours of labels: apart in hue, and in lightness as well, for eyes and printers that see no hue."""

import colorsys

# From dark to light and back, so that neighbours differ most: lightness of about 25, 68, 45, 58, 35, 76, 52, 40 of 100.
FEW = ("#1f3b8f", "#e8a200", "#b3261e", "#2f9e74", "#6a2c91", "#7cc4f0", "#c2649b", "#7a4a1c")

# Of documents; the star and the triangle belong to verbalizers and descriptions.
MARKERS = ("o", "s", "D", "P", "X", "p", "h", "d")

GOLDEN_RATIO = 0.618033988749895
GREYS = (0.25, 0.68, 0.46)


def label_colours(count: int) -> list[str]:
    """Return one colour per label, `#rrggbb`; the same label count gives the same colours.

    Args:
        count: how many labels; beyond eight, hues go round by the golden ratio, in three shades of grey by turns.

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
    """Return what a grey printer makes of a colour, 0 black to 1 white (Rec. 601)."""
    return 0.299 * red + 0.587 * green + 0.114 * blue


def _of_grey(hue: float, grey: float) -> tuple[float, float, float]:
    """Return the colour of a hue that prints in this grey; of one HLS lightness, yellow is far paler than blue."""
    low, high = 0.0, 1.0
    for _ in range(20):
        middle = (low + high) / 2
        low, high = (middle, high) if grey_of(*colorsys.hls_to_rgb(hue, middle, 0.7)) < grey else (low, middle)
    return colorsys.hls_to_rgb(hue, low, 0.7)
