"""Colours of labels: apart in hue, and in lightness as well, for eyes and printers that see no hue."""

import colorsys

# From dark to light and back, so that neighbours differ most: lightness of about 25, 68, 45, 58, 35, 76, 52, 40 of 100.
FEW = ("#1f3b8f", "#e8a200", "#b3261e", "#2f9e74", "#6a2c91", "#7cc4f0", "#c2649b", "#7a4a1c")

# Of documents; the star and the triangle belong to verbalizers and descriptions.
MARKERS = ("o", "s", "D", "P", "X", "p", "h", "d")

GOLDEN_RATIO = 0.618033988749895
LIGHTNESS = (0.28, 0.62, 0.44)


def label_colours(count: int) -> list[str]:
    """Return one colour per label, `#rrggbb`; the same label count gives the same colours.

    Args:
        count: how many labels; beyond eight, hues go round by the golden ratio in three lightnesses.

    Example:
        >>> label_colours(2), len(set(label_colours(150)))
        (['#1f3b8f', '#e8a200'], 150)
    """
    if count <= len(FEW):
        return list(FEW[:count])
    colours = []
    for number in range(count):
        rgb = colorsys.hls_to_rgb(0.6 + number * GOLDEN_RATIO % 1.0, LIGHTNESS[number % len(LIGHTNESS)], 0.7)
        colours.append("#" + "".join(f"{round(255 * part):02x}" for part in rgb))
    return colours
