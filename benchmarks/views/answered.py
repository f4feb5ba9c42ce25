"""What every run answered: a row for each view alone, and one for the views together."""

import pandas as pd
from store import frame

ALONE, TOGETHER, NEW = "alone", "together", "together, of new documents"
PARTS = ("consensus", "sets", "intents", "pools")
FACTS = ("task", "views", "seed", "documents", "pool_kind", "label_count", "pool_documents", "test_rows")


def answered(*parts: str) -> pd.DataFrame:
    """Return scores and signals, and agreement and F1 of each label, of the parts."""
    found = []
    for part in parts or PARTS:
        runs = frame("consensus", part, *FACTS, "scores", "alone", "signals", "labels", "steps")
        for run in runs.to_dict("records"):
            own = {"part": part, **{name: run[name] for name in FACTS}}
            scores = [*run["alone"], run["scores"]]
            names = [*(f"{ALONE} {place}" for place in range(len(run["alone"]))), TOGETHER]
            changed = bool(run["steps"]) and any(run["steps"].values())
            each = run["labels"] if isinstance(run["labels"], list) else [[]] * len(names)
            for who, score, (words, neighbours), labels in zip(names, scores, run["signals"], each, strict=True):
                told = {"words": words, "neighbours": neighbours, "labels": _pairs(labels), "changed": changed}
                found.append({**own, "who": who, **score, **told})
    return pd.DataFrame(found)


def answered_from_few() -> pd.DataFrame:
    """Return the same of estimates from few documents."""
    runs = frame("consensus", "sizes", "task", "label_count", "test_rows", "runs")
    found = []
    for run in runs.to_dict("records"):
        own = {name: run[name] for name in ("task", "label_count", "test_rows")}
        for one in run["runs"]:
            (words, neighbours), labels = one["signals"], one["labels"]
            scores = {name: one[name] for name in ("accuracy", "macro_f1")}
            told = {"words": words, "neighbours": neighbours, "labels": _pairs(labels), "changed": True}
            documents = {"documents": one["documents"], "pool_documents": one["documents"]}
            found.append({"part": "sizes", **own, **documents, "who": one["who"], **scores, **told})
    return pd.DataFrame(found)


def _pairs(labels: list[int]) -> list[tuple[float, float]]:
    """Return agreement and F1 of each label, which a row has one after the other, in percent."""
    return [(agreed / 100, f1 / 100) for agreed, f1 in zip(labels[::2], labels[1::2], strict=True)]


def base_set(task: str) -> str:
    """Return the texts that a task is about: several tasks share them, and are left out together.

    Example:
        >>> base_set("mteb/massive_scenario"), base_set("banking77_cards"), base_set("emotiondair")
        ('massive', 'banking77', 'emotion')
    """
    name = task.removeprefix("mteb/")
    for known in ("massive", "banking77", "emotion", "imdb", "wikitoxic"):
        if name.startswith(known):
            return known
    return name
