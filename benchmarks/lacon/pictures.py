"""The figures of docs/lacon.md: few rows (Fig. 2), imbalance (3), t-SNE (4), options (5), classes (6), the curve."""

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labelspace.config import LaConConfig
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.palette import FEW, MARKERS
from lacon.aims import CURVES, TITLES, curve_scores
from lacon.curve import COUNTS, TASKS
from lacon.experiments import CLASS_METHODS, DEGREES, PER_CLASS
from lacon.methods import METHODS
from lacon.report import grid_points
from lacon.runs import results, sets_of
from lacon.sets import FEW as FEW_SETS
from lacon.sets import SETS

METRICS = {"accuracy": "accuracy", "macro_f1_predicted": "macro-F1", "matthews": "Matthews"}
# Places in the palette: those that meet in a picture are far apart.
PLACES = {"ce": 0, "lacon-vanilla": 1, "ce-scl": 2, "lacon-fusion": 3}
Points = Mapping[Any, Sequence[float]]


def few_figure(path: Path) -> tuple[Path, ...]:
    """Figure 2: rows of each class against the score, CE and LaCon; a panel for each set with two counts or more."""
    panels = {name: _by_method("few", name, "per_class") for name in FEW_SETS}
    panels = {name: lines for name, lines in panels.items() if any(len(points) > 1 for points in lines.values())}
    return _panels(path, "few rows", panels, "rows of each class", PER_CLASS)


def imbalance_figure(path: Path) -> tuple[Path, ...]:
    """Figure 3: the degree of imbalance against the score."""
    panels = {name: _by_method("imbalance", name, "degree") for name in sets_of("imbalance")}
    panels = {name: lines for name, lines in panels.items() if lines}
    return _panels(path, "imbalance", panels, "rows of the larger class for one of the smaller", DEGREES)


def classes_figure(path: Path) -> tuple[Path, ...]:
    """Figure 6: the number of DBpedia's labels against accuracy."""
    lines = _by_method("classes", "dbpedia", "classes")
    lines = {method: lines[method] for method in CLASS_METHODS if method in lines}
    counts = sorted({int(count) for points in lines.values() for count in points})
    return _panels(path, "classes", {"dbpedia": lines} if lines else {}, "labels", counts)


def grid_figure(path: Path) -> tuple[Path, ...]:
    """Figure 5: temperature, heads and weight of the regularizer, one at a time; dashed: the default."""
    words = {"temperature": "temperature", "heads": "heads", "regularizer_weight": "weight of L_LER"}
    found = grid_points()
    if not found:
        return ()
    default = next((result["point"] for result in results("grid") if result["change"] == "default"), {})
    with drawing("options") as new_figure:
        figure = new_figure(3.0 * len(words) + 0.4, 2.9)
        for column, (name, title) in enumerate(words.items(), 1):
            axes = figure.add_subplot(1, len(words), column)
            _line(axes, found.get(name, {}), 0, title)
            axes.axvline(default.get(name, getattr(LaConConfig, name)), color="#888888", linestyle="--", linewidth=0.9)
            if name == "heads":
                axes.set_xticks(list(found.get(name, {})))
            axes.set_xlabel(title)
            source = SETS[sets_of("grid")[0]]
            axes.set_ylabel(f"{source.title}, {METRICS[source.metric]}" if column == 1 else "")
            _quiet(axes)
        return write_figure(figure, files_of(path))


def tsne_figure(path: Path) -> tuple[Path, ...]:
    """Figure 4: scored rows after training by cross-entropy and by LaCon; stars are the labels."""
    found = results("tsne")
    sets = list(dict.fromkeys(result["set"] for result in found))
    methods = [method for method in METHODS if any(result["method"] == method for result in found)]
    if not found:
        return ()
    with drawing("t-SNE") as new_figure:
        figure = new_figure(3.4 * len(methods) + 0.4, 3.2 * len(sets) + 0.2)
        for result in found:
            row, column = sets.index(result["set"]), methods.index(result["method"])
            axes = figure.add_subplot(len(sets), len(methods), row * len(methods) + column + 1)
            names = sorted({label for *_, label in result["points"]})
            for place, name in enumerate(names):
                own = np.array([[across, up] for across, up, label in result["points"] if label == name])
                looks = {"color": FEW[place], "marker": MARKERS[place], "linewidths": 0, "alpha": 0.6}
                axes.scatter(own[:, 0], own[:, 1], s=10, label=name, **looks)
                if name in result["labels"]:
                    star = {"color": FEW[place], "edgecolors": "black", "linewidths": 0.8, "zorder": 3}
                    axes.scatter(*result["labels"][name], s=170, marker="*", **star)
            axes.set_title(f"{SETS[result['set']].title}, {METHODS[result['method']].title}")
            axes.set_xticks([])
            axes.set_yticks([])
            axes.legend(loc="best", fontsize=7, handletextpad=0.2, frameon=True, framealpha=0.8)
        return write_figure(figure, files_of(path))


