"""The figures of docs/study.md: learning rates (Fig. 3), few-shot rivals (Fig. 2a), the learning curve, a model."""

import shutil
import statistics
import subprocess
import sys
import tempfile
import textwrap
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import store
from layout import products
from panels import Figures, dots, level, line, panelled, quiet
from tasks import load_task

from labelspace import load
from labelspace.config import DEFAULT_ANCHOR
from study.rates_figure import RatePoint, rates_figure
from study.report import ENCODERS, METHODS, TITLES, default_scores, runs_of
from study.rivals import PER_CLASS, RUNS
from study.settings import Settings
from study.spaces import TASKS
from study.trajectory import trajectory, trajectory_figure


def rivals_figure(path: Path) -> tuple[Path, ...]:
    """Every run of every method as a dot, with the mean, to show spread and worst run."""
    runs = runs_of("rivals", "task", "method", "macro_f1_predicted").sort_values("macro_f1_predicted")
    scores = runs.groupby(["task", "method"]).macro_f1_predicted.agg(list)
    tasks = [task for task in RUNS if task in scores]

    def panel(task: str, axes: Any) -> None:
        for place, method in enumerate(METHODS):
            if (values := scores[task].get(method)) is None:
                continue
            # Spread points by their rank rather than at random, so that the figure is reproducible.
            beside = place + 0.16 * np.cos(np.arange(len(values)) * 2.4)
            dots(axes, zip(beside, values, strict=True), place, s=16, alpha=0.7)
            mean = statistics.fmean(values)
            axes.plot([place - 0.3, place + 0.3], [mean, mean], color="black", linewidth=1.2)
            axes.annotate(f"{mean:.2f}", (place + 0.32, mean), fontsize=7.5, va="center")
        axes.set_xticks(range(len(METHODS)), [textwrap.fill(name, 15) for name in METHODS.values()], fontsize=7)
        axes.set_xlim(-0.6, len(METHODS) - 0.3)
        axes.set_ylabel("macro-F1")
        axes.set_title(TITLES[task])
        quiet(axes, axis="y")

    return panelled(path, [partial(panel, task) for task in tasks], (4.4 * len(tasks) + 0.4, 3.6))


def uniformity_figure(path: Path) -> tuple[Path, ...]:
    """Macro-F1 over uniformity of the train pool, a dot for each rate; the star is the rate chosen by uniformity."""
    names = {"uniformity.train": "uniformity", f"macro_f1_predicted.{DEFAULT_ANCHOR}": "score"}
    runs = store.frame("study", "rates", "encoder", "task", "learning_rate", "base_rate", *names).rename(columns=names)
    found = dict(list(runs.groupby(["encoder", "task"])))
    panels = {}
    for (encoder, task), titles in products(ENCODERS, {task: TITLES[task] for task in TASKS}).items():
        own = found.get((encoder, task), runs[:0])
        grid = own[own.learning_rate != own.base_rate]
        if len(grid):
            chosen = own.index == grid.uniformity.idxmin()
            panels[titles] = [*map(RatePoint, own.learning_rate, own.uniformity, own.score, chosen)]
    return rates_figure(panels, path) if panels else ()


def curve_figure(path: Path) -> tuple[Path, ...]:
    """Macro-F1 of logistic regression over labelled texts per class; dashed: descriptions alone."""
    curves = runs_of("curve", "task", "macro_f1_predicted").set_index("task").macro_f1_predicted
    tasks = [task for task in TASKS if task in curves]

    def panel(axes: Any) -> None:
        for place, task in enumerate(tasks):
            line(axes, {count: curves[task][str(count)] for count in PER_CLASS}, place, TITLES[task])
            if len(ours := default_scores(task)):
                level(axes, statistics.fmean(ours), place)
        axes.set_xscale("log", base=2)
        axes.set_xticks(PER_CLASS, list(map(str, PER_CLASS)))
        axes.set_xlabel("labelled texts a class (dashed: descriptions alone)")
        axes.set_ylabel("macro-F1")
        quiet(axes)

    legend = {"loc": "outside right center"}
    return panelled(path, [panel] * bool(tasks), (6.4, 4.0), finish=lambda figure: figure.legend(**legend))


def model_figures(settings: Settings, folder: Path) -> tuple[Path, ...]:
    """Train on AG News, draw the model with `labelspace figures` (figures 1 and 2b), and draw the trajectory."""
    task = load_task("agnews", settings.data, "official", test_rows=settings.test_rows)
    command = [sys.executable, "-m", "labelspace"]
    with tempfile.TemporaryDirectory() as scratch:
        documents, model, out = (Path(scratch) / name for name in ("agnews.csv", "model", "figures"))
        pd.DataFrame({"text": task.texts, "label": task.truth}).to_csv(documents, index=False)
        task.labels.to_file(Path(scratch) / "labels.yaml")
        train = ["--encoder", settings.encoder, "--learning-rate", "base", "--max-steps", str(settings.max_steps)]
        subprocess.run([*command, "fit", f"{scratch}/labels.yaml", *train, "--out", str(model)], check=True)
        draw = ["--label-column", "label", "--max-documents", "1000", "--only", "map,sphere,similarity"]
        subprocess.run([*command, "figures", str(model), str(documents), *draw, "--out", str(out)], check=True)
        trajectory_figure(trajectory(load(model), task.texts), out / "trajectory.png")
        drawn = []
        for path in sorted(out.glob("*.png")):
            target = folder / f"study-{path.name}"
            shutil.copyfile(path, target)
            drawn.append(target)
    return tuple(drawn)


FIGURES: Figures = {
    "study-rivals": rivals_figure,
    "study-rates": uniformity_figure,
    "study-curve": curve_figure,
}
