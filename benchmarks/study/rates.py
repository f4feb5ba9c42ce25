"""Uniformity on train and test documents and macro-F1, for every learning rate of the paper's grid (Figure 3)."""

from collections.abc import Iterator
from functools import partial
from typing import Any

from pieces import Piece
from scoring import by_anchor

from labelspace import DescriptionClassifier
from labelspace.config import FALLBACK_LEARNING_RATE, PAPER_LEARNING_RATES, SearchConfig
from labelspace.seeds import child_seed
from study.ablations import task_of
from study.measure import opened, spread_of
from study.settings import Settings
from study.spaces import PAPER_K, TASKS, with_descriptions


def base_rate(settings: Settings) -> float:
    """Return the encoder's published learning rate, or the fallback."""
    spec = opened(settings).spec
    return (spec and spec.base_learning_rate) or FALLBACK_LEARNING_RATE


def rate_pieces(settings: Settings) -> Iterator[Piece]:
    """One run for each rate, with the first five descriptions, which are those published."""
    grid = PAPER_LEARNING_RATES[::4] if settings.small else PAPER_LEARNING_RATES
    rates = sorted({*grid, base_rate(settings)})
    for name in ("rottentomatoes",) if settings.small else TASKS:
        for rate in rates:
            yield Piece(
                part="rates",
                name=f"{settings.short}_{name}_{rate:.0e}",
                facts={"task": name, "encoder": settings.short, "learning_rate": rate},
                work=partial(_run, settings, name, rate),
                seeds=(0,),
                data=name,
            )


def _run(settings: Settings, name: str, rate: float) -> dict[str, Any]:
    task = task_of(settings, name)
    space = with_descriptions(task.labels, lambda label: label.descriptions[:PAPER_K])
    clf = DescriptionClassifier(
        space, encoder=opened(settings), learning_rate=rate, max_steps=settings.max_steps, seed=0
    )
    clf.fit()
    spread = {
        which: spread_of(
            clf.encoder_, texts, documents=SearchConfig.documents, pairs=SearchConfig.pairs, seed=child_seed(0, which)
        )
        for which, texts in (("train", task.pool), ("test", task.texts))
    }
    return {
        "uniformity": spread,
        "macro_f1_predicted": by_anchor(clf.encoder_, space, clf.encoder_.encode(task.texts), task.truth),
        "base_rate": base_rate(settings),
        "steps": clf.fit_result_.curve.steps,
        "test_rows": len(task.texts),
    }
