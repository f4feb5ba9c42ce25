"""Tables of the consensus study: none of these, and probabilities."""

import numpy as np
import pandas as pd
from layout import NOT_YET, markdown
from store import frame

WAYS = ("coverage", "left-out", "auto")
TITLES = {"fixed": "best fixed cosine of the others", "coverage": "coverage 0.95"}
ERRORS = ("ece_fixed", "ece_told", "brier_fixed", "brier_told")


def none_of_these() -> str:
    """Macro-F1 with "none" as a class, by the way to set the limit."""
    runs = frame("consensus", "none", "task", "other", "share", "draw", "macro_f1", "fixed", "auroc", "way")
    if runs.empty:
        return NOT_YET
    best = _fixed_of_others(runs)
    rows = []
    ways = ("no limit", "coverage", "left-out", "auto", "oracle")
    for (task, other, share), own in runs.groupby(["task", "other", "share"], sort=False):
        scores = {way: float(np.mean([run[way] for run in own["macro_f1"]])) for way in ways}
        fixed = float(np.mean([run[best[task]] for run in own["fixed"]]))
        told = own["auroc"].dropna()
        auroc = f"{np.mean([run['closeness'] for run in told]):.3f}" if len(told) else "-"
        known = f"{task} and {other}" if other else task
        mixture = f"{(own['way'] == 'mixture').sum()} of {len(own)}"
        values = [scores["no limit"], fixed, *(scores[way] for way in ways[1:])]
        rows.append((share, [known, f"{share:.0%}", auroc, *(f"{value:.3f}" for value in values), mixture]))
    head = ["labels, and texts that fit none", "share", "AUROC", "no limit", "best fixed cosine of the others"]
    head += ["coverage 0.95", "left-out", "auto", "best limit by the truth", "auto took the mixture"]
    return markdown(head, [row for _, row in sorted(rows, key=lambda row: -row[0])])


def none_in_short() -> str:
    """How far each way goes from the fixed cosine to the best limit, and what it costs where all documents fit."""
    runs = frame("consensus", "none", "task", "share", "macro_f1", "fixed")
    if runs.empty:
        return NOT_YET
    best = _fixed_of_others(runs)
    rows = []
    for way in ("no limit", "fixed", "coverage", "left-out", "auto"):
        line = []
        for fits in (False, True):
            own = runs[(runs["share"] == 0) if fits else (runs["share"] >= 0.3)]
            found = pd.DataFrame(
                {
                    "task": own["task"],
                    "fixed": [row["fixed"][best[row["task"]]] for row in own.to_dict("records")],
                    **{name: [run[name] for run in own["macro_f1"]] for name in (*WAYS, "no limit", "oracle")},
                }
            )
            means = found.groupby("task").mean().mean()
            line += (
                [means[way]]
                if fits
                else [means[way], (means[way] - means["fixed"]) / (means["oracle"] - means["fixed"])]
            )
            if fits:
                line.append(means[way] - means["no limit"])
        f1, part, all_fit, cost = line
        rows.append([TITLES.get(way, way), f"{f1:.3f}", f"{part:.0%}", f"{all_fit:.3f}", f"{cost:+.3f}"])
    return markdown(
        ["limit", "macro-F1, 30 % or more fit none", "of the way to the best limit", "all fit", "change"], rows
    )


def none_of_a_consensus() -> str:
    """Macro-F1 with "none" as a class, of a consensus: means over the sets, by the share that fits none."""
    runs = frame("consensus", "none-consensus", "other", "share", "macro_f1", "auroc", "refused")
    if runs.empty:
        return NOT_YET
    rows = []
    for share, own in sorted(runs.groupby("share"), key=lambda each: -each[0]):
        means = pd.json_normalize(own["macro_f1"].tolist()).mean()
        auroc = own["auroc"].dropna().map(lambda run: run["closeness"]).mean()
        refused = own["refused"].map(lambda run: run["left-out"]).mean()
        sets = f"{len(own)} mixtures of sets" if own["other"].all() else f"half of the intents hidden, {len(own)} draws"
        values = [means["no limit"], *(means[way] for way in WAYS), means["oracle"]]
        auroc = "-" if np.isnan(auroc) else f"{auroc:.3f}"
        rows.append([sets, f"{share:.0%}", auroc, *(f"{value:.3f}" for value in values), f"{refused:.0%}"])
    head = [
        "documents",
        "fit none",
        "AUROC",
        "no limit",
        "coverage 0.95",
        "left-out",
        "auto",
        "best limit by the truth",
    ]
    return markdown([*head, "left-out refused"], rows)


def _fixed_of_others(runs: pd.DataFrame) -> dict[str, int]:
    """Return for each set the fixed cosine, by its place, that is best for the other sets at 30 % or more."""
    means = {task: np.mean(own["fixed"].tolist(), axis=0) for task, own in runs[runs["share"] >= 0.3].groupby("task")}
    return {task: int(np.mean([means[other] for other in means if other != task], axis=0).argmax()) for task in means}


def probabilities() -> str:
    """Errors of probabilities at the fixed temperature and at that which the pool tells."""
    found = probability_errors()
    if found.empty:
        return NOT_YET
    titles = {"alone": "an encoder alone", "together": "a consensus", "words": "words as its student"}
    rows = []
    for who, title in titles.items():
        own = found[found["who"] == who].groupby("task")[[*ERRORS]].mean()
        worst = own["ece_told"].idxmax()
        values = [f"{own[name].mean():.3f}" for name in ERRORS]
        rows.append([title, f"{len(own)}", *values, f"{own.loc[worst, 'ece_told']:.3f} ({worst})"])
    means = found.groupby(["who", "task"])[[*ERRORS]].mean()
    rows.append(["all", f"{len(means)}", *(f"{means[name].mean():.3f}" for name in ERRORS), ""])
    head = [
        "model",
        "sets",
        "ECE, fixed",
        "ECE, told by the pool",
        "Brier, fixed",
        "Brier, told by the pool",
        "worst ECE",
    ]
    return markdown(head, rows)


def probability_errors() -> pd.DataFrame:
    """Return the errors of each model on each set."""
    runs = frame("consensus", "probabilities", "task", "seed", "alone", "together", "words")
    return pd.DataFrame(
        [
            {"task": run["task"], "who": who, **run[who]}
            for run in runs.to_dict("records")
            for who in ("alone", "together", "words")
            if isinstance(run[who], dict)
        ]
    )


FITTING = {
    "none-of-these": none_of_these,
    "none-in-short": none_in_short,
    "none-of-a-consensus": none_of_a_consensus,
    "probabilities": probabilities,
}
