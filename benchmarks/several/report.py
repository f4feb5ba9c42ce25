"""The table of docs/several-labels.md."""

from collections.abc import Callable, Mapping

from layout import markdown
from store import frame

SETS = {
    "joined": "joined documents, 16 labels",
    "disaster": "messages from disasters, 25 labels",
    "toxic": "toxic comments, 2 labels",
}
WAYS = {
    "sigmoid": "sigmoid of cosine / 0.07, at 0.5",
    "cosine": "cosine, at 0.5",
    "otsu": "Otsu's cut of each label",
    "mixture": "two Gaussians for each label",
    "pool": "**the pool's cuts, the default**",
    "mean": "the true mean number of labels, stated",
    "rows": "200 labelled rows",
    "best": "best cuts on the test rows",
}


def several() -> str:
    """Micro- and macro-F1 of every way to set cuts, untrained and trained, and the mean number of labels predicted."""
    runs = {(row["set"], row["trained"]): row for row in frame("several", "sets").to_dict("records")}
    rows = []
    for name, title in SETS.items():
        for way, words in WAYS.items():
            own = [runs[name, trained].get(f"f1.{way}") for trained in (False, True) if (name, trained) in runs]
            cells = [cell for values in own if isinstance(values, list) for cell in _cells(values)]
            if cells:
                rows.append([title, words, *cells])
                title = ""
    models = ("untrained", "trained")
    heads = [f"{model}: {what}" for model in models for what in ("micro-F1", "macro-F1", "labels a text")]
    return markdown(["", "cuts", *heads], rows)


def _cells(values: list[float]) -> list[str]:
    micro, macro, predicted, true = values
    return [f"{micro:.3f}", f"{macro:.3f}", f"{predicted:.2f} ({true:.2f})"]


BLOCKS: Mapping[str, Callable[[], str]] = {"several": several}
