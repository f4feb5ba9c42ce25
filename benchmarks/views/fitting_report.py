"""Tables of the consensus study: none of these, and probabilities."""

import numpy as np
import pandas as pd
from layout import NOT_YET, markdown
from store import frame

LIMITS = {
    "no limit": "no limit",
    "fixed": "best fixed cosine of the others",
    "coverage": "share 0.95",
    "left-out": "auto",
}
MODELS = {"none-consensus": "a consensus", "none": "an encoder alone"}
ERRORS = ("ece_fixed", "ece_told", "brier_fixed", "brier_told")


def none_of_these() -> str:
    """Macro-F1 with "none" as a class, by the way to set the limit: means over sets or draws."""
    rows = []
    for part, model in MODELS.items():
        runs = frame("consensus", part, "task", "other", "share", "macro_f1", "fixed", "auroc", "refused")
        if runs.empty:
            return NOT_YET
        best = _fixed_of_others(runs)
        for share, own in sorted(runs.groupby("share"), key=lambda each: -each[0]):
            means = pd.json_normalize(own["macro_f1"].tolist()).mean()
            means["fixed"] = np.mean([fixed[best[task]] for task, fixed in zip(own["task"], own["fixed"], strict=True)])
            auroc = own["auroc"].dropna().map(lambda run: run["closeness"]).mean()
            documents = f"{len(own)} mixtures of sets" if own["other"].all() else f"intents, {len(own)} draws"
            values = [f"{means[name]:.3f}" for name in (*LIMITS, "oracle")]
            refused = own["refused"].map(lambda run: run["left-out"]).mean()
            auroc = "-" if np.isnan(auroc) else f"{auroc:.3f}"
            rows.append([model, documents, f"{share:.0%}", auroc, *values, f"{refused:.0%}"])
    head = ["model", "documents", "fit none", "AUROC", *LIMITS.values(), "best limit by the truth", "auto refused"]
    return markdown(head, rows)


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
    "probabilities": probabilities,
}
