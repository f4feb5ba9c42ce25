"""The figures of docs/study.md: learning rates (Fig. 3), few-shot rivals (Fig. 2a), the learning curve, a model."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
from tasks import load_task

from labelspace.config import DEFAULT_ANCHOR
from labelspace.evaluate.drawing import drawing, files_of, write_figure
from labelspace.evaluate.figures.rates import RatePoint, rates_figure
from labelspace.evaluate.palette import FEW, MARKERS
from study.report import ENCODERS, METHODS, TITLES, results
from study.rivals import PER_CLASS, RUNS
from study.settings import Settings
from study.spaces import TASKS


def rivals_figure(path: Path) -> tuple[Path, ...]:
    """Every run of every method as a dot, with the mean: how far they spread, and how low the worst lies."""
    tasks = [task for task in RUNS if any(found["task"] == task for found in results("rivals"))]
    if not tasks:
        return ()
    with drawing("the rivals") as new_figure:
        figure = new_figure(4.4 * len(tasks) + 0.4, 3.6)
        for column, task in enumerate(tasks, 1):
            axes = figure.add_subplot(1, len(tasks), column)
            for place, method in enumerate(METHODS):
                found = [r for r in results("rivals") if r["task"] == task and r["method"] == method]
                values = sorted(r["macro_f1_predicted"] for r in found)
                if not values:
                    continue
                # Side by side in the order of their values: the same picture each time, and no random state.
                beside = place + 0.16 * np.cos(np.arange(len(values)) * 2.4)
                axes.scatter(beside, values, s=16, color=FEW[place], marker=MARKERS[place], alpha=0.7, linewidths=0)
                mean = statistics.fmean(values)
                axes.plot([place - 0.3, place + 0.3], [mean, mean], color="black", linewidth=1.2)
                axes.annotate(f"{mean:.2f}", (place + 0.32, mean), fontsize=7.5, va="center")
            words = [textwrap.fill(name, 15) for name in METHODS.values()]
            axes.set_xticks(range(len(METHODS)), words, fontsize=7)
            axes.set_xlim(-0.6, len(METHODS) - 0.3)
            axes.set_ylabel("macro-F1")
            axes.set_title(TITLES[task])
            axes.grid(axis="y", color="#e4e4e4", linewidth=0.6)
            axes.set_axisbelow(True)
        return write_figure(figure, files_of(path))


def uniformity_figure(path: Path) -> tuple[Path, ...]:
    """Macro-F1 over uniformity of the train pool, a dot for each rate; the star is what uniformity would choose."""
    panels = {}
    for encoder, words in ENCODERS.items():
        for task in TASKS:
            found = [result for result in results("rates", encoder) if result["task"] == task]
            grid = [result for result in found if result["learning_rate"] != result["base_rate"]]
            if grid:
                best = min(grid, key=lambda result: result["uniformity"]["train"])
                panels[words, TITLES[task]] = [
                    RatePoint(
                        result["learning_rate"],
                        result["uniformity"]["train"],
                        result["macro_f1_predicted"][DEFAULT_ANCHOR],
                        result is best,
                    )
                    for result in found
                ]
    return rates_figure(panels, path) if panels else ()


def curve_figure(path: Path) -> tuple[Path, ...]:
    """Labelled texts a class against macro-F1 of a logistic regression; dashed: descriptions alone."""
    curves = {found["task"]: found["macro_f1_predicted"] for found in results("curve")}
    tasks = [task for task in TASKS if task in curves]
    if not tasks:
        return ()
    with drawing("the learning curve") as new_figure:
        figure = new_figure(6.4, 4.0)
        axes = figure.add_subplot()
        for place, task in enumerate(tasks):
            means = [statistics.fmean(curves[task][str(count)]) for count in PER_CLASS]
            spread = [statistics.stdev(curves[task][str(count)]) for count in PER_CLASS]
            low, high = np.subtract(means, spread), np.add(means, spread)
            axes.plot(PER_CLASS, means, color=FEW[place], marker=MARKERS[place], markersize=4, label=TITLES[task])
            axes.fill_between(PER_CLASS, low, high, color=FEW[place], alpha=0.12, linewidth=0)
            ours = [
                r["macro_f1_predicted"][DEFAULT_ANCHOR]
                for r in results("ablations")
                if r["task"] == task and r["change"] == "default"
            ]
            if ours:
                axes.axhline(statistics.fmean(ours), color=FEW[place], linestyle="--", linewidth=0.9)
        axes.set_xscale("log", base=2)
        axes.set_xticks(PER_CLASS, list(map(str, PER_CLASS)))
        axes.set_xlabel("labelled texts a class (dashed: descriptions alone)")
        axes.set_ylabel("macro-F1")
        axes.grid(color="#e4e4e4", linewidth=0.6)
        axes.set_axisbelow(True)
        figure.legend(loc="outside right center")
        return write_figure(figure, files_of(path))


def model_figures(settings: Settings, folder: Path) -> tuple[Path, ...]:
    """Train on AG News and let `labelspace figures` draw: figures 1 and 2b of the paper, and two more."""
    task = load_task("agnews", settings.data, "official", test_rows=settings.test_rows)
    command = [sys.executable, "-m", "labelspace"]
    with tempfile.TemporaryDirectory() as scratch:
        documents, model, out = (Path(scratch) / name for name in ("agnews.csv", "model", "figures"))
        pd.DataFrame({"text": task.texts, "label": task.truth}).to_csv(documents, index=False)
        task.labels.to_file(Path(scratch) / "labels.yaml")
        train = ["--encoder", settings.encoder, "--learning-rate", "base", "--max-steps", str(settings.max_steps)]
        subprocess.run([*command, "fit", f"{scratch}/labels.yaml", *train, "--out", str(model)], check=True)
        draw = ["--label-column", "label", "--max-documents", "1000", "--steps", str(settings.max_steps)]
        draw += ["--only", "map,sphere,similarity,trajectory", "--out", str(out)]
        subprocess.run([*command, "figures", str(model), str(documents), *draw], check=True)
        drawn = []
        for path in sorted(out.glob("*.png")):
            target = folder / f"study-{path.name}"
            shutil.copyfile(path, target)
            drawn.append(target)
    return tuple(drawn)


def all_figures(folder: Path) -> tuple[Path, ...]:
    """Draw what there are results of, as .png alone: a page needs no more."""
    return (
        *rivals_figure(folder / "study-rivals.png"),
        *uniformity_figure(folder / "study-rates.png"),
        *curve_figure(folder / "study-curve.png"),
    )
