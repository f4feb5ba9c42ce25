"""Tables beyond the paper: no dip between zero labels and few, the cost of a step, memory."""

import statistics
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise

from commits import marked
from layout import filled, markdown, percent

from lacon.curve import COUNTS, TASKS
from lacon.methods import METHODS
from lacon.runs import BySeed, Result, runs_of

TITLES = {
    "emotion": "Emotion",
    "agnews": "AG News",
    "banking77": "Banking77, all 77",
    "rottentomatoes": "Rotten Tomatoes",
}
CURVES = {"lacon": "LaCon with descriptions", "logistic": "logistic regression", "setfit": "SetFit, its template"}
MOST_LOST = 0.01
MOST_SLOWER = 1.3
MOST_MIB = 2048


def curve_scores(task: str, method: str) -> dict[int, BySeed]:
    """Return macro-F1 by labels per class and seed; a single run for all seeds counts for each of them."""
    found: dict[int, BySeed] = defaultdict(dict)
    for result in curve_runs(task, method):
        if "macro_f1_predicted_by_count" in result:
            for count, scores in result["macro_f1_predicted_by_count"].items():
                found[int(count)] |= {int(seed): score for seed, score in scores.items()}
        else:
            found[result["per_class"]][result["seed"]] = result["macro_f1_predicted"]
    return dict(found)


def curve_runs(task: str, method: str) -> list[Result]:
    """Return the results behind a line of the curve."""
    if method == "setfit":
        return setfit_runs(task)
    return runs_of("curve", task=task, method=method)


def setfit_runs(task: str) -> list[Result]:
    """Return SetFit's runs of a task: at each count those with the full schedule, else truncated ones."""
    cut, whole = (runs_of(part, task=task) for part in ("setfit", "setfit-whole"))
    done = {run["per_class"] for run in whole}
    return [run for run in cut if run["per_class"] not in done] + whole


def setfit_schedules() -> str:
    """Change in SetFit's score by its full schedule, at each count, over the samples that have both runs."""
    rows = []
    for task in TASKS:
        cut, whole = (
            {(run["per_class"], run["seed"]): run["macro_f1_predicted"] for run in runs_of(part, task=task)}
            for part in ("setfit", "setfit-whole")
        )
        both = sorted(cut.keys() & whole.keys())
        for words, scores in (("100 updates", cut), ("all of them", whole)) if both else ():
            cells = [percent([scores[key] for key in both if key[0] == count]) or "-" for count in COUNTS]
            rows.append([TITLES[task], words, *cells])
    return markdown(["", "SetFit with", *map(str, COUNTS)], rows)


def setfit_defaults() -> str:
    """SetFit with its package's defaults, SetFit with its template, and ours, on one sample of labelled rows."""
    rows = []
    for task in TASKS:
        for run in runs_of("setfit-default", task=task):
            count, seed = run["per_class"], run["seed"]
            beside = (curve_scores(task, method)[count] for method in ("setfit", "lacon"))
            cells = [percent([own[seed]]) if seed in own else "-" for own in beside]
            own = percent([run["macro_f1_predicted"]])
            rows.append([TITLES[task], str(count), f"{run['steps']:,}", own, *cells])
    head = ["", "rows a class", "SetFit's updates", "SetFit, its package's defaults", CURVES["setfit"], CURVES["lacon"]]
    return markdown(head, rows)


def cut_short(task: str) -> set[int]:
    """Return the counts at which SetFit was stopped before the end of its schedule, so its score may be too low."""
    return {run["per_class"] for run in setfit_runs(task) if run["steps"] < run["whole_schedule"]}


def means_of(scores: Mapping[int, BySeed]) -> dict[int, float]:
    """Average each count over the seeds that all counts have, so that an unfinished curve compares equal samples.

    A count with a single run, because nothing in it is random, counts for every seed.
    """
    several = [own.keys() for count, own in scores.items() if count]
    common = set.intersection(*map(set, several)) if several else set()
    chosen = {count: [own[seed] for seed in common if seed in own] or [*own.values()] for count, own in scores.items()}
    return {count: statistics.fmean(own) for count, own in chosen.items()}


def largest_dip(means: Mapping[int, float]) -> tuple[float, int, int] | None:
    """Return the largest loss from one count to the next, and these counts; negative if nothing is lost."""
    counts = sorted(means)
    steps = [(means[low] - means[high], low, high) for low, high in pairwise(counts)]
    return max(steps) if steps else None


