"""Tables beyond the paper: no dip between zero labels and few, the cost of a step, memory."""

import statistics
from itertools import product
from typing import Any

import pandas as pd
from commits import marked
from layout import NOT_YET, crossed, markdown, percent, products, table, titled

from lacon.curve import COUNTS, TASKS
from lacon.methods import METHODS
from lacon.runs import runs_of

TITLES = {
    "emotion": "Emotion",
    "agnews": "AG News",
    "banking77": "Banking77, all 77",
    "rottentomatoes": "Rotten Tomatoes",
}
CURVES = {"lacon": "LaCon with descriptions", "logistic": "logistic regression", "setfit": "SetFit, its template"}
COUNT_TITLES = {count: str(count) for count in COUNTS}
MOST_LOST = 0.01
MOST_SLOWER = 1.3
MOST_MIB = 2048
ALONG = ["task", "method", "per_class", "seed"]


def curve_runs() -> pd.DataFrame:
    """Return macro-F1 (`score`) by task, method, labels per class and seed, and whether SetFit was cut short (`early`).

    SetFit has its full schedule at each count where that was run, else the truncated one.
    """
    scores = ("macro_f1_predicted", "macro_f1_predicted_by_count")
    columns = (*ALONG, *scores, "steps", "whole_schedule", "provenance.commit")
    own, cut, whole = (runs_of(part, *columns) for part in ("curve", "setfit", "setfit-whole"))
    at = ["task", "per_class"]
    cut = cut[~pd.MultiIndex.from_frame(cut[at]).isin(pd.MultiIndex.from_frame(whole[at]))]
    runs = pd.concat([own, cut.assign(method="setfit"), whole.assign(method="setfit")], ignore_index=True)
    several = [
        {**run, "per_class": int(count), "seed": int(seed), "macro_f1_predicted": score}
        for run in runs[runs.macro_f1_predicted_by_count.notna()].to_dict("records")
        for count, scores in run["macro_f1_predicted_by_count"].items()
        for seed, score in scores.items()
    ]
    runs = pd.concat([runs[runs.macro_f1_predicted.notna()], pd.DataFrame(several, columns=columns)], ignore_index=True)
    runs["early"] = runs.steps < runs.whole_schedule  # stopped before the end of its schedule, so maybe too low
    return runs.rename(columns={"macro_f1_predicted": "score"}).astype({"per_class": int, "seed": int})


def setfit_schedules() -> str:
    """Change in SetFit's score by its full schedule, at each count, over the samples that have both runs."""
    at, score = ["task", "per_class", "seed"], "macro_f1_predicted"
    words = {"_cut": "100 updates", "_whole": "all of them"}
    both = runs_of("setfit", *at, score).merge(runs_of("setfit-whole", *at, score), on=at, suffixes=tuple(words))
    runs = both.melt(at, [score + suffix for suffix in words], "schedule", "score")
    cells = crossed(runs, ["task", "schedule"], ["per_class"], lambda own, *_: percent(own.score))
    rows = products({task: TITLES[task] for task in TASKS}, {score + suffix: words[suffix] for suffix in words})
    return table(titled(cells, rows, COUNT_TITLES), "", "SetFit with")


def setfit_defaults() -> str:
    """SetFit with its package's defaults, SetFit with its template, and ours, on one sample of labelled rows."""
    others, rows = curve_runs().set_index(ALONG).score, []
    runs = runs_of("setfit-default", "task", "per_class", "seed", "steps", "macro_f1_predicted")
    for task in TASKS:
        for _, count, seed, steps, score in runs[runs.task == task].itertuples(index=False):
            beside = (others.get((task, method, count, seed)) for method in ("setfit", "lacon"))
            cells = ["-" if own is None else percent([own]) for own in beside]
            rows.append([TITLES[task], str(count), f"{steps:,}", percent([score]), *cells])
    head = ["", "rows a class", "SetFit's updates", "SetFit, its package's defaults", CURVES["setfit"], CURVES["lacon"]]
    return markdown(head, rows)


def means_of(by_seed: pd.DataFrame) -> pd.Series:
    """Average each count over the seeds that all counts have, so that an unfinished curve compares equal samples.

    A count with a single run, because nothing in it is random, counts for every seed.

    Args:
        by_seed: scores, a row for each seed and a column for each count.
    """
    complete = by_seed.dropna(subset=[count for count in by_seed if count])
    return complete.mean().fillna(by_seed.mean())


def largest_dip(means: pd.Series) -> tuple[float, int, int] | None:
    """Return the largest loss from one count to the next, and these counts; negative if nothing is lost."""
    losses = -means.sort_index().diff().dropna()
    if losses.empty:
        return None
    high = losses.idxmax()
    return losses[high], means.index[means.index < high].max(), high


