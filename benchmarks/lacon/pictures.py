"""The figures of docs/lacon.md: few rows (Fig. 2), imbalance (3), t-SNE (4), options (5), classes (6), the curve."""

import statistics
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
from panels import Figures, bare, dots, level, line, panelled, quiet

from labelspace.config import LaConConfig
from labelspace.evaluate.palette import FEW
from lacon.aims import CURVES, TITLES, curve_runs
from lacon.curve import COUNTS, TASKS
from lacon.experiments import CLASS_METHODS, DEGREES, PER_CLASS
from lacon.methods import METHODS
from lacon.report import OPTIONS, grid_points
from lacon.runs import METRICS, runs_of, scored, titles_of
from lacon.sets import FEW as FEW_SETS
from lacon.sets import SETS

# Places in the palette: methods of one picture get very different colours.
PLACES = {"ce": 0, "lacon-vanilla": 1, "ce-scl": 2, "lacon-fusion": 3}
Lines = Mapping[str, Mapping[Any, Sequence[float]]]


def few_figure(path: Path) -> tuple[Path, ...]:
    """Figure 2: rows of each class against the score, CE and LaCon; a panel for each set with two counts or more."""
    found = {name: _by_method("few", name, "per_class") for name in FEW_SETS}
    found = {name: lines for name, lines in found.items() if any(len(points) > 1 for points in lines.values())}
    return _counted(path, found, "rows of each class", PER_CLASS)


def imbalance_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: the degree of imbalance against the score."""
    found = {name: _by_method("imbalance", name, "degree") for name in titles_of(scored("imbalance"))}
    return _counted(path, found, "rows of the larger class for one of the smaller", DEGREES)


def classes_figure(path: Path) -> tuple[Path, ...]:
    """Figure 6: the number of DBpedia's labels against accuracy."""
    lines = _by_method("classes", "dbpedia", "classes")
    lines = {method: lines[method] for method in CLASS_METHODS if method in lines}
    counts = sorted({int(count) for points in lines.values() for count in points})
    return _counted(path, {"dbpedia": lines} if lines else {}, "labels", counts)


def _by_method(part: str, name: str, along: str) -> Lines:
    points = scored(part, "method", along, set=name).groupby(["method", along]).score.agg(list)
    return {method: points[method].to_dict() for method in METHODS if method in points}


def _counted(path: Path, found: Mapping[str, Lines], across: str, ticks: Sequence[int]) -> tuple[Path, ...]:
    """Draw a panel for each data set and a line for each method, with evenly spaced counts on the x-axis."""
    places = {count: place for place, count in enumerate(ticks)}

    def panel(name: str, axes: Any) -> None:
        for method, points in found[name].items():
            line(
                axes, {places[int(count)]: own for count, own in points.items()}, PLACES[method], METHODS[method].title
            )
        axes.set_xticks(list(places.values()), [str(count) for count in ticks])
        axes.set_ylabel(METRICS[SETS[name].metric])
        axes.set_title(SETS[name].title)
        quiet(axes)

    def finish(figure: Any) -> None:
        figure.supxlabel(across, fontsize=9)
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))

    size = (max(3.0 * len(found), 3.6) + 0.4, 3.2)
    return panelled(path, [partial(panel, name) for name in found], size, finish=finish)


def grid_figure(path: Path) -> tuple[Path, ...]:
    """Figure 5: temperature, heads and weight of the regularizer, one at a time; dashed: the default."""
    found = grid_points()
    default = runs_of("grid", *(f"point.{name}" for name in OPTIONS), change="default")

    def panel(name: str, axes: Any) -> None:
        points = found[name].to_dict() if name in found else {}
        line(axes, points, 0, OPTIONS[name])
        usual = default[f"point.{name}"].iloc[0] if len(default) else getattr(LaConConfig, name)
        axes.axvline(usual, color="#888888", linestyle="--", linewidth=0.9)
        if name == "heads":
            axes.set_xticks(list(points))
        axes.set_xlabel(OPTIONS[name])
        source = SETS[next(iter(titles_of(scored("grid"))))]
        axes.set_ylabel(f"{source.title}, {METRICS[source.metric]}" if name == next(iter(OPTIONS)) else "")
        quiet(axes)

    return panelled(path, [partial(panel, name) for name in OPTIONS if len(found)], (3.0 * len(OPTIONS) + 0.4, 2.9))


def tsne_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: scored rows after training by cross-entropy and by LaCon; stars are the labels."""
    found = {
        (run["set"], run["method"]): run for run in scored("tsne", "method", "points", "labels").to_dict("records")
    }
    sets = list(dict.fromkeys(name for name, _ in found))
    methods = [method for method in METHODS if any(own == method for _, own in found)]

    def panel(result: dict[str, Any], axes: Any) -> None:
        for place, name in enumerate(sorted({label for *_, label in result["points"]})):
            own = [point for point in result["points"] if point[2] == name]
            dots(axes, own, place, alpha=0.6, s=10, label=name)
            if name in result["labels"]:
                star = {"color": FEW[place], "edgecolors": "black", "linewidths": 0.8, "zorder": 3}
                axes.scatter(*result["labels"][name], s=170, marker="*", **star)
        axes.set_title(f"{SETS[result['set']].title}, {METHODS[result['method']].title}")
        bare(axes)
        axes.legend(loc="best", fontsize=7, handletextpad=0.2, frameon=True, framealpha=0.8)

    panels = [partial(panel, found[one]) for one in product(sets, methods) if one in found]
    return panelled(path, panels, (3.4 * len(methods) + 0.4, 3.2 * len(sets) + 0.2), columns=len(methods))


def curve_figure(path: Path) -> tuple[Path, ...]:
    """Labels a class against macro-F1: LaCon, logistic regression, SetFit; dashed: descriptions alone."""
    found = curve_runs().groupby(["task", "method", "per_class"]).score.agg(list)
    tasks = [task for task in TASKS if task in found]
    places = {count: place for place, count in enumerate(COUNTS)}  # zero has no place on a logarithmic axis

    def panel(task: str, axes: Any) -> None:
        for place, method in enumerate(CURVES):
            points = {places[count]: scores for count, scores in found[task].get(method, pd.Series()).items()}
            line(axes, points, place, CURVES[method])
        if alone := found.get((task, "lacon", 0)):
            level(axes, statistics.fmean(alone), 0)
        axes.set_xticks(list(places.values()), [str(count) for count in COUNTS])
        axes.set_xlabel("labels a class")
        axes.set_ylabel("macro-F1" if task == tasks[0] else "")
        axes.set_title(TITLES[task])
        quiet(axes)

    def finish(figure: Any) -> None:
        legend = figure.axes[0].get_legend_handles_labels()
        figure.legend(*legend, loc="outside lower center", ncols=len(CURVES))

    size = (max(3.2 * len(tasks), 5.6) + 0.4, 3.3)
    return panelled(path, [partial(panel, task) for task in tasks], size, finish=finish)


FIGURES: Figures = {
    "lacon-few": few_figure,
    "lacon-imbalance": imbalance_figure,
    "lacon-tsne": tsne_figure,
    "lacon-grid": grid_figure,
    "lacon-classes": classes_figure,
    "lacon-curve": curve_figure,
}
