"""The tables of docs/study.md; see benchmarks/tables.py."""

import csv
import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import store
from layout import NOT_YET, filled, markdown, spread
from store import Row as Result

from labelspace.config import ANCHORS, DEFAULT_ANCHOR
from study import overlap
from study.ablations import CHANGES, FEWER_UPDATES, Change
from study.rivals import PER_CLASS, RUNS
from study.spaces import INTENTS, MISLEADING, TASKS, share_drawn

ENCODER = store.ENCODER
ENCODERS = {
    ENCODER: "all-MiniLM-L6-v2",
    f"{ENCODER}-cls": "all-MiniLM-L6-v2, [CLS] pooling",
    "all-mpnet-base-v2": "all-mpnet-base-v2",
}
PAPER_TABLE = Path(__file__).with_name("paper_table1.csv")
TITLES = {
    "agnews": "AG News",
    "rottentomatoes": "Rotten Tomatoes",
    "emotion": "Emotion",
    "banking77_cards": "Banking77, six cards",
    MISLEADING: "Amazon counterfactual",
    INTENTS: "Banking77, all 77",
}
METHODS = {
    "ours": "descriptions alone (ours)",
    "setfit": "SetFit, 8 a class",
    "setfit-template": "SetFit, 8 a class and its template",
    "logistic": "logistic regression, 8 a class",
}
CORNER = "mean ± corrected deviation"


def corrected(values: Sequence[float], share: float, form: str = "{:.3f}") -> str:
    """Format the mean, with the standard deviation corrected for samples that share descriptions."""
    if len(values) < 2:
        return spread(values, form)
    return f"{form.format(statistics.fmean(values))} ± {overlap.deviation(values, share):.3f}"


def results(part: str, encoder: str = ENCODER, **facts: str) -> list[Result]:
    """Return the results of a part with one encoder and these facts."""
    return store.results("study", part, encoder=encoder, **facts)


def default_runs(task: str) -> list[Result]:
    """Return the runs of a task without a change."""
    return results("ablations", task=task, change="default")


def ablations(anchor: str = DEFAULT_ANCHOR) -> str:
    """Each change on each task: macro-F1 with one anchor, and the difference from the default on the same samples."""

    def cell(change: Change, task: str) -> str:
        own, default = (
            {run["seed"]: run["macro_f1_predicted"][anchor] for run in results("ablations", task=task, change=name)}
            for name in (change.name, "default")
        )
        words = corrected(list(own.values()), share_drawn(task, change.count))
        both = sorted(own.keys() & default.keys())
        if change.name == "default" or not both:
            return words
        return f"{words} ({statistics.fmean(own[seed] - default[seed] for seed in both):+.3f})"

    rows = [[change.name, *(cell(change, task) for task in TASKS)] for change in CHANGES]
    return markdown([CORNER, *(TITLES[task] for task in TASKS)], filled(rows))


COLUMNS = [*((task, "default") for task in TASKS), (INTENTS, FEWER_UPDATES), (INTENTS, "default")]
"""Task and change of the columns of Table 1; all 77 intents with few updates and with the usual number."""


def before_and_after() -> str:
    """Table 1 of the paper: our encoders, and the paper's."""
    rows = []
    for encoder, words in ENCODERS.items():
        for when, anchor, what in (
            ("untrained", "verbalizer", "untrained, verbalizers"),
            ("untrained", "descriptions", "untrained, mean of descriptions"),
            ("macro_f1_predicted", "verbalizer", "trained, verbalizers"),
            ("macro_f1_predicted", "descriptions", "trained, mean of descriptions"),
        ):
            own = _by_column(encoder, COLUMNS, lambda result, when=when, anchor=anchor: result[when][anchor])
            if any(own.values()):
                cells = [corrected(own[column], share_drawn(column[0])) for column in COLUMNS]
                means = [statistics.fmean(own[column]) for column in COLUMNS[: len(TASKS)] if own[column]]
                overall = f"{statistics.fmean(means):.3f}" if len(means) == len(TASKS) else "-"
                rows.append([words, what, *cells[: len(TASKS)], overall, *cells[len(TASKS) :]])
    with PAPER_TABLE.open(encoding="utf-8") as lines:
        for paper in csv.DictReader(lines):
            figures = [float(paper[task]) for task in TASKS]
            cells = [f"{figure:.2f}" for figure in figures]
            mean = f"{statistics.fmean(figures):.2f}"
            rows.append([f"paper: {paper['model']}", paper["when"], *cells, mean, "-", "-"])
    titles = [_title(*column) for column in COLUMNS]
    return markdown(["", CORNER, *titles[: len(TASKS)], "mean of the four", *titles[len(TASKS) :]], rows)


