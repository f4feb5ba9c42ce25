"""The figures of docs/uncertainty-study.md: options (Fig. 3), maps (Fig. 4), errors by uncertainty (Fig. 5)."""

import statistics
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from panels import Figures, bare, dots, panelled, quiet

from labelspace.evaluate.palette import FEW, MARKERS
from uncertainty.experiments import CURVE_POINTS, SHOWN, SHOWN_VARIANTS
from uncertainty.report import ENCODERS, OPTIONS, TITLES, by_place, compared, grid_runs, runs_of
from uncertainty.sets import SETS
from uncertainty.variants import GRID, GRID_SETS, PARTS, full_config


def grid_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: one option at a time; dashed: the default."""
    found = 100 * grid_runs(ENCODERS[0]).set_index(["option", "set", "value"]).accuracy.sort_index()

    def panel(option: str, axes: Any) -> None:
        # Evenly spaced values: KL weights include 0 and span five powers of ten.
        values, first = GRID[option], option == next(iter(GRID))
        for place, name in enumerate(GRID_SETS):
            scores = found.get((option, name), pd.Series()).reindex(values).dropna()
            there = [values.index(value) for value in scores.index]
            axes.plot(there, scores, color=FEW[place], marker=MARKERS[place], markersize=4, label=SETS[name])
        axes.axvline(values.index(full_config({})[option]), color="#888888", linestyle="--", linewidth=0.9)
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values], fontsize=7)
        axes.set_xlabel(OPTIONS[option])
        axes.set_ylabel("accuracy, %" if first else "")
        quiet(axes)
        if first:
            axes.legend(fontsize=7)

    return panelled(path, [partial(panel, option) for option in GRID if len(found)], (3.0 * len(GRID) + 0.4, 2.9))


def maps_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: t-SNE of test rows, with a colour and marker per label as far as they last; large: uncertain."""
    runs = pd.concat(
        [runs_of(part, "set", "variant", "points", encoder=ENCODERS[0]) for part in ("main", "ablations")]
    ).dropna()
    found = runs.set_index(["set", "variant"]).points.map(_points).to_dict()
    panels = [(name, one) for name, one in product(SHOWN, SHOWN_VARIANTS) if any(name == own for own, _ in found)]

    def panel(name: str, variant: str, axes: Any) -> None:
        points = found.get((name, variant), [])
        stds = [std for *_, std in points]
        low, high = min(stds, default=0), max(stds, default=1)
        for place, label in enumerate(sorted({label for _, _, label, _ in points})):
            own = [point for point in points if point[2] == label]
            sizes = [4 + 14 * (std - low) / max(high - low, 1e-9) for *_, std in own]
            dots(axes, own, place, s=sizes, alpha=0.6)
        bare(axes)
        axes.set_title(f"{SETS[name]}: {TITLES[variant]}", fontsize=8)

    columns = len(PARTS)
    size = (2.5 * columns + 0.2, 2.6 * len(panels) / columns + 0.2)
    return panelled(path, [partial(panel, *one) for one in panels], size, columns=columns)


def _points(words: str) -> list[list[float]]:
    """Parse x, y, label and uncertainty of each text."""
    return [[float(value) for value in point.split(",")] for point in words.split()]


def rejection_figure(path: Path) -> tuple[Path, ...]:
    """Figure 5: accuracy on the rest against the share rejected, a panel for each set; means over seeds."""
    runs = {name: own for one, name, own in by_place("main", variant="textcnn-both") if one == ENCODERS[0]}
    shares = np.linspace(0, 1, CURVE_POINTS)[:-1]  # the last point would be the accuracy of one document
    columns = min(4, len(runs))
    sets = list(runs)

    def panel(name: str, axes: Any) -> None:
        own, found = runs[name], compared(ENCODERS[0], name)
        for kind, (by, stroke) in enumerate((("uncertainty", "-"), ("entropy", (0, (6, 2))))):
            means = [*map(statistics.fmean, zip(*own[f"curve.{by}"], strict=True))]
            axes.plot(shares, means[:-1], color=FEW[kind], linestyle=stroke, linewidth=1.4, label=f"by {by}")
        if found and "textcnn-base" in found["by_ucl"]:  # the paper's other curve
            means = found["by_ucl"]["textcnn-base"]["curve"]
            words = "TextCNN, by UCL's uncertainty"
            axes.plot(shares, means[:-1], color=FEW[2], linestyle=":", linewidth=1.4, label=words)
        axes.axhline(statistics.fmean(own.accuracy), color="#808080", linewidth=0.9)
        axes.set_title(SETS[name], fontsize=8)
        axes.tick_params(labelsize=7)
        if sets.index(name) >= len(sets) - columns:
            axes.set_xlabel("share rejected", fontsize=8)
        if sets.index(name) % columns == 0:
            axes.set_ylabel("accuracy of the rest", fontsize=8)

    def finish(figure: Any) -> None:
        figure.legend(*figure.axes[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=7)

    size = (2.8 * columns + 0.2, 2.5 * -(-len(sets) // max(1, columns)) + 0.2)
    return panelled(path, [partial(panel, name) for name in sets], size, columns=columns, finish=finish)


FIGURES: Figures = {
    "uncertainty-options": grid_figure,
    "uncertainty-maps": maps_figure,
    "uncertainty-rejection": rejection_figure,
}
