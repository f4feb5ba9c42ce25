"""Tables of the consensus study."""

import pandas as pd
from layout import NOT_YET, spread, table, titled
from store import frame

from views.experiments import TASKS

SETS = {
    "rottentomatoes": "Rotten Tomatoes",
    "emotion": "emotion",
    "agnews": "AG News",
    "banking77_cards": "six cards",
}
MINILM, BOTH = "all-MiniLM-L6-v2+words", "all-MiniLM-L6-v2+all-mpnet-base-v2+words"
ROWS = {
    (MINILM, "alone 0"): "MiniLM, descriptions alone",
    (MINILM, "together"): "MiniLM and words",
    (BOTH, "alone 1"): "mpnet, descriptions alone",
    (BOTH, "together"): "MiniLM, mpnet and words",
}


def scores() -> pd.DataFrame:
    """Return macro-F1 of every run: together, and of each encoder alone."""
    runs = frame("consensus", "consensus", "task", "views", "seed", "scores.macro_f1", "alone")
    found = []
    for run in runs.to_dict("records"):
        own = {name: run[name] for name in ("task", "views", "seed")}
        found.append({**own, "who": "together", "score": run["scores.macro_f1"]})
        found += [{**own, "who": f"alone {place}", "score": one["macro_f1"]} for place, one in enumerate(run["alone"])]
    return pd.DataFrame(found)


def quality() -> str:
    """Macro-F1 with and without a pool, and the mean over the sets."""
    found = scores()
    if found.empty:
        return NOT_YET
    cells = found.groupby(["views", "who", "task"])["score"].agg(list).map(spread).unstack("task")
    means = (
        found.groupby(["views", "who", "task"])["score"].mean().unstack("task")[list(TASKS)].mean(axis=1, skipna=False)
    )
    cells["mean"] = means.map("{:.3f}".format, na_action="ignore")
    return table(titled(cells, ROWS, {**SETS, "mean": "mean"}), "views")


BLOCKS = {"consensus-quality": quality}
