"""The figures of the page of results: options (Fig. 3), maps (Fig. 4), errors by uncertainty (Fig. 5)."""

import statistics
from pathlib import Path
from typing import Any

import numpy as np
from store import results

from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS
from uncertainty.experiments import CURVE_POINTS, SHOWN, SHOWN_VARIANTS
from uncertainty.report import ENCODERS, STUDY, TITLES, compared, grid_runs, runs_of
from uncertainty.sets import SETS
from uncertainty.variants import GRID, GRID_SETS, PARTS, full_config

WORDS = {"kl_weight": "weight of KL", "contrastive_weight": "weight of LCL", "learning_rate": "learning rate"}


def grid_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: one option at a time; dashed: the default."""
    found = {key: 100 * run["accuracy"] for key, run in grid_runs(ENCODERS[0]).items()}
    if not found:
        return ()
    with drawing("options") as new_figure:
        figure = new_figure(3.0 * len(GRID) + 0.4, 2.9)
        for column, (option, values) in enumerate(GRID.items(), 1):
            axes = figure.add_subplot(1, len(GRID), column)
            # Values side by side, whatever lies between them: weights of KL go from 0 over five powers of ten.
            for place, name in enumerate(GRID_SETS):
                there = [number for number, value in enumerate(values) if (option, value, name) in found]
                scores = [found[option, values[number], name] for number in there]
                axes.plot(there, scores, color=FEW[place], marker=MARKERS[place], markersize=4, label=SETS[name])
            axes.axvline(values.index(full_config({})[option]), color="#888888", linestyle="--", linewidth=0.9)
            axes.set_xticks(range(len(values)), [f"{value:g}" for value in values], fontsize=7)
            axes.set_xlabel(WORDS[option])
            axes.set_ylabel("accuracy, %" if column == 1 else "")
            axes.grid(color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
            if column == 1:
                axes.legend(fontsize=7)
        return write_figure(figure, files_of(path))


def maps_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: test rows by t-SNE, each label its own shade and marker as far as they go; large: uncertain."""
    runs = [run for part in ("main", "ablations") for run in results(STUDY, part, encoder=ENCODERS[0])]
    found = {(run["set"], run["variant"]): _points(run) for run in runs if "points" in run}
    sets = [name for name in SHOWN if any(key[0] == name for key in found)]
    if not sets:
        return ()
    extractors, columns = list(dict.fromkeys(one.partition("-")[0] for one in SHOWN_VARIANTS)), len(PARTS)
    with drawing("t-SNE") as new_figure:
        figure = new_figure(2.5 * columns + 0.2, 2.6 * len(sets) * len(extractors) + 0.2)
        panels = [(name, variant) for name in sets for variant in SHOWN_VARIANTS]
        for place, (name, variant) in enumerate(panels, 1):
            axes = figure.add_subplot(len(panels) // columns, columns, place)
            _map(axes, found.get((name, variant), []))
            axes.set_title(f"{SETS[name]}: {TITLES[variant]}", fontsize=8)
        return write_figure(figure, files_of(path))


def _points(run: dict[str, Any]) -> list[list[float]]:
    """x, y, label and uncertainty of each text."""
    return [[float(value) for value in point.split(",")] for point in run["points"].split()]


def rejection_figure(path: Path, encoder: str = ENCODERS[0]) -> tuple[Path, ...]:
    """Figure 5: accuracy of what is left against the share rejected, a panel for each set; means over seeds."""
    runs = {name: runs_of("main", encoder, name, "textcnn-both") for name in SETS}
    sets = [name for name, own in runs.items() if own]
    if not sets:
        return ()
    shares = np.linspace(0, 1, CURVE_POINTS)[:-1]  # the last point would be the accuracy of one document
    with drawing("rejection curves") as new_figure:
        columns = min(4, len(sets))
        lines = -(-len(sets) // columns)
        figure = new_figure(2.8 * columns + 0.2, 2.5 * lines + 0.2)
        for place, name in enumerate(sets, 1):
            axes = figure.add_subplot(lines, columns, place)
            own, found = runs[name], compared(encoder, name)
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
            if place == 1:
                figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, fontsize=7)
            if place > len(sets) - columns:
                axes.set_xlabel("share rejected", fontsize=8)
            if place % columns == 1:
                axes.set_ylabel("accuracy of the rest", fontsize=8)
        return write_figure(figure, files_of(path))


def all_figures(folder: Path) -> list[Path]:
    """Draw what there are results for, and return the files."""
    drawn = [
        *grid_figure(folder / "uncertainty-options"),
        *maps_figure(folder / "uncertainty-maps"),
        *rejection_figure(folder / "uncertainty-rejection"),
    ]
    for file in drawn:
        if file.suffix == ".svg":  # the page shows the PNG
            file.unlink()
    return [file for file in drawn if file.suffix == ".png"]


def _map(axes: Any, points: list[list[float]]) -> None:
    labels = sorted({point[2] for point in points})
    stds = [point[3] for point in points]
    low, high = min(stds, default=0), max(stds, default=1)
    for place, label in enumerate(labels):
        own = [point for point in points if point[2] == label]
        sizes = [4 + 14 * (point[3] - low) / max(high - low, 1e-9) for point in own]
        axes.scatter(
            [point[0] for point in own],
            [point[1] for point in own],
            s=sizes,
            color=FEW[place % len(FEW)],
            marker=MARKERS[place % len(MARKERS)],
            alpha=0.6,
            linewidths=0,
        )
    axes.set_xticks([])
    axes.set_yticks([])