def curve() -> str:
    """Macro-F1 from zero labels to 64 a class, and the largest fall from one step to the next."""
    rows = []
    for task in TASKS:
        for method, words in CURVES.items():
            scores = curve_scores(task, method)
            if not scores:
                continue
            early = cut_short(task) if method == "setfit" else set()
            cells = [percent(list(scores.get(count, {}).values())) + "*" * (count in early) for count in COUNTS]
            dip = largest_dip(means_of(scores))
            fall = f"{100 * max(dip[0], 0):.1f}" + (f" ({dip[1]} to {dip[2]})" if dip[0] > 0 else "") if dip else "-"
            rows.append([TITLES[task], marked(words, curve_runs(task, method)), *cells, fall])
    return markdown(["", "", *map(str, COUNTS), "largest fall"], rows)


def aim() -> str:
    """The aim at each step: no fall beyond 0.01, and at or above the better of descriptions and SetFit."""
    rows = []
    for task in TASKS:
        ours, setfit = curve_scores(task, "lacon"), curve_scores(task, "setfit")
        if len(ours) < 2:
            continue
        means, theirs = means_of(ours), {count: statistics.fmean(own.values()) for count, own in setfit.items()}
        early = cut_short(task)
        dip = largest_dip(means)
        assert dip is not None
        behind, missing = [], []
        for count, mean in sorted(means.items()):
            rivals = [means[0]] if 0 in means else []
            if count in theirs:
                rivals.append(theirs[count])
            if count not in theirs or count in early:
                missing.append(count)
            if rivals and mean < max(rivals):
                behind.append(f"{count} ({100 * (mean - max(rivals)):.1f})")
        seeds = min(len(own) for count, own in ours.items() if count)
        rows.append(
            [
                marked(TITLES[task], curve_runs(task, "lacon")),
                str(seeds),
                f"{100 * max(dip[0], 0):.1f}",
                "yes" if dip[0] <= MOST_LOST else f"no, {dip[1]} to {dip[2]}",
                ", ".join(behind) or "nowhere",
                ", ".join(map(str, missing)) or "none",
            ]
        )
    return markdown(
        ["", "seeds", "largest fall", "at most 1.0", "below the better of the two", "SetFit not run, or cut short"],
        rows,
    )


def prior() -> str:
    """The weight of the descriptions at each number of labels, and the reason for it."""
    rows = []
    for task in TASKS:
        cells = []
        for count in COUNTS[1:]:
            runs = runs_of("curve", task=task, method="lacon", per_class=count)
            weights = {f"{r['prior']['weight']:.2f} ({r['prior']['reason']})" for r in runs}
            cells.append(", ".join(sorted(weights)) or "-")
        rows.append([TITLES[task], *cells])
    return markdown(["labels a class", *map(str, COUNTS[1:])], filled(rows))


# A step with descriptions has twice the texts. The aim is for equal batches and does not apply; the step is only shown.
FEW_TITLE = "LaCon-vanilla, descriptions beside the rows"


def speed() -> str:
    """Time of a training step against plain cross-entropy's on the same batch."""
    rows = []
    for found in runs_of("speed", what="step"):
        for method, ratio in found["ratio"].items():
            own = found["ratios"][method]
            plain = f"{1000 * statistics.median(found['step_seconds']['ce']):.0f} ms"
            what = f"{found['batch']} texts, {found['tokens'] / found['batch']:.0f} tokens each"
            within = "yes" if ratio <= MOST_SLOWER else "no"
            title = METHODS[method].title if method in METHODS else FEW_TITLE
            rows.append([title, what, plain, f"{ratio:.2f}", f"{min(own):.2f} to {max(own):.2f}", within])
    return markdown(["", "batch", "step of CE", "ratio, median", "of which", f"at most {MOST_SLOWER}"], rows)


def loss() -> str:
    """Memory and time of equation 7 and its gradient with increasing numbers of classes."""
    rows = []
    for found in sorted(runs_of("speed", what="loss"), key=lambda r: r["classes"]):
        parts = [f"{1000 * found['seconds_of_parts'][name]:.1f}" for name in ("instance", "label", "regularizer")]
        memory = [f"{found['added_mib']:,.0f}", f"{found['peak_memory_mib']:,.0f}"]
        within = "yes" if found["peak_memory_mib"] < MOST_MIB else "no"
        rows.append([f"{found['classes']:,}", f"{1000 * found['loss_seconds']:.1f}", *parts, *memory, within])
    head = ["classes", "ms", "of which L'_ICL", "L_LCL", "L_LER", "added, MiB", "peak of the process, MiB"]
    return markdown([*head, "below 2 GB"], rows)
