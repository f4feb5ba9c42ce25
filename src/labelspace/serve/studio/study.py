"""What takes longer than a key: lint by meaning, the estimate and the advice, computed once the typing stops."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, final

import numpy as np

from labelspace.consensus.signals import Columns, signals_of_graph
from labelspace.consensus.without import Descriptions
from labelspace.corpus import as_targets
from labelspace.errors import InputError, LabelSpaceError
from labelspace.evaluate.advice import HURTS, advice_on
from labelspace.evaluate.quality import FEWEST, Estimate, estimate_of
from labelspace.geometry.neighbours import Graph
from labelspace.labels import Finding, LabelSpace, lint
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.studio.answering import Answered
from labelspace.serve.studio.documents import StudioPool

QUIET = 0.5
"""Seconds without an edit after which the work begins."""


@dataclass
class Findings:
    """What is known of one version of the labels; until it is complete, some of it is of a version before."""

    version: int = -1
    lint: list[dict[str, Any]] = field(default_factory=list)
    estimate: dict[str, Any] | None = None
    advice: dict[str, Any] | None = None
    complete: bool = False
    by_words: Columns | None = None
    """[text] columns of the likeliest labels by words."""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        return {key: value for key, value in vars(self).items() if key != "by_words"}


@dataclass(frozen=True)
class Task:
    """What a study is about."""

    version: int
    space: LabelSpace
    answered: Answered | None
    labels: Sequence[str | None]
    """[text] labels of documents that were drawn at random, None elsewhere."""


@final
class Study:
    """Computes the findings in a thread of its own, of the newest version alone.

    Args:
        known: the texts of labels.
        pool: the documents.
    """

    def __init__(self, known: KnownTexts, pool: StudioPool) -> None:
        self.found = Findings()
        self._known, self._pool = known, pool
        self._next: Task | None = None
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._work, name="study", daemon=True)
        self._thread.start()

    def ask(self, task: Task) -> None:
        """Study this version once nothing newer has come for half a second."""
        with self._changed:
            self._next = task
            self._changed.notify()

    def close(self) -> None:
        """End the thread after the part that it computes."""
        with self._changed:
            self._closed, self._next = True, None
            self._changed.notify()
        self._thread.join()

    def _work(self) -> None:
        while not self._closed:
            with self._changed:
                self._changed.wait_for(lambda: self._next is not None or self._closed)
                while not self._closed and self._changed.wait(QUIET):
                    pass
                task, self._next = self._next, None
            if task is not None:
                self._study(task)

    def _study(self, task: Task) -> None:
        before = self.found
        found = Findings(task.version, estimate=before.estimate, advice=before.advice)
        found.lint = self._lint(task.space)
        self.found = found
        if task.answered is None or self._overtaken:
            return
        answers = task.answered.answers.likeliest
        found.estimate = or_problem(lambda: self._estimate(task, answers, found))
        if not self._overtaken:
            found.advice = or_problem(lambda: self._advice(task))
            found.complete = True

    @property
    def _overtaken(self) -> bool:
        return self._next is not None or self._closed

    def _lint(self, space: LabelSpace) -> list[dict[str, Any]]:
        found = or_problem(lambda: {"lint": [asdict(one) for one in lint(space, self._known)]})
        if "problem" in found:
            told = Finding("error", "lint-failed", space.names, found["problem"], "Edit a label to try again.")
            return [asdict(told)]
        return found["lint"]

    def _estimate(self, task: Task, answers: Columns, found: Findings) -> dict[str, Any]:
        pool = self._pool
        estimate, found.by_words = estimate_on(answers, pool.texts, task.space, pool.graph, task.labels)
        return estimate.to_dict()

    def _advice(self, task: Task) -> dict[str, Any]:
        if not any(task.space.descriptions):
            raise InputError("no label has a description yet; write three to five for each label.")
        known = self._known.label_vectors(task.space)
        pool = self._pool
        found = advice_on(Descriptions(pool.texts, pool.vectors, task.space, known, pool.graph, seed=0))
        each = [
            {**asdict(one), "astray": one.astray, "hurts": one.macro_f1 is not None and one.macro_f1 >= HURTS}
            for one in found.descriptions
        ]
        return {**found.to_dict(), "descriptions": each}


def estimate_on(
    answers: Columns,
    texts: Sequence[str],
    space: LabelSpace,
    graph: Graph,
    labels: Sequence[str | None],
    *,
    consensus: bool = False,
) -> tuple[Estimate, Columns]:
    """Return the estimate of answers, and [text] the columns of the likeliest labels by words.

    Args:
        answers: [text] columns of the likeliest labels.
        texts: the documents.
        space: the labels.
        graph: the documents' neighbours.
        labels: [text] labels of documents that were drawn at random, None elsewhere.
        consensus: whether the model is a consensus that learnt from these documents.

    Raises:
        InputError: there are fewer than 50 documents, or all get the same label.
    """
    if len(answers) < FEWEST:
        raise InputError(f"an estimate needs {FEWEST} different documents or more. Got {len(answers)}; give more.")
    if len(np.unique(answers)) == 1:
        raise InputError(f"all documents get the label {space.names[answers[0]]}, which tells nothing.")
    signals = signals_of_graph(answers, texts, space, graph, seed=0)
    targets = np.array(as_targets(labels, space.names, n_documents=len(answers)), dtype=np.intp)
    return estimate_of(answers, signals, space, targets, consensus=consensus), signals.by_words


def or_problem(work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what the work returns, or its error as text."""
    try:
        return work()
    except LabelSpaceError as error:
        return {"problem": str(error)}
    except Exception as error:  # noqa: BLE001 - the thread goes on with the next version
        return {"problem": f"this failed ({type(error).__name__}: {error})."}
