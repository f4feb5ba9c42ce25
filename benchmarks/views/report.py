"""Tables of the consensus study."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from layout import NOT_YET, markdown, spread, table, titled
from store import frame

from views.answered import TOGETHER, answered
from views.calibrate import all_runs, coverage
from views.fitting_report import FITTING
from views.sets import DESCRIBED

SETS = {
    "rottentomatoes": "Rotten Tomatoes",
    "emotion": "emotion",
    "agnews": "AG News",
    "banking77_cards": "six cards",
}
MINILM, BOTH = "all-MiniLM-L6-v2+words", "all-MiniLM-L6-v2+all-mpnet-base-v2+words"
ROWS = {
    (MINILM, "alone 0"): "MiniLM, descriptions alone",
    (MINILM, TOGETHER): "MiniLM and words",
    (BOTH, "alone 1"): "mpnet, descriptions alone",
    (BOTH, TOGETHER): "MiniLM, mpnet and words",
}
POOLS = {
    "half": "one label is half of the documents",
    "hundredth": "one label in a hundred documents",
    "absent": "one label is absent",
}


def quality() -> str:
    """Macro-F1 with and without a pool, and the mean over the sets."""
    found = answered("consensus")
    return NOT_YET if found.empty else _by_set(found, ["views", "who"], ROWS, "macro_f1")


def students() -> str:
    """Macro-F1 of the teachers and of their students."""
    runs = frame(
        "consensus", "student", "task", "views", "seed", "student", "scores.macro_f1", "student_scores.macro_f1"
    )
    if runs.empty:
        return NOT_YET
    taught = runs.assign(who=runs["student"], macro_f1=runs["student_scores.macro_f1"])
    teachers = runs[runs["student"] == "words"].assign(who="teacher", macro_f1=runs["scores.macro_f1"])
    named = {
        (views, who): f"{'MiniLM and words' if views == MINILM else 'MiniLM, mpnet and words'}: {title}"
        for views in (MINILM, BOTH)
        for who, title in {
            "teacher": "the views themselves",
            "all-MiniLM-L6-v2": "MiniLM as student",
            "words": "words as student",
        }.items()
    }
    return _by_set(pd.concat([taught, teachers]), ["views", "who"], named, "macro_f1")


THIRD = {
    "llm_on_asked": "documents it was asked about: the language model",
    "without.asked": "documents it was asked about: the others",
    "with.asked": "documents it was asked about: all together",
    "without.pool": "the whole pool: the others",
    "with.pool": "the whole pool: all together",
    "without.words": "test rows: words as student of the others",
    "with.words": "test rows: words as student of all together",
    "with.all-MiniLM-L6-v2": "test rows: MiniLM as student of all together",
}


def third() -> str:
    """What a language model adds that was asked about the documents of which the others are least sure."""
    runs = frame("consensus", "third")
    if runs.empty:
        return NOT_YET
    long = pd.concat(runs.assign(who=who, macro_f1=runs[f"{who}.macro_f1"]) for who in THIRD)
    return _by_set(long, ["who"], THIRD, "macro_f1")


def all_sets() -> str:
    """Macro-F1 on every set, the one that gained least first."""
    found = answered("sets", "intents")
    if found.empty:
        return NOT_YET
    rows = []
    for (part, task, views), own in found.groupby(["part", "task", "views"]):
        together = own[own["who"] == TOGETHER].iloc[0]
        alone = own[own["who"] != TOGETHER].iloc[-1]
        gain = together["macro_f1"] - alone["macro_f1"]
        what = "mpnet" if views == BOTH else "MiniLM"
        note = "" if together["changed"] else "left out"
        task = f"{task}, with descriptions" if part == "intents" else task
        counts = [_count(together[name]) for name in ("label_count", "pool_documents")]
        scores = [f"{alone['macro_f1']:.3f}", f"{together['macro_f1']:.3f}", f"{gain:+.3f}"]
        rows.append((gain, [task, what, *counts, *scores, note]))
    rows.sort(key=lambda row: (row[0], row[1]))
    means = found[found["part"] == "sets"].assign(together=found["who"] == TOGETHER)
    # Of two encoders alone, the second.
    means = means.pivot_table(index=["task", "views"], columns="together", values="macro_f1", aggfunc="last")
    for views, own in means.groupby("views"):
        alone, together = own[False].mean(), own[True].mean()
        title = f"mean of {len(own)}, without descriptions"
        scores = [f"{alone:.3f}", f"{together:.3f}", f"{together - alone:+.3f}"]
        rows.append((0, [title, "mpnet" if views == BOTH else "MiniLM", "", "", *scores, ""]))
    head = ["set", "encoder", "labels", "documents", "alone", "consensus", "change", "steps"]
    return markdown(head, [row for _, row in rows])


def pools() -> str:
    """Change of macro-F1 by the pool."""
    found = pd.concat([answered("pools"), answered("consensus").query("seed == 0")])
    if found.empty:
        return NOT_YET
    found = found[found["views"] == MINILM]
    cells = {}
    for (task, size, kind), own in found.groupby(["task", "documents", "pool_kind"]):
        together, alone = own[own["who"] == TOGETHER].iloc[0], own[own["who"] != TOGETHER].iloc[0]
        title = POOLS.get(kind) or ("all documents, 10,000 at most" if size == 10_000 else f"{size:,} documents")
        if not kind and size != 10_000 and own["pool_documents"].iloc[0] < size:
            continue
        order = size if not kind else 10**6 + list(POOLS).index(kind)
        cells[order, title, task] = f"{together['macro_f1'] - alone['macro_f1']:+.3f}"
    rows = [
        [title, *(cells.get((order, title, task), "-") for task in DESCRIBED)]
        for order, title in sorted({(order, title) for order, title, _ in cells})
    ]
    return markdown(["pool", *SETS.values()], rows)


def estimates() -> str:
    """How often the ranges of an estimate held the truth, each set estimated from the others."""
    runs = all_runs()
    if runs.empty:
        return NOT_YET
    found = coverage(runs)
    found["few"] = pd.cut(found["pool_documents"], [0, 75, 700, np.inf], labels=["50", "100 to 400", "more"])
    by = ["consensus", "few", "quantity"]
    # Each set counts once.
    means = found.groupby([*by, "base"], observed=True)[["held", "error", "width"]].mean().groupby(by, observed=True)
    counts = found.groupby(by, observed=True)["base"].agg(["size", "nunique"])
    titles = {"accuracy": "accuracy", "macro_f1": "macro-F1"}
    rows = [
        [
            "a consensus" if consensus else "an encoder alone",
            str(few),
            titles[quantity],
            "{} on {} sets".format(*counts.loc[(consensus, few, quantity)]),
            f"{own['held']:.0%}",
            f"{own['error']:.3f}",
            f"{own['width']:.2f}",
        ]
        for (consensus, few, quantity), own in means.mean().iterrows()
    ]
    head = ["model", "documents", "quantity", "runs", "held the truth", "mean error of the median", "mean width"]
    return markdown(head, rows)


def label_trusts() -> str:
    """F1 of labels by the trust that they got."""
    from labelspace.evaluate.trust import trust_of

    runs = all_runs()
    if runs.empty:
        return NOT_YET
    pairs = pd.DataFrame(
        [
            (trust_of(agreement, labels, documents, neighbours=True, consensus=consensus), f1)
            for labels, documents, consensus, each in zip(
                runs["label_count"], runs["pool_documents"], runs["consensus"], runs["labels"], strict=True
            )
            for agreement, f1 in each
        ],
        columns=["trust", "f1"],
    )
    rows = []
    for name in ("trusted", "doubtful", "not to be trusted", "too few documents"):
        own = pairs.loc[pairs["trust"] == name, "f1"]
        tenth, half = own.quantile([0.1, 0.5]).tolist()
        rows.append([name, f"{len(own):,}", f"{own.mean():.2f}", f"{half:.2f}", f"{tenth:.2f}"])
    return markdown(["trust", "labels", "mean F1", "half have at least", "nine in ten have at least"], rows)


def cost() -> str:
    """What a fit costs, and how fast words are, each as a ratio within one run."""
    runs = frame("consensus", "cost", "task", "pool_documents", "fit_to_encoding", "encoding_to_words")
    if runs.empty:
        return NOT_YET
    rows = [
        [SETS[task], _count(documents), f"{fit:.1f}", f"{words:.0f}"]
        for task, documents, fit, words in runs.itertuples(index=False)
    ]
    head = ["fit, in passes of the encoder over the pool", "words as student: times as fast as the encoder"]
    return markdown(["set", "documents", *head], rows)


def _by_set(found: pd.DataFrame, by: Sequence[str], rows: dict[tuple[str, str], str], value: str) -> str:
    cells = found.groupby([*by, "task"])[value].agg(list).map(spread).unstack("task")
    for name in SETS:
        if name not in cells:
            cells[name] = None
    means = found.groupby([*by, "task"])[value].mean().unstack("task")
    complete = means.reindex(columns=list(SETS)).mean(axis=1, skipna=False)
    cells["mean"] = complete.map("{:.3f}".format, na_action="ignore")
    return table(titled(cells, rows, {**SETS, "mean": "mean"}), "views")


def _count(value: float) -> str:
    return f"{int(value):,}"


BLOCKS = {
    "consensus-quality": quality,
    "consensus-students": students,
    "consensus-third": third,
    "consensus-sets": all_sets,
    "consensus-pools": pools,
    "consensus-cost": cost,
    "estimate-coverage": estimates,
    "estimate-labels": label_trusts,
    **FITTING,
}
