"""One session of the studio: a label file, a pool of documents, and what the page may ask of them."""

import threading
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, final

from labelspace.corpus import Pool
from labelspace.corpus.targets import is_unlabelled
from labelspace.encoders import Encoder
from labelspace.errors import InputError
from labelspace.labels.document import DEFAULT_TEMPLATE
from labelspace.serve.label_texts import KnownTexts
from labelspace.serve.studio.answering import Answered
from labelspace.serve.studio.clicks import Clicks, proposals
from labelspace.serve.studio.documents import StudioPool
from labelspace.serve.studio.export import Exports
from labelspace.serve.studio.label_file import LabelFile
from labelspace.serve.studio.study import Study, Task
from labelspace.serve.studio.training import Training

PROPOSED = 10
"""Documents that are proposed for a click at once."""

REMEMBERED = 100
"""Edits whose ids are known."""


class Rename(NamedTuple):
    """A label got another name."""

    old: str
    new: str
    others: frozenset[str]
    """Documents that had been clicked with the new name before: those of a label that is no more."""


@final
class Session:
    """The state behind the page; its methods may be called from several threads.

    Args:
        file: the label file.
        pool: the documents.
        encoder: encoder of documents and labels.
        pool_file: the pool as the user gave it, for the command line of an export.
        options: other options of `labelspace studio`, for the same.
    """

    def __init__(self, file: LabelFile, pool: Pool, encoder: Encoder, *, pool_file: str, **options: Any) -> None:
        self.file, labels = file, file.path
        self.clicks = Clicks(labels.with_name(f"{labels.stem}.clicks.csv"))
        self.known, self.pool = KnownTexts(encoder), StudioPool(pool)
        self.study, self.training = Study(self.known, self.pool), Training(self.known, self.pool)
        self.exports = Exports(labels, self.clicks.path, pool_file, {"encoder": encoder.name, **options})
        self.none = False
        self._lock = threading.RLock()
        self._answered: Answered | None = None
        self._renames: dict[tuple[str, str], Rename] = {}
        """By the texts of the label file before and after."""
        self._made: deque[object] = deque(maxlen=REMEMBERED)
        """Ids of the last edits, as one whose answer got lost comes again."""
        work = (self.known, self._update)
        self._reading = threading.Thread(target=self.pool.encode, args=work, name="pool", daemon=True)
        self._reading.start()

    # ---- what the page asks

    def status(self) -> dict[str, Any]:
        """Return what may change without an edit: progress, findings, a conflict on disk."""
        with self._lock:
            found = self.file.conflict()
            return {
                "pool": {
                    "done": self.pool.done,
                    "total": len(self.pool.texts),
                    "ready": self.pool.ready,
                    "problem": self.pool.problem,
                },
                "version": self.file.version,
                "conflict": None if found is None else {"theirs": found.theirs, "problem": found.problem},
                "study": self.study.found.to_dict(),
                "training": self.training.progress.to_dict(),
            }

    def state(self) -> dict[str, Any]:
        """Return the labels and how the documents are labelled now."""
        with self._lock:
            draft = self.file.draft
            return {
                "file": self.file.path.name,
                "version": self.file.version,
                "saved": self.file.text == self.file.on_disk,
                "exists": self.file.on_disk is not None,
                "text": self.file.text,
                "rewritten": self.file.rewritten,
                "undo": self.file.can_undo,
                "redo": self.file.can_redo,
                "template": draft.template or DEFAULT_TEMPLATE,
                "labels": [
                    {
                        "name": label.name,
                        "phrase": label.phrase,
                        "verbalizer": label.verbalizer,
                        "descriptions": label.descriptions,
                        "not": label.excludes,
                    }
                    for label in draft.labels
                ],
                "none": self.none,
                "answers": None if self._answered is None else self._answered.to_dict(),
                "clicks": self.clicks.to_dict(),
            }

    def edit(self, edit: Mapping[str, Any], burst: object = None, edit_id: object = None) -> dict[str, Any]:
        """Change the labels, and return the state; an edit with the id of one that was made changes nothing."""
        with self._lock:
            if edit_id is not None and edit_id in self._made:
                return self.state()
            version = self.file.version
            try:
                return self._change(
                    lambda: self.file.edit(edit, burst), renames=edit.get("label") if edit.get("do") == "name" else None
                )
            finally:
                if self.file.version != version:  # also where the file could not be written
                    self._made.append(edit_id)

    def step(self, back: bool) -> dict[str, Any]:
        """Take an edit back, or make it again, and return the state."""
        return self._change(self.file.undo if back else self.file.redo)

    def resolve(self, keep: str) -> dict[str, Any]:
        """End a conflict with the file on disk, and return the state."""
        return self._change(lambda: self.file.resolve(keep))

    def set_none(self, wanted: bool) -> dict[str, Any]:
        """Say whether documents that fit no label get none, and return the state."""
        with self._lock:
            self.none = wanted
            self._update()
            return self.state()

    def explain(self, row: int) -> dict[str, Any]:
        """Return why a document has its label."""
        with self._lock:
            answered = self._current()
        self._check_row(row)
        return answered.explain(row)

    def propose(self, skipped: int = 0) -> list[dict[str, Any]]:
        """Return documents to label next, with why, and as many more as were skipped."""
        with self._lock:
            answered, found = self._current(), self.study.found
            disagree = None
            if found.by_words is not None and found.version == answered.version:
                disagree = found.by_words != answered.answers.likeliest
            most = PROPOSED + max(0, skipped)
            return proposals(self.pool.texts, self.clicks.rows, answered.doubtful, disagree, most=most)

    def click(self, row: int, label: str | None, source: str) -> dict[str, Any]:
        """Label a document, or take its label away, and return the clicks."""
        self._check_row(row)
        with self._lock:
            if label is not None and label not in [each.name for each in self.file.draft.labels]:
                raise InputError(f"there is no label {label!r}; reload the page.")
            self.clicks.label(self.pool.texts[row], label, source)
            self._ask_study()
            return self.clicks.to_dict()

    def train(self, method: str) -> dict[str, Any]:
        """Begin to train on the labels as they are now."""
        with self._lock:
            answered, texts = self._current(), self.pool.texts
            labels = self.clicks.labels(texts, answered.space.names)
            drawn = self.clicks.labels(texts, answered.space.names, drawn=True)
            self.training.start(method, answered, labels, drawn)
            return self.training.progress.to_dict()

    def export(self, what: str, name: str) -> dict[str, Any]:
        """Write the model, or the documents with their labels; return where."""
        if what not in ("documents", "trained", "untrained"):
            raise InputError(f"there is no export {what!r}; reload the page.")
        with self._lock:
            answered = self._current()
        trained = self.training.model
        if what == "documents":
            return self.exports.documents(name, self.pool.texts, answered)
        if what == "trained":
            return self.exports.model(name, trained)
        with self.known.one_at_a_time:
            return self.exports.model(name, answered.model)

    def commands(self) -> dict[str, Any]:
        """Return the command lines that do the same."""
        with self._lock:
            clicked = {row["label"].strip() for row in self.clicks.rows.values() if not is_unlabelled(row["label"])}
            names = [label.name for label in self.file.draft.labels]
        return self.exports.commands(clicked=clicked, names=names, none=self.none)

    def close(self) -> None:
        """End the work in the background."""
        self.pool.stop()
        self._reading.join()
        self.training.close()
        self.study.close()

    # ---- inside

    def _change(self, work: Callable[[], None], *, renames: Any = None) -> dict[str, Any]:
        """Do the work on the label file, and all that follows from it, even where the file could not be written.

        Args:
            work: an edit, a step back or forth, or the end of a conflict.
            renames: place of the label that the work gives another name, if it does.
        """
        with self._lock:
            text, labels = self.file.text, self.file.draft.labels
            try:
                work()
            finally:
                try:
                    if renames is not None and text != self.file.text:
                        old, new = labels[renames].name, self.file.draft.labels[renames].name
                        self._renames[text, self.file.text] = Rename(old, new, self.clicks.called(new))
                    self._rename_clicks(text, self.file.text)
                finally:
                    self._update()
            return self.state()

    def _rename_clicks(self, before: str, after: str) -> None:
        """Give the clicks of a label its other name, if one got it between these texts of the label file."""
        if (found := self._renames.get((before, after))) is not None:
            self.clicks.rename(found.old, found.new)
        elif (found := self._renames.get((after, before))) is not None:
            self.clicks.rename(found.new, found.old, keep=found.others)

    def _update(self) -> None:
        """Answer the documents with the labels as they are now, and study them later."""
        with self._lock:
            space = self.file.space
            if space is None or not self.pool.ready:
                self._answered = None
            else:
                self._answered = Answered(self.known, self.pool, space, self.file.version, none=self.none)
            self._ask_study()

    def _ask_study(self) -> None:
        space = self.file.space
        if space is not None:
            labels = self.clicks.labels(self.pool.texts, space.names, drawn=True)
            self.study.ask(Task(self.file.version, space, self._answered, labels))

    def _current(self) -> Answered:
        if self._answered is None:
            raise InputError("two labels and the documents are needed first; write labels, or wait a moment.")
        return self._answered

    def _check_row(self, row: object) -> None:
        if not isinstance(row, int) or isinstance(row, bool) or not 0 <= row < len(self.pool.texts):
            raise InputError(f"there is no document {row!r}; reload the page.")
