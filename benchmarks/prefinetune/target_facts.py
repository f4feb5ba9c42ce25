"""Reference facts of a target: the score of guessing, and documents common to both halves of a search."""

from collections import Counter
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from pieces import Piece

from prefinetune.sets import TARGETS, folder_of, plain, search_of, targets, test_rows, train_side
from prefinetune.settings import Settings


def target_pieces(settings: Settings) -> Iterator[Piece]:
    """One piece for each target; nothing is encoded."""
    for target in targets(settings):
        yield Piece(
            part="targets",
            name=f"{settings.short}_{target}",
            facts=settings.facts(target=target),
            work=partial(_run, settings, target),
            seeds=(),
            data=f"shared/data/domain/{TARGETS[target].domain}/{target}",
        )


def _run(settings: Settings, target: str) -> dict[str, Any]:
    task = TARGETS[target].task
    rows = train_side(folder_of(settings, target), task)
    if task == "classification":
        labels = test_rows(settings, target).positives
        return {"rows": len(rows), "test_rows": len(labels), **guessing(labels)}
    search = search_of(settings, target)
    answers = {plain(search.documents[place]) for own in search.relevant for place in own}
    shared = sum(plain(document) in answers for document in rows.positives)
    return {"rows": len(rows), "test_rows": len(search.queries), "rows_with_a_test_answer": shared}


def guessing(labels: Sequence[str]) -> dict[str, float]:
    """Return the accuracy of the majority label, and the macro-F1 of guessing labels uniformly.

    A label of share p among k labels then has precision p and recall 1 / k.
    """
    shares = [count / len(labels) for count in Counter(labels).values()]
    k = len(shares)
    return {"commonest": max(shares), "guessed_macro_f1": sum(2 * p / k / (p + 1 / k) for p in shares) / k}
