"""The figures of docs/uncertainty-study.md: options (Fig. 3), maps (Fig. 4), errors by uncertainty (Fig. 5)."""

import statistics
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from panels import Figures, bare, dots, panelled, quiet
from store import results

from labelspace.evaluate.palette import FEW, MARKERS
from uncertainty.experiments import CURVE_POINTS, SHOWN, SHOWN_VARIANTS
from uncertainty.report import ENCODERS, OPTIONS, STUDY, TITLES, compared, grid_runs, runs_of
from uncertainty.sets import SETS
from uncertainty.variants import GRID, GRID_SETS, PARTS, full_config


def grid_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: one option at a time; dashed: the default."""
    found = {key: 100 * run["accuracy"] for key, run in grid_runs(ENCODERS[0]).items()}

    def panel(option: str, axes: Any) -> None:
        # Evenly spaced values: KL weights include 0 and span five powers of ten.
        values, first = GRID[option], option == next(iter(GRID))
        for place, name in enumerate(GRID_SETS):
            there = [number for number, value in enumerate(values) if (option, value, name) in found]
            scores = [found[option, values[number], name] for number in there]
            axes.plot(there, scores, color=FEW[place], marker=MARKERS[place], markersize=4, label=SETS[name])
        axes.axvline(values.index(full_config({})[option]), color="#888888", linestyle="--", linewidth=0.9)
        axes.set_xticks(range(len(values)), [f"{value:g}" for value in values], fontsize=7)
        axes.set_xlabel(OPTIONS[option])
        axes.set_ylabel("accuracy, %" if first else "")
        quiet(axes)
        if first:
            axes.legend(fontsize=7)

    return panelled(path, [partial(panel, option) for option in GRID if found], (3.0 * len(GRID) + 0.4, 2.9))


def maps_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: t-SNE of test rows, with a colour and marker per label as far as they last; large: uncertain."""
    runs = [run for part in ("main", "ablations") for run in results(STUDY, part, encoder=ENCODERS[0])]
    found = {(run["set"], run["variant"]): _points(run["points"]) for run in runs if "points" in run}
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
    every = {name: runs_of("main", ENCODERS[0], name, "textcnn-both") for name in SETS}
    runs = {name: own for name, own in every.items() if own}
    shares = np.linspace(0, 1, CURVE_POINTS)[:-1]  # the last point would be the accuracy of one document
    columns = min(4, len(runs))
    sets = list(runs)

    def panel(name: str, axes: Any) -> None:
        own, found = runs[name], compared(ENCODERS[0], name)
        for kind, (by, stroke) in enumerate((("uncertainty", "-"), ("entropy", (0, (6, 2))))):
            means = [statistics.fmean(values) for values in zip(*(run["curve"][by] for run in own), strict=True)]
            axes.plot(shares, means[:-1], color=FEW[kind], linestyle=stroke, linewidth=1.4, label=f"by {by}")
        if found and "textcnn-base" in found["by_ucl"]:  # the paper's other curve
            means = found["by_ucl"]["textcnn-base"]["curve"]
            words = "TextCNN, by UCL's uncertainty"
            axes.plot(shares, means[:-1], color=FEW[2], linestyle=":", linewidth=1.4, label=words)
        axes.axhline(statistics.fmean(run["accuracy"] for run in own), color="#808080", linewidth=0.9)
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