def gains(anchor: str = DEFAULT_ANCHOR) -> str:
    """Gain of training over the untrained mean of the same descriptions, and the number of samples with a gain."""
    columns = [*COLUMNS, (MISLEADING, "default")]
    rows = []
    for encoder, words in ENCODERS.items():
        found = _by_column(
            encoder, columns, lambda result: result["macro_f1_predicted"][anchor] - result["untrained"][anchor]
        )
        cells = [
            f"{corrected(own, share_drawn(task), '{:+.3f}')}; {sum(gain > 0 for gain in own)} of {len(own)}"
            if own
            else "-"
            for (task, _), own in found.items()
        ]
        if any(found.values()):
            rows.append([words, *cells])
    return markdown([CORNER, *(_title(*column) for column in columns)], rows)


def _by_column(
    encoder: str, columns: Sequence[tuple[str, str]], value: Callable[[Result], float]
) -> dict[tuple[str, str], list[float]]:
    own: dict[tuple[str, str], list[float]] = {column: [] for column in columns}
    for result in results("ablations", encoder):
        if (column := (result["task"], result["change"])) in own:
            own[column].append(value(result))
    return own


def _title(task: str, change: str) -> str:
    if task != INTENTS:
        return TITLES[task]
    return f"{TITLES[task]}, {20 if change == FEWER_UPDATES else 60} updates"


def seeds_of(part: str) -> str:
    """Seeds that each encoder was run with."""
    found = {words: sorted({r["seed"] for r in results(part, name)}) for name, words in ENCODERS.items()}
    return "; ".join(f"{words}: seeds {', '.join(map(str, seeds))}" for words, seeds in found.items() if seeds) + "."


def anchors() -> str:
    """Every anchor before and after training, with five descriptions drawn by each seed."""
    return _anchor_table({TITLES[task]: (default_runs(task), task) for task in TASKS})


def misleading() -> str:
    """Misleading label names: bare names against verbalizers."""
    parts = {"verbalizers": "default", "bare names": "bare-names"}
    found = {words: results("ablations", task=MISLEADING, change=change) for words, change in parts.items()}
    return _anchor_table({words: (runs, MISLEADING) for words, runs in found.items()})


def _anchor_table(found: Mapping[str, tuple[Sequence[Result], str]]) -> str:
    ways = list(itertools.product(("untrained", "macro_f1_predicted"), ANCHORS))
    rows = [
        [words, *(corrected([run[when][anchor] for run in runs], share_drawn(task)) for when, anchor in ways)]
        for words, (runs, task) in found.items()
        if runs
    ]
    head = [f"{when}, {anchor}" for when in ("untrained", "trained") for anchor in ANCHORS]
    return markdown([CORNER, *head], rows)


def ranges(anchor: str = DEFAULT_ANCHOR) -> str:
    """Lowest and highest score over the samples of each task, as a sentence."""
    found = {task: [r["macro_f1_predicted"][anchor] for r in default_runs(task)] for task in (*TASKS, INTENTS)}
    words = [f"{TITLES[task]} {min(own):.3f} to {max(own):.3f}" for task, own in found.items() if own]
    return "; ".join(words) + "." if words else NOT_YET


