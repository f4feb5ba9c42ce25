"""The tables of docs/study.md; see benchmarks/tables.py."""

import itertools
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import pandas as pd
import store
from layout import NOT_YET, crossed, markdown, products, spread, table, titled

from labelspace.config import ANCHORS, DEFAULT_ANCHOR
from study import overlap
from study.ablations import CHANGES, FEWER_UPDATES
from study.multilingual import PROMPTS
from study.rivals import PER_CLASS, RUNS
from study.schedule import LONG, SHORT
from study.spaces import INTENTS, MISLEADING, TASKS, TNEWS, share_drawn

ENCODER = store.ENCODER
ENCODERS = {
    ENCODER: "all-MiniLM-L6-v2",
    f"{ENCODER}-cls": "all-MiniLM-L6-v2, [CLS] pooling",
    "all-mpnet-base-v2": "all-mpnet-base-v2",
    "multilingual-e5-small": "multilingual-e5-small, four bits",
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
ANCHOR_TITLES = {"descriptions": "mean of descriptions", "verbalizer": "verbalizer"}
SCHEDULES = {
    "published": {"encoder": ENCODER, "rate": "base"},
    "by uniformity": {"encoder": ENCODER, "rate": "uniformity"},
    "published, [CLS] pooling": {"encoder": f"{ENCODER}-cls", "rate": "base"},
}
PROMPT_TITLES = dict(zip(PROMPTS, ("the encoder's", "none"), strict=True))
SCHEDULED = (*TASKS, INTENTS)
CORNER = "mean ± corrected deviation"


def corrected(values: Sequence[float], share: float, form: str = "{:.3f}") -> str:
    """Format the mean, with the standard deviation corrected for samples that share descriptions."""
    if len(values) < 2:
        return spread(values, form)
    return f"{form.format(statistics.fmean(values))} ± {overlap.deviation(values, share):.3f}"


def runs_of(part: str, *columns: str, **facts: str) -> pd.DataFrame:
    """Return the runs of a part with these facts and the encoder of most tables."""
    return store.frame("study", part, *columns, encoder=store.ENCODER, **facts)


def default_scores(task: str) -> pd.Series:
    """Return the macro-F1 of a task's runs without a change."""
    score = f"macro_f1_predicted.{DEFAULT_ANCHOR}"
    return runs_of("ablations", score, task=task, change="default")[score]


def ablations(anchor: str = DEFAULT_ANCHOR) -> str:
    """Each change on each task: macro-F1 with one anchor, and the difference from the default on the same samples."""
    runs = runs_of("ablations", "task", "change", "seed", score := f"macro_f1_predicted.{anchor}")
    default = runs[runs.change == "default"].set_index(["task", "seed"])[score]
    runs["gain"] = runs[score] - runs.join(default.rename("default"), on=["task", "seed"])["default"]
    counts = {change.name: change.count for change in CHANGES}

    def cell(own: pd.DataFrame, change: str, task: str) -> str:
        words, gains = corrected(own[score], share_drawn(task, counts[change])), own.gain.dropna()
        return words if change == "default" or gains.empty else f"{words} ({statistics.fmean(gains):+.3f})"

    cells = crossed(runs[runs.change.isin(counts)], ["change"], ["task"], cell)
    return table(titled(cells, {change: change for change in counts}, {task: TITLES[task] for task in TASKS}), CORNER)


COLUMNS = {
    **{(task, "default"): TITLES[task] for task in TASKS},
    (INTENTS, FEWER_UPDATES): f"{TITLES[INTENTS]}, 20 updates",
    (INTENTS, "default"): f"{TITLES[INTENTS]}, 60 updates",
}
"""Task and change of the columns of Table 1, with their titles."""

WAYS = {
    "untrained.verbalizer": "untrained, verbalizers",
    "untrained.descriptions": "untrained, mean of descriptions",
    "macro_f1_predicted.verbalizer": "trained, verbalizers",
    "macro_f1_predicted.descriptions": "trained, mean of descriptions",
}


def before_and_after() -> str:
    """Table 1 of the paper: our encoders, and the paper's."""
    runs = store.frame("study", "ablations", "encoder", "task", "change", *WAYS)
    runs = runs.melt(["encoder", "task", "change"], var_name="way", value_name="score")
    rows, columns = ["encoder", "way"], ["task", "change"]
    cells = crossed(runs, rows, columns, lambda own, _encoder, _way, task, _: corrected(own.score, share_drawn(task)))
    means = crossed(runs, rows, columns, lambda own, *_: statistics.fmean(own.score))
    four = means.reindex(columns=list(COLUMNS)[: len(TASKS)]).dropna()
    cells["mean", ""] = four.mean(axis=1).map("{:.3f}".format)
    titles = dict(list(COLUMNS.items())[: len(TASKS)]) | {("mean", ""): "mean of the four"} | COLUMNS
    paper = pd.read_csv(PAPER_TABLE, index_col=["model", "when"]).rename("paper: {}".format, level="model")[list(TASKS)]
    paper["mean of the four"] = paper.agg(statistics.fmean, axis=1)
    paper = paper.rename(columns=TITLES).map("{:.2f}".format)
    return table(pd.concat([titled(cells, products(ENCODERS, WAYS), titles), paper]), "", CORNER)


def multilingual() -> str:
    """Chinese headlines: each encoder with its prompts and without."""
    runs = store.frame("study", "multilingual", "encoder", "prompts", "seed", *WAYS)
    runs = runs.melt(["encoder", "prompts", "seed"], var_name="way", value_name="score")
    cells = crossed(runs, ["encoder", "prompts"], ["way"], lambda own, *_: corrected(own.score, share_drawn(TNEWS)))
    wide = runs.pivot(index=["encoder", "way", "seed"], columns="prompts", values="score").reindex(
        columns=list(PROMPTS)
    )
    both = (wide["own"] - wide["none"]).dropna()
    for (encoder, way), gains in both.groupby(["encoder", "way"]):
        cells.loc[(encoder, "gain"), way] = f"{gains.mean():+.3f}; {sum(gains > 0)} of {len(gains)}"
    titles = PROMPT_TITLES | {"gain": f"{PROMPT_TITLES['own']} minus {PROMPT_TITLES['none']}"}
    return table(titled(cells, products(ENCODERS, titles), WAYS), CORNER, "prompts")


def gains() -> str:
    """Gain of training over the untrained mean of the same descriptions, and the number of samples with a gain."""
    trained, untrained = f"macro_f1_predicted.{DEFAULT_ANCHOR}", f"untrained.{DEFAULT_ANCHOR}"
    runs = store.frame("study", "ablations", "encoder", "task", "change", trained, untrained)
    runs["gain"] = runs[trained] - runs[untrained]

    def cell(own: pd.DataFrame, _encoder: str, task: str, _change: str) -> str:
        return f"{corrected(own.gain, share_drawn(task), '{:+.3f}')}; {sum(own.gain > 0)} of {len(own)}"

    cells = crossed(runs, ["encoder"], ["task", "change"], cell)
    return table(titled(cells, ENCODERS, COLUMNS | {(MISLEADING, "default"): TITLES[MISLEADING]}), CORNER)


def seeds_of(part: str) -> str:
    """Seeds that each encoder was run with."""
    seeds = store.frame("study", part, "encoder", "seed").drop_duplicates().sort_values("seed")
    words = seeds.astype(str).groupby("encoder").seed.agg(", ".join).reindex(ENCODERS).dropna()
    return "; ".join(f"{ENCODERS[encoder]}: seeds {own}" for encoder, own in words.items()) + "."


def anchors() -> str:
    """Every anchor before and after training, with five descriptions drawn by each seed."""
    return _anchor_table("task", {task: TITLES[task] for task in TASKS}, change="default")


def misleading() -> str:
    """Misleading label names: bare names against verbalizers."""
    return _anchor_table("change", {"default": "verbalizers", "bare-names": "bare names"}, task=MISLEADING)


def _anchor_table(along: str, titles: Mapping[str, str], **facts: str) -> str:
    ways = {
        f"{way}.{anchor}": f"{when}, {anchor}"
        for way, when in {"untrained": "untrained", "macro_f1_predicted": "trained"}.items()
        for anchor in ANCHORS
    }
    runs = runs_of("ablations", "task", "change", *ways, **facts).melt(["task", "change"], var_name="way")
    cells = crossed(runs, [along], ["way"], lambda own, *_: corrected(own.value, share_drawn(own.task.iloc[0])))
    return table(titled(cells, titles, ways), CORNER)


def ranges() -> str:
    """Lowest and highest score over the samples of each task, as a sentence."""
    found = {task: default_scores(task) for task in (*TASKS, INTENTS)}
    words = [f"{TITLES[task]} {own.min():.3f} to {own.max():.3f}" for task, own in found.items() if len(own)]
    return "; ".join(words) + "." if words else NOT_YET


def rates() -> str:
    """The learning rate chosen by each rule and its score, and Pearson's r of uniformity and macro-F1."""
    names = {f"macro_f1_predicted.{DEFAULT_ANCHOR}": "score", "uniformity.train": "train", "uniformity.test": "test"}
    runs = store.frame("study", "rates", "encoder", "task", "learning_rate", "base_rate", *names).rename(columns=names)
    cells = {}
    for (encoder, task), own in runs.sort_values("learning_rate").groupby(["encoder", "task"]):
        grid, base = own[own.learning_rate != own.base_rate], own[own.learning_rate == own.base_rate]
        if len(grid) < 3:
            continue
        chosen = pd.concat([grid.nsmallest(1, "train"), grid.nsmallest(1, "test"), base, own.nlargest(1, "score")])
        cells[encoder, task] = [
            str(len(own)),
            *(f"{run.score:.3f} ({run.learning_rate:.0e})" for run in chosen.itertuples()),
            f"{own.train.corr(own.score):+.2f}",
        ]
    head = ["rates", "uniformity, train pool", "uniformity, test pool", "base rate", "oracle", "Pearson's r"]
    found = pd.DataFrame.from_dict(cells, orient="index", columns=head)
    order = products(ENCODERS, {task: TITLES[task] for task in TASKS})
    return table(titled(found, order, dict(zip(head, head, strict=True))), "", "")


def rivals() -> str:
    """Each method's mean, its spread as measured and corrected, our gain over it, worst run, seconds, memory.

    A rival's sample takes at most one in eighty labelled rows of a class, so its samples count as not overlapping.
    """
    columns = ("task", "method", "macro_f1_predicted", "training_seconds", "peak_memory_mib")
    runs = dict(list(runs_of("rivals", *columns).groupby(["task", "method"])))
    rows = []
    for task, method in itertools.product(RUNS, METHODS):
        if (task, method) not in runs:
            continue
        own, ours = runs[task, method], runs.get((task, "ours"), pd.DataFrame(columns=columns)).macro_f1_predicted
        scores = own.macro_f1_predicted
        share = share_drawn(task) if method == "ours" else 0
        spreads = [f"{overlap.deviation(scores, kept):.3f}" for kept in (0, share)] if len(own) > 1 else ["-", "-"]
        above = "-"
        if method != "ours" and min(len(ours), len(own)) > 1:
            gain = statistics.fmean(ours) - statistics.fmean(scores)
            error = math.hypot(overlap.standard_error(ours, share_drawn(task)), overlap.standard_error(scores, 0))
            above = f"{gain:+.3f} ± {error:.3f}"
        facts = [str(len(own)), f"{statistics.fmean(scores):.3f}", *spreads, above, f"{scores.min():.3f}"]
        facts += [spread(own.training_seconds, "{:.0f}"), f"{own.peak_memory_mib.max():,.0f}"]
        rows.append([TITLES[task], METHODS[method], *facts])
    head = ["runs", "macro-F1", "± of these runs", "± with nothing shared", "ours above it ± standard error", "worst"]
    return markdown(["", "", *head, "training, seconds", "peak memory, MiB"], rows)


def curve() -> str:
    """Labelled texts per class that logistic regression needs to match descriptions alone."""
    rows = []
    for run in runs_of("curve").to_dict("records"):
        ours = default_scores(task := run["task"])
        means = {count: statistics.fmean(run["macro_f1_predicted"][str(count)]) for count in PER_CLASS}
        enough = next((str(n) for n in PER_CLASS if len(ours) and means[n] >= ours.mean()), f"> {PER_CLASS[-1]}")
        alone = corrected(ours, share_drawn(task))
        rows.append([TITLES[task], alone, enough if len(ours) else "-", *(f"{means[n]:.3f}" for n in PER_CLASS)])
    return markdown(["", "descriptions alone ± corrected", "labels a class to match", *map(str, PER_CLASS)], rows)


def schedule() -> str:
    """60 updates and 1,000 with patience: macro-F1, mean and standard deviation over writers, whose texts are apart."""
    rows: list[list[str]] = []
    for anchor, (title, facts) in itertools.product((DEFAULT_ANCHOR, "verbalizer"), SCHEDULES.items()):
        runs = store.frame("study", "schedule", **facts)
        if runs.empty:
            continue
        runs["length"] = runs.max_steps.eq(SHORT).map({True: "short", False: "long"})
        both = runs[runs.groupby(["task", "writer"]).length.transform("nunique") == 2]
        found = both.pivot(index=["task", "writer"], columns="length", values=f"macro_f1_predicted.{anchor}")
        before = both[both.length == "short"].set_index(["task", "writer"])[f"untrained.{anchor}"]
        gap = found["short"] - found["long"]
        lines = {"untrained": before, f"{SHORT} updates": found["short"], f"{LONG:,} with patience": found["long"]}
        for line, values in lines.items():
            cells = [spread(values.get(task, pd.Series(dtype=float)).tolist()) for task in SCHEDULED]
            rows.append([ANCHOR_TITLES[anchor], title, line, *cells, _mean_of_tasks(values, "{:.3f}")])
        cells = [
            f"{own.mean():+.3f}; {int((own > 0).sum())} of {len(own)}" if len(own) else ""
            for own in (gap.get(task, pd.Series(dtype=float)) for task in SCHEDULED)
        ]
        rows.append([ANCHOR_TITLES[anchor], title, f"{SHORT} minus {LONG:,}", *cells, _mean_of_tasks(gap, "{:+.3f}")])
    head = ["anchor", "learning rate", "updates", *(TITLES[task] for task in SCHEDULED), "mean of the first four"]
    return markdown(head, rows) if rows else NOT_YET


def _mean_of_tasks(values: pd.Series, form: str) -> str:
    means = values.groupby("task").mean()
    return form.format(means[list(TASKS)].mean()) if set(TASKS) <= set(means.index) else ""


BLOCKS: dict[str, Callable[[], str]] = {
    "study-table1": before_and_after,
    "study-gains": gains,
    "study-seeds": lambda: seeds_of("ablations"),
    "study-multilingual": multilingual,
    "study-schedule": schedule,
    "study-anchors": anchors,
    "study-ablations": ablations,
    "study-ablations-verbalizer": lambda: ablations("verbalizer"),
    "study-misleading": misleading,
    "study-ranges": ranges,
    "study-rates": rates,
    "study-rivals": rivals,
    "study-curve": curve,
}
