"""Tables of docs/study.md on what the paper does not ask: other label spaces, unequal counts, a dictionary."""

import itertools
import statistics
from collections.abc import Callable

import pandas as pd
import store
from layout import NOT_YET, crossed, markdown, products, signed, spread, table, titled

from labelspace.config import DEFAULT_ANCHOR
from study.dictionary import SENSES, WORDS
from study.report import ENCODERS, TITLES, runs_of
from study.schedule import SHORT
from study.spaces import TASKS
from study.transfer import OWN, SOURCES, TARGETS

SENSE_TITLES = {"first": "first sense", "every": "every sense", "meant": "senses that are meant"}
WHEN = ("untrained", "trained")
UNEQUAL = {"fewer": ("five", "one, the others five"), "more": ("one", "five, the others one")}
"""For each kind of run: the run of equal counts that it is compared with, and a title."""


def transfer() -> str:
    """Macro-F1 on each set by the untrained encoder, and what training on another label space changes."""
    runs = store.frame("study", "transfer", "encoder", "task", "untrained", "macro_f1_predicted")
    long = pd.DataFrame(
        [
            (run.encoder, run.task, target, before, run.macro_f1_predicted[target] - before)
            for run in runs.itertuples()
            for target, before in run.untrained.items()
        ],
        columns=["encoder", "source", "target", "before", "gain"],
    )
    if long.empty:
        return NOT_YET

    def cell(own: pd.DataFrame, _encoder: str, target: str, source: str) -> str:
        words = signed(own.gain)
        return f"*{words}*" if OWN.get(source) == target else words

    cells = crossed(long, ["encoder", "target"], ["source"], cell)
    cells["texts"] = [TARGETS[target][1] for _, target in cells.index]
    cells["untrained"] = long.groupby(["encoder", "target"]).before.first().map("{:.3f}".format)
    titles = {"texts": "texts", "untrained": "untrained"} | {source: TITLES[source] for source in SOURCES}
    return table(
        titled(cells, products(ENCODERS, {name: title for name, (title, _) in TARGETS.items()}), titles), "", ""
    )


def unequal() -> str:
    """What a label gains that has fewer or more descriptions than the others; a mean over labels and writers."""
    runs = runs_of("unequal", "task", "labels", "runs")
    rows = []
    for (kind, (equal, title)), when, task in itertools.product(UNEQUAL.items(), WHEN, TASKS):
        changes: dict[str, list[float]] = {"answers": [], "recall": [], "others": [], "macro": []}
        for run in runs[runs.task == task].itertuples():
            before = run.runs[equal][when]
            for column, label in enumerate(run.labels):
                if f"{kind} {label}" not in run.runs:  # a small run has the first label only
                    continue
                after = run.runs[f"{kind} {label}"][when]
                for what in ("answers", "recall"):
                    changes[what].append(100 * (after[what][column] - before[what][column]))
                changes["macro"].append(after["macro_f1_predicted"] - before["macro_f1_predicted"])
                gains = [new - old for new, old in zip(after["recall"], before["recall"], strict=True)]
                changes["others"].append(100 * statistics.fmean(gains[:column] + gains[column + 1 :]))
        if changes["macro"]:
            cells = [signed(changes[what], "{:+.1f}") for what in ("answers", "recall", "others")]
            rows.append([title, when, TITLES[task], *cells, signed(changes["macro"])])
    head = ["", "", "", "its share of the answers, points", "its recall", "recall of the others", "macro-F1"]
    return markdown(head, rows)


def dictionary() -> str:
    """Definitions of a dictionary as descriptions, beside the verbalizer alone and five written descriptions."""
    ways = {"untrained": "untrained", "macro_f1_predicted": "trained"}
    scores = [f"{way}.{anchor}" for way in ways for anchor in (DEFAULT_ANCHOR, "verbalizer")]
    runs = runs_of("dictionary", "task", "senses", *scores)
    if runs.empty:
        return NOT_YET
    written = runs_of("schedule", "task", *scores, rate="base", max_steps=SHORT)
    alone = runs.assign(**{f"{way}.{DEFAULT_ANCHOR}": runs[f"{way}.verbalizer"] for way in ways})
    alone = alone.assign(senses="alone", **{f"macro_f1_predicted.{DEFAULT_ANCHOR}": None}).drop_duplicates("task")
    every = pd.concat([alone, runs, written.assign(senses="written")])
    long = every.melt(["task", "senses"], [f"{way}.{DEFAULT_ANCHOR}" for way in ways], "way").dropna()
    cells = crossed(long, ["senses"], ["task", "way"], lambda own, *_: spread(own.value.tolist()))
    rows = {"alone": "verbalizer alone", **{one: SENSE_TITLES[one] for one in SENSES}, "written": "five written for it"}
    columns = {
        (task, f"{way}.{DEFAULT_ANCHOR}"): f"{TITLES[task]}, {title}" for task in WORDS for way, title in ways.items()
    }
    return table(titled(cells, rows, columns), "")


BLOCKS: dict[str, Callable[[], str]] = {
    "study-transfer": transfer,
    "study-unequal": unequal,
    "study-dictionary": dictionary,
}
