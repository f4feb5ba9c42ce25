"""Macro-F1 against uniformity over learning rates (Figure 3), to check the rule that chooses the rate."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from labelspace.bench.statistics import regression
from labelspace.evaluate.drawing import drawing, files_of, short, write_figure

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap

LEAST_RANGE = 0.05
"""Minimum range of the x-axis, so that points that hardly differ are drawn close together."""


class RatePoint(NamedTuple):
    """One run: uniformity and score after training at a learning rate."""

    learning_rate: float
    """Learning rate of the run."""

    uniformity: float
    """Uniformity of the pool after training; lower is more uniform."""

    score: float
    """Macro-F1, 0 to 1."""

    chosen: bool
    """True for the rate of lowest uniformity, which the rule of section 3.1 chooses."""


def rates_figure(panels: Mapping[tuple[str, str], Sequence[RatePoint]], path: str | Path) -> tuple[Path, ...]:
    """Draw macro-F1 over uniformity, a dot for each learning rate, with the least-squares line and Pearson's r.

    A falling line means that lower uniformity goes with a better score, which the rule for the learning rate assumes.
    The band is the 95 % interval of the mean; the most uniform rate is a star.

    Args:
        panels: points by (encoder, data set): a row for each encoder, a column for each data set.
        path: a .png, .svg or .pdf file; without an extension both .png and .svg are written.

    Returns:
        The files written.

    Reference:
        "Description-only supervision", Figure 3.
    """
    down, across = (list(dict.fromkeys(name[side] for name in panels)) for side in (0, 1))
    with drawing("the figure of learning rates") as new_figure:
        from matplotlib.cm import ScalarMappable
        from matplotlib.colors import LogNorm

        figure = new_figure(2.5 * len(across) + 1.3, 2.4 * len(down) + 0.8)
        rates = sorted({point.learning_rate for panel in panels.values() for point in panel})
        colours = ScalarMappable(LogNorm(rates[0] / 1.001, rates[-1] * 1.001), progress_colours())
        grid = figure.subplots(len(down), len(across), squeeze=False)
        for row, encoder in enumerate(down):
            there = [column for column, data_set in enumerate(across) if (encoder, data_set) in panels]
            for column, axes in enumerate(grid[row]):
                if column not in there:  # an encoder may lack a data set
                    axes.set_axis_off()
                    continue
                panel = panels[encoder, across[column]]
                _draw_panel(axes, panel, colours)
                words = [short(across[column], 34)] if row == 0 else []
                axes.set_title("\n".join([*words, _pearson(panel)]), fontsize=8.5)
            grid[row, there[0]].set_ylabel(short(encoder, 34), fontsize=8.5)
        figure.supxlabel("uniformity of the pool (further left: better spread)", fontsize=9)
        figure.supylabel("macro-F1", fontsize=9)
        bar = figure.colorbar(colours, ax=grid.ravel().tolist(), shrink=max(0.4, 1 / len(down)), aspect=25)
        _label_rates(bar, rates)
        return write_figure(figure, files_of(path))


def progress_colours() -> "Colormap":
    """Return colours from dark to light that stay visible on white."""
    import matplotlib
    from matplotlib.colors import ListedColormap

    return ListedColormap(matplotlib.colormaps["cividis"](np.linspace(0.0, 0.92, 256)), name="progress")


def rate_words(rate: float) -> str:
    """Format a learning rate, such as 3e-5."""
    mantissa, _, power = f"{rate:.2e}".partition("e")
    return f"{float(mantissa):g}e{int(power)}"


def _pearson(panel: Sequence[RatePoint]) -> str:
    from scipy.stats import pearsonr

    across, up = [point.uniformity for point in panel], [point.score for point in panel]
    if len(panel) < 3 or len(set(across)) < 2 or len(set(up)) < 2:
        return "no r: too few points"
    found: Any = pearsonr(across, up)
    return f"Pearson's r = {found.statistic:.2f}"


def _draw_panel(axes: "Axes", panel: Sequence[RatePoint], colours: Any) -> None:
    across = np.array([point.uniformity for point in panel])
    up = np.array([point.score for point in panel])
    margin = 0.08 * max(float(np.ptp(across)), LEAST_RANGE)
    if len(set(across.tolist())) > 1:
        at = np.linspace(across.min() - margin, across.max() + margin, 60)
        line = regression(across, up, at)
        axes.plot(at, line.at, color="#666666", linewidth=1.0, linestyle="--", zorder=1)
        if line.half_width is not None:
            low, high = line.at - line.half_width, line.at + line.half_width
            axes.fill_between(at, low, high, color="#e0e0e0", linewidth=0, zorder=0.4)
    for point in panel:
        axes.scatter(
            point.uniformity,
            point.score,
            s=90 if point.chosen else 26,
            marker="*" if point.chosen else "o",
            color=colours.to_rgba(point.learning_rate),
            edgecolors="black",
            linewidths=0.7 if point.chosen else 0.4,
            zorder=3 if point.chosen else 2,
        )
    # Set the range by the points, as the band may be far wider.
    room = max(0.25 * float(np.ptp(up)), 0.01)
    axes.set_ylim(up.min() - room, up.max() + room)
    axes.set_xlim(across.min() - margin, across.max() + margin)
    axes.ticklabel_format(useOffset=False)
    axes.locator_params(nbins=4)
    axes.grid(color="#ececec", linewidth=0.5)
    axes.set_axisbelow(True)


def _label_rates(bar: Any, rates: Sequence[float]) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter, NullLocator

    bar.set_label("learning rate (star: most uniform)")
    bar.set_ticks(rates)
    bar.ax.yaxis.set_minor_locator(NullLocator())
    bar.ax.yaxis.set_minor_formatter(NullFormatter())
    bar.ax.yaxis.set_major_formatter(FuncFormatter(lambda rate, _: rate_words(rate)))