def curve_figure(path: Path) -> tuple[Path, ...]:
    """Labels a class against macro-F1: LaCon, logistic regression, SetFit; dashed: descriptions alone."""
    found = {task: {method: curve_scores(task, method) for method in CURVES} for task in TASKS}
    tasks = [task for task, lines in found.items() if any(lines.values())]
    if not tasks:
        return ()
    places = {count: place for place, count in enumerate(COUNTS)}  # zero has no place on a logarithmic axis
    with drawing("the learning curve") as new_figure:
        figure = new_figure(max(3.2 * len(tasks), 5.6) + 0.4, 3.3)
        for column, task in enumerate(tasks, 1):
            axes = figure.add_subplot(1, len(tasks), column)
            for place, method in enumerate(CURVES):
                points = {places[count]: list(own.values()) for count, own in found[task][method].items()}
                _line(axes, points, place, CURVES[method])
            alone = found[task]["lacon"].get(0)
            if alone:
                axes.axhline(statistics.fmean(alone.values()), color=FEW[0], linestyle="--", linewidth=0.9)
            axes.set_xticks(list(places.values()), [str(count) for count in COUNTS])
            axes.set_xlabel("labels a class")
            axes.set_ylabel("macro-F1" if column == 1 else "")
            axes.set_title(TITLES[task])
            _quiet(axes)
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=len(CURVES))
        return write_figure(figure, files_of(path))


def _by_method(part: str, name: str, along: str) -> dict[str, Points]:
    lines: dict[str, dict[float, list[float]]] = {}
    for result in results(part):
        if result["set"] == name:
            points = lines.setdefault(result["method"], {})
            points.setdefault(result[along], []).append(result[result["metric"]])
    return {method: lines[method] for method in METHODS if method in lines}


def _panels(
    path: Path, what: str, panels: Mapping[str, Mapping[str, Points]], across: str, ticks: Sequence[int]
) -> tuple[Path, ...]:
    """A panel for each data set, a line for each method; along the axis each count stands as far as the next."""
    if not panels:
        return ()
    places = {count: place for place, count in enumerate(ticks)}
    with drawing(what) as new_figure:
        figure = new_figure(max(3.0 * len(panels), 3.6) + 0.4, 3.2)
        for column, (name, lines) in enumerate(panels.items(), 1):
            axes = figure.add_subplot(1, len(panels), column)
            for method, points in lines.items():
                drawn = {places[int(count)]: scores for count, scores in points.items()}
                _line(axes, drawn, PLACES[method], METHODS[method].title)
            axes.set_xticks(list(places.values()), [str(count) for count in ticks])
            axes.set_ylabel(METRICS[SETS[name].metric])
            axes.set_title(SETS[name].title)
            _quiet(axes)
        figure.supxlabel(across, fontsize=9)
        handles: dict[str, Any] = {}
        for axes in figure.axes:
            handles |= dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
        figure.legend(handles.values(), handles.keys(), loc="outside upper center", ncols=len(handles))
        return write_figure(figure, files_of(path))


def _line(axes: Any, points: Points, place: int, title: str) -> None:
    """Means with a band of one standard deviation, where there are several scores."""
    if not points:
        return
    across = sorted(points)
    means = np.array([statistics.fmean(points[x]) for x in across])
    spread = np.array([statistics.stdev(points[x]) if len(points[x]) > 1 else 0.0 for x in across])
    axes.plot(across, means, color=FEW[place], marker=MARKERS[place], markersize=4, label=title)
    axes.fill_between(across, means - spread, means + spread, color=FEW[place], alpha=0.12, linewidth=0)


def _quiet(axes: Any) -> None:
    axes.grid(color="#e4e4e4", linewidth=0.6)
    axes.set_axisbelow(True)


FIGURES: dict[str, Callable[[Path], tuple[Path, ...]]] = {
    "lacon-few": few_figure,
    "lacon-imbalance": imbalance_figure,
    "lacon-tsne": tsne_figure,
    "lacon-grid": grid_figure,
    "lacon-classes": classes_figure,
    "lacon-curve": curve_figure,
}


def all_figures(folder: Path) -> list[Path]:
    """Draw what there are results for, and return the files."""
    drawn = [path for name, draw in FIGURES.items() for path in draw(folder / name)]
    for file in drawn:
        if file.suffix == ".svg":  # the page shows the PNG
            file.unlink()
    return [file for file in drawn if file.suffix != ".svg"]