def rates(anchor: str = DEFAULT_ANCHOR) -> str:
    """The learning rate chosen by each rule and its score, and Pearson's r of uniformity and macro-F1."""
    rows = []
    for encoder, task in itertools.product(ENCODERS, TASKS):
        own = sorted(results("rates", encoder, task=task), key=lambda r: r["learning_rate"])
        grid = [r for r in own if r["learning_rate"] != r["base_rate"]]
        if len(grid) < 3:
            continue
        chosen = [
            min(grid, key=lambda result: result["uniformity"]["train"]),
            min(grid, key=lambda result: result["uniformity"]["test"]),
            *[result for result in own if result["learning_rate"] == result["base_rate"]],
            max(own, key=lambda result: result["macro_f1_predicted"][anchor]),
        ]
        cells = [f"{result['macro_f1_predicted'][anchor]:.3f} ({result['learning_rate']:.0e})" for result in chosen]
        spreads, scores = [r["uniformity"]["train"] for r in own], [r["macro_f1_predicted"][anchor] for r in own]
        r = f"{float(np.corrcoef(spreads, scores)[0, 1]):+.2f}"
        rows.append([ENCODERS[encoder], TITLES[task], str(len(own)), *cells, r])
    head = ["rates", "uniformity, train pool", "uniformity, test pool", "base rate", "oracle", "Pearson's r"]
    return markdown(["", "", *head], rows)


def rivals() -> str:
    """Each method's mean, its spread as measured and corrected, our gain over it, worst run, seconds, memory.

    A rival's sample takes at most one in eighty labelled rows of a class, so its samples count as not overlapping.
    """
    rows = []
    for task in RUNS:
        ours = [r["macro_f1_predicted"] for r in results("rivals", task=task, method="ours")]
        for method, words in METHODS.items():
            own = results("rivals", task=task, method=method)
            if not own:
                continue
            scores = [r["macro_f1_predicted"] for r in own]
            share = share_drawn(task) if method == "ours" else 0
            spreads = [f"{overlap.deviation(scores, kept):.3f}" for kept in (0, share)] if len(own) > 1 else ["-", "-"]
            above = "-"
            if method != "ours" and min(len(ours), len(own)) > 1:
                gain = statistics.fmean(ours) - statistics.fmean(scores)
                error = math.hypot(overlap.standard_error(ours, share_drawn(task)), overlap.standard_error(scores, 0))
                above = f"{gain:+.3f} ± {error:.3f}"
            seconds = spread([r["training_seconds"] for r in own], "{:.0f}")
            peak = f"{max(r['peak_memory_mib'] for r in own):,.0f}"
            mean = f"{statistics.fmean(scores):.3f}"
            facts = [str(len(own)), mean, *spreads, above, f"{min(scores):.3f}", seconds, peak]
            rows.append([TITLES[task], words, *facts])
    head = ["runs", "macro-F1", "± of these runs", "± with nothing shared", "ours above it ± standard error", "worst"]
    return markdown(["", "", *head, "training, seconds", "peak memory, MiB"], rows)


def curve(anchor: str = DEFAULT_ANCHOR) -> str:
    """Labelled texts per class that logistic regression needs to match descriptions alone."""
    rows = []
    for result in results("curve"):
        task = result["task"]
        ours = [r["macro_f1_predicted"][anchor] for r in default_runs(task)]
        means = {count: statistics.fmean(result["macro_f1_predicted"][str(count)]) for count in PER_CLASS}
        enough = next((str(n) for n in PER_CLASS if ours and means[n] >= statistics.fmean(ours)), f"> {PER_CLASS[-1]}")
        alone = corrected(ours, share_drawn(task))
        rows.append([TITLES[task], alone, enough if ours else "-", *(f"{means[count]:.3f}" for count in PER_CLASS)])
    return markdown(["", "descriptions alone ± corrected", "labels a class to match", *map(str, PER_CLASS)], rows)


BLOCKS: dict[str, Callable[[], str]] = {
    "study-table1": before_and_after,
    "study-gains": gains,
    "study-seeds": lambda: seeds_of("ablations"),
    "study-anchors": anchors,
    "study-ablations": ablations,
    "study-ablations-verbalizer": lambda: ablations("verbalizer"),
    "study-misleading": misleading,
    "study-ranges": ranges,
    "study-rates": rates,
    "study-rivals": rivals,
    "study-curve": curve,
}
