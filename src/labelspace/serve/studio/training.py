"""Training in the background, and what it changed: before and after, side by side."""

import threading
import time
from dataclasses import dataclass, field
from typing import Any, final

import numpy as np

from labelspace.classify import Answers, Classifier, LaConClassifier
from labelspace.classify.head import Judged
from labelspace.classify.joint import JointClassifier
from labelspace.consensus import ConsensusClassifier
from labelspace.consensus.signals import NEIGHBOURS
from labelspace.consensus.views import WORDS
from labelspace.corpus import Documents, Kind
from labelspace.errors import InputError, LabelSpaceError, TrainingError
from labelspace.geometry.neighbours import Graph
from labelspace.labels import LabelSpace
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.studio.answering import Answered, answers_of
from labelspace.serve.studio.documents import StudioPool
from labelspace.serve.studio.study import estimate_on, or_problem

METHODS = ("consensus", "lacon")
"""`consensus`: as `labelspace fit --pool` trains; `lacon`: as with `--labelled`, on the clicks."""

SHOWN = 20
"""Documents that a comparison shows."""

BLOCK = 128
"""Documents that a trained model reads before it can be stopped."""

NOT_ESTIMATED = {"problem": "not estimated, as this model learnt from the clicks"}
"""In place of the estimate of LaCon: its clicks are training rows, and such models were not measured."""


@dataclass
class Progress:
    """Where a training is."""

    state: str = "idle"
    """`"idle"`, `"running"`, `"done"`, `"stopped"` or `"failed"`."""
    method: str = ""
    step: int = 0
    note: str = ""
    started: float = 0.0
    seconds: float = 0.0
    problem: str = ""
    version: int = -1
    """The version of the labels that were trained on."""
    result: dict[str, Any] | None = field(default=None, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return all of it, ready for JSON."""
        if self.state == "running":
            self.seconds = time.monotonic() - self.started
        return {key: value for key, value in vars(self).items() if key != "started"}


@final
class Training:
    """One training at a time.

    Args:
        known: holds the encoder; a copy is trained.
        pool: the documents.
    """

    def __init__(self, known: KnownTexts, pool: StudioPool) -> None:
        self.progress = Progress()
        self.model: Any = None
        """The model trained last; None before."""
        self._known, self._pool = known, pool
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self, method: str, answered: Answered, labels: list[str | None], drawn: list[str | None]) -> None:
        """Begin to train.

        Args:
            method: one of METHODS.
            answered: the answers before.
            labels: [text] labels by clicks.
            drawn: [text] those of them that an estimate may count.

        Raises:
            InputError: a training runs, the method is unknown, or the clicks do not suffice for it.
        """
        if self.progress.state == "running":
            raise InputError("a training is running; stop it, or wait for its end.")
        if method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)}. Got {method!r} instead; reload the page.")
        if method == "lacon" and len({label for label in labels if label}) < 2:
            raise InputError("click the labels of a few documents first, of two labels at least.")
        self._stop.clear()
        self.progress = Progress(
            "running", method, note="preparing", started=time.monotonic(), version=answered.version
        )
        work = (method, answered, labels, drawn, self.progress)
        self._thread = threading.Thread(target=self._run, args=work, name="training", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the training that runs; the model before stays."""
        self._stop.set()

    def close(self) -> None:
        """Stop, and wait for the end of the part that runs."""
        self.stop()
        if self._thread is not None:
            self._thread.join()

    def _run(
        self,
        method: str,
        answered: Answered,
        labels: list[str | None],
        drawn: list[str | None],
        progress: Progress,
    ) -> None:
        try:
            model = self._fitted(method, answered, labels, progress)
            progress.note = "reading the documents anew"
            after = self._answers(model, none=answered.model.none_ is not None)
            quality = {"before": self._estimate(answered.answers, answered.space, self._pool.graph, drawn)}
            if method == "lacon":
                quality["after"] = NOT_ESTIMATED
            else:
                consensus = isinstance(model, JointClassifier)
                quality["after"] = self._estimate(after, answered.space, self._graph(model), drawn, consensus=consensus)
            self._check()
            progress.result = {**compared(answered.answers, after), **quality}
            self.model = model
            progress.state = "done"
        except TrainingError as error:
            progress.state = "stopped" if self._stop.is_set() else "failed"
            progress.problem = str(error)
        except LabelSpaceError as error:
            progress.state, progress.problem = "failed", str(error)
        except Exception as error:  # noqa: BLE001 - a thread has nobody else to tell
            progress.state, progress.problem = "failed", f"training failed ({type(error).__name__}: {error})."
        progress.seconds = time.monotonic() - progress.started

    def _fitted(self, method: str, answered: Answered, labels: list[str | None], progress: Progress) -> Any:
        encoder, space, texts = self._known.copy(), answered.space, self._pool.texts

        def tell(step: int, values: dict[str, float]) -> None:  # noqa: ARG001 - it begins anew with each part
            self._check()
            progress.step += 1
            progress.note = "training"

        if method == "consensus":
            return ConsensusClassifier(space, [encoder, WORDS], callbacks=[tell]).fit(texts).model_
        return LaConClassifier(space, encoder, callbacks=[tell]).fit(texts, labels)

    def _answers(self, model: Classifier, *, none: bool) -> Answers:
        """Return the answers of a trained model to the pool; see `answers_of`."""
        texts, space, parts = self._pool.texts, model.label_space_, []
        for start in range(0, len(texts), BLOCK):
            self._check()
            parts.append(model.judge(Documents(texts[start : start + BLOCK], Kind.TEXTS), space))
        whole: Any = (None if part[0] is None else np.concatenate(part) for part in zip(*parts, strict=True))
        return answers_of(model, Judged(*whole), space, none=none)

    def _graph(self, model: Any) -> Graph:
        """Return the neighbours of the pool's documents in the space of a trained encoder."""
        head = model.head_.members[0].head_ if isinstance(model, JointClassifier) else model.head_
        vectors = head.vectors(Documents(self._pool.texts, Kind.TEXTS), lambda *_: self._check())
        return Graph(vectors, neighbours=NEIGHBOURS, seed=0)

    def _estimate(
        self, answers: Answers, space: LabelSpace, graph: Graph, drawn: list[str | None], *, consensus: bool = False
    ) -> dict[str, Any]:
        texts, found = self._pool.texts, answers.likeliest
        return or_problem(lambda: estimate_on(found, texts, space, graph, drawn, consensus=consensus)[0].to_dict())

    def _check(self) -> None:
        if self._stop.is_set():
            raise TrainingError("training was stopped; nothing has changed.")


def compared(before: Answers, after: Answers) -> dict[str, Any]:
    """Return the shares of the labels before and after, and documents that changed their label, ready for JSON.

    Args:
        before: the answers to some documents.
        after: the answers to the same documents.
    """
    order = [after.labels.index(name) for name in before.labels]
    then = np.array([order.index(column) if column >= 0 else -1 for column in after.columns.tolist()], dtype=np.intp)
    changed = np.flatnonzero(before.columns != then)
    labels = [
        {"name": name, "before": int((before.columns == column).sum()), "after": int((then == column).sum())}
        for column, name in enumerate(before.labels)
    ]
    surest = changed[np.argsort(-after.confidence[changed], kind="stable")][:SHOWN]
    return {
        "documents": len(before),
        "changed": len(changed),
        "labels": labels,
        "examples": [{"row": row, "before": before.names[row], "after": after.names[row]} for row in surest.tolist()],
    }