def curve() -> str:
    """Macro-F1 from zero labels to 64 a class, and the largest fall from one step to the next."""
    runs = curve_runs()
    cells = crossed(runs, ["task", "method"], ["per_class"], lambda own, *_: percent(own.score) + "*" * any(own.early))
    titles = {}
    for (task, method), own in runs.groupby(["task", "method"]):
        titles[task, method] = (TITLES[task], marked(CURVES[method], own))
        dip = largest_dip(means_of(own.pivot(index="seed", columns="per_class", values="score")))
        fall = f"{100 * max(dip[0], 0):.1f}" + (f" ({dip[1]} to {dip[2]})" if dip[0] > 0 else "") if dip else "-"
        cells.loc[(task, method), "fall"] = fall
    rows = {key: titles[key] for key in product(TASKS, CURVES) if key in titles}
    return table(titled(cells, rows, COUNT_TITLES | {"fall": "largest fall"}), "", "")


def aim() -> str:
    """The aim at each step: no fall beyond 0.01, and at or above the better of descriptions and SetFit."""
    runs = curve_runs()
    rows = []
    for task in TASKS:
        ours, setfit = (runs[(runs.task == task) & (runs.method == method)] for method in ("lacon", "setfit"))
        means = means_of(ours.pivot(index="seed", columns="per_class", values="score"))
        dip = largest_dip(means)
        if dip is None:
            continue
        theirs = setfit.groupby("per_class").score.mean().reindex(means.index)
        missing = means.index[theirs.isna() | means.index.isin(setfit[setfit.early].per_class)]
        behind = means - theirs.clip(lower=means.get(0)).fillna(means.get(0, float("nan")))
        seeds = ours[ours.per_class > 0].groupby("per_class").size().min()
        rows.append(
            [
                marked(TITLES[task], ours),
                str(seeds),
                f"{100 * max(dip[0], 0):.1f}",
                "yes" if dip[0] <= MOST_LOST else f"no, {dip[1]} to {dip[2]}",
                ", ".join(f"{count} ({100 * gap:.1f})" for count, gap in behind[behind < 0].items()) or "nowhere",
                ", ".join(map(str, missing)) or "none",
            ]
        )
    return markdown(
        ["", "seeds", "largest fall", "at most 1.0", "below the better of the two", "SetFit not run, or cut short"],
        rows,
    )


def prior() -> str:
    """The weight of the descriptions at each number of labels, and the reason for it."""
    runs = runs_of("curve", "task", "per_class", "prior.weight", "prior.reason", method="lacon").dropna()

    def cell(own: pd.DataFrame, *_: Any) -> str:
        priors = own[["prior.weight", "prior.reason"]].drop_duplicates().itertuples(index=False)
        return ", ".join(sorted(f"{weight:.2f} ({reason})" for weight, reason in priors))

    cells = crossed(runs, ["task"], ["per_class"], cell)
    columns = {count: title for count, title in COUNT_TITLES.items() if count}
    return table(titled(cells, {task: TITLES[task] for task in TASKS}, columns), "labels a class")


# A step with descriptions has twice the texts. The aim is for equal batches and does not apply; the step is only shown.
FEW_TITLE = "LaCon-vanilla, descriptions beside the rows"


def speed() -> str:
    """Time of a training step against plain cross-entropy's on the same batch."""
    rows = []
    for found in runs_of("speed", what="step").to_dict("records"):
        for method, ratio in found["ratio"].items():
            own = found["ratios"][method]
            plain = f"{1000 * statistics.median(found['step_seconds']['ce']):.0f} ms"
            what = f"{found['batch']} texts, {found['tokens'] / found['batch']:.0f} tokens each"
            within = "yes" if ratio <= MOST_SLOWER else "no"
            title = METHODS[method].title if method in METHODS else FEW_TITLE
            rows.append([title, what, plain, f"{ratio:.2f}", f"{min(own):.2f} to {max(own):.2f}", within])
    return markdown(["", "batch", "step of CE", "ratio, median", "of which", f"at most {MOST_SLOWER}"], rows)


LOSSES = {
    "instance": "L_ICL, texts against labels",
    "label": "L_LCL, labels against texts",
    "supervised": "supervised contrastive, texts against texts",
    "self-supervised": "InfoNCE, texts against their second views",
}


def losses() -> str:
    """Time of LaCon's losses and of those over pairs of texts, by batch (appendix A.3)."""
    rows = []
    for found in runs_of("speed", what="losses").to_dict("records"):
        by_batch = found["seconds_of_losses"]
        for name, title in LOSSES.items():
            rows.append([title, *(f"{1000 * own[name]:.2f}" for own in by_batch.values())])
        return markdown(["ms", *(f"{int(batch):,} texts" for batch in by_batch)], rows)
    return NOT_YET


def loss() -> str:
    """Memory and time of equation 7 and its gradient with increasing numbers of classes."""
    rows = []
    for found in sorted(runs_of("speed", what="loss").to_dict("records"), key=lambda run: run["classes"]):
        parts = [f"{1000 * found['seconds_of_parts'][name]:.1f}" for name in ("instance", "label", "regularizer")]
        memory = [f"{found['added_mib']:,.0f}", f"{found['peak_memory_mib']:,.0f}"]
        within = "yes" if found["peak_memory_mib"] < MOST_MIB else "no"
        rows.append([f"{found['classes']:,.0f}", f"{1000 * found['loss_seconds']:.1f}", *parts, *memory, within])
    head = ["classes", "ms", "of which L'_ICL", "L_LCL", "L_LER", "added, MiB", "peak of the process, MiB"]
    return markdown([*head, "below 2 GB"], rows)
