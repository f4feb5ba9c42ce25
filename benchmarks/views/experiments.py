"""A consensus of MiniLM, perhaps a second encoder, and words, on four data sets."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pieces
from pieces import Piece
from scoring import accuracy_and_macro_f1
from store import ENCODER
from study.spaces import PAPER_K, drawn
from tasks import Task, load_task

from labelspace import ConsensusClassifier
from labelspace.corpus import sample_pool

TASKS = ("rottentomatoes", "emotion", "agnews", "banking77_cards")


@dataclass(frozen=True, kw_only=True)
class Settings(pieces.Settings):
    """Settings of all pieces of one call."""

    test_rows: int | None = 2000
    """Maximum scored rows, a fixed sample."""

    documents: int = 3000
    """Documents of the pool, drawn from the train rows."""

    seeds: int = 5
    """Draws of five of the ten descriptions of each label."""

    @property
    def views(self) -> tuple[str, ...]:
        """MiniLM, the other encoder if one is given, and words."""
        other = () if Path(self.encoder).name == Path(ENCODER).name else (self.encoder,)
        return (ENCODER, *other, "words")


def consensus_pieces(settings: Settings) -> Iterator[Piece]:
    """The views together, beside each alone."""
    yield from _pieces(settings, "consensus", (None,))


def student_pieces(settings: Settings) -> Iterator[Piece]:
    """MiniLM and words as students of the same consensus."""
    yield from _pieces(settings, "student", (ENCODER, "words"))


def _pieces(settings: Settings, part: str, students: tuple[str | None, ...]) -> Iterator[Piece]:
    names = "+".join(Path(view).name for view in settings.views)
    for seed in range(1 if settings.small else settings.seeds):
        for task in TASKS[:1] if settings.small else TASKS:
            for student in students:
                own = "" if student is None else f"_{Path(student).name}"
                yield Piece(
                    part=part,
                    name=f"{names}_{task}_n{settings.documents}{own}_seed{seed}",
                    facts={
                        "task": task,
                        "views": names,
                        "student": None if student is None else Path(student).name,
                        "documents": settings.documents,
                        "seed": seed,
                    },
                    work=partial(run, settings, task, student, seed),
                    seeds=(seed,),
                    data=task,
                )


def run(settings: Settings, name: str, student: str | None, seed: int) -> dict[str, Any]:
    """Fit a consensus on train rows, and score it and each view alone on test rows."""
    task: Task = load_task(name, settings.data, "official", test_rows=settings.test_rows)
    space = drawn(task.labels, PAPER_K, seed)
    pool = sample_pool(task.pool, size=settings.documents, seed=0)
    config = {"view_steps": 5} if settings.small else {}
    clf = ConsensusClassifier(space, settings.views, student=student, seed=seed, config=config).fit(pool)
    found: dict[str, Any] = {"test_rows": len(task.texts)}
    found["scores"] = accuracy_and_macro_f1(task.truth, clf.predict(task.texts))
    found["steps"] = {step.name.split()[0]: step.kept for step in clf.consensus_.steps}
    if student is None:
        members = getattr(clf.model_, "head_").members  # noqa: B009
        found["alone"] = [accuracy_and_macro_f1(task.truth, one.predict(task.texts)) for one in members]
    else:
        found["kappa"] = (clf.fit_result_.taught or {})["kappa"]
    return found
