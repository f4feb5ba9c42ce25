"""The label file of a session: edits, undo and redo, saving, and what happens if another program changes the file."""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, final

import yaml

from labelspace.errors import InputError, LabelFileError
from labelspace.folders import write_atomically
from labelspace.labels import LabelSpace
from labelspace.labels.document import DEFAULT_NAME, DEFAULT_TEMPLATE, Document
from labelspace.labels.files import as_yaml, read_text, yaml_scalar
from labelspace.labels.starter import HEAD
from labelspace.serve.studio.draft import as_data, as_space, edited, read_draft
from labelspace.serve.studio.splices import spliced

MOST_STEPS = 500
"""Number of edits that can be taken back."""


class Conflict(NamedTuple):
    """The file on disk is not the one that was read or saved last."""

    theirs: str
    """Its text on disk."""

    problem: str
    """Why it cannot be used; empty if it can."""


class Step(NamedTuple):
    """What undo or redo goes back to."""

    text: str
    rewritten: str


@final
class LabelFile:
    """A YAML label file that is saved after each edit.

    Args:
        path: the file; it is started with the first edit if it does not exist.

    Raises:
        LabelFileError: the file cannot be used, or is not YAML.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     file = LabelFile(Path(folder) / "labels.yaml")
        ...     file.edit({"do": "add label", "text": "sports"})
        ...     file.path.read_text().splitlines()[-1]
        '  - name: "sports"'
    """

    def __init__(self, path: Path) -> None:
        if path.suffix.lower() not in (".yaml", ".yml"):
            raise LabelFileError(
                f"{path}: the studio edits YAML label files in place. Got {path.suffix or 'no extension'!r}; write it "
                "as YAML first, with labelspace init NEW --from OLD, or give the name of a new .yaml file."
            )
        self.path = path.absolute()
        self.on_disk = read_text(path) if path.exists() else None
        """The text as it was read or saved last; None: there was no file."""
        self.text = self.on_disk if self.on_disk is not None else _new_file()
        self.draft = read_draft(self.text, str(path))
        self.version = time.time_ns() // 1_000_000
        """Rises with every change of the labels, and from one session to the next, as a page may outlive one."""
        self.rewritten = ""
        """Name of the file beside this one that holds the comments, if an edit wrote this one anew without them."""
        self._undo: list[Step] = []
        self._redo: list[Step] = []
        self._burst: object = None

    @property
    def space(self) -> LabelSpace | None:
        """The labels; None while there are fewer than two."""
        return as_space(self.draft)

    @property
    def can_undo(self) -> bool:
        """Whether an edit can be taken back."""
        return bool(self._undo)

    @property
    def can_redo(self) -> bool:
        """Whether an edit that was taken back can be made again."""
        return bool(self._redo)

    def edit(self, edit: Mapping[str, Any], burst: object = None) -> None:
        """Make an edit, and save it unless the file changed on disk.

        Args:
            edit: see `draft`.
            burst: what a series of edits has in common that is one step for undo, such as the typing in one field.

        Raises:
            LabelFileError: the edit makes no valid label file; nothing has changed.
            OutputError: the file cannot be written; the edit is kept in memory, unless comments would be lost by it.
        """
        wanted = edited(self.draft, edit)
        if wanted == self.draft:
            return
        text, rewritten = self._spliced(wanted, edit), self.rewritten
        if text is None:
            text = as_yaml(as_data(wanted))
            if "#" in self.text:
                rewritten = self._keep(".bak", self.text.encode())
        if burst is None or burst != self._burst:
            self._undo = [*self._undo, Step(self.text, self.rewritten)][-MOST_STEPS:]
        self._redo, self._burst, self.rewritten = [], burst, rewritten
        self._set(text, wanted)
        self.save()

    def undo(self) -> None:
        """Take the last edit back, and save."""
        self._step(self._undo, self._redo)

    def redo(self) -> None:
        """Make the edit again that was taken back, and save."""
        self._step(self._redo, self._undo)

    def save(self) -> bool:
        """Write the file unless it changed on disk; return whether it is saved."""
        if self.conflict() is not None:
            return False
        if self.text != self.on_disk:
            write_atomically(self.path, self.text)
            self.on_disk = self.text
        return True

    def conflict(self) -> Conflict | None:
        """Return what is on disk if another program changed it; None if nothing did."""
        try:
            theirs = read_text(self.path) if self.path.exists() else None
        except LabelFileError as error:
            return Conflict("", str(error))
        if theirs == self.on_disk:
            return None
        if theirs is None:  # removed: the next save writes it again
            self.on_disk = None
            return None
        if theirs == self.text:
            self.on_disk = theirs
            return None
        try:
            read_draft(theirs, str(self.path))
        except LabelFileError as error:
            return Conflict(theirs, str(error))
        return Conflict(theirs, "")

    def resolve(self, keep: str) -> None:
        """End a conflict; undo brings the other side back, or a file `.other` holds it if it is no label file.

        Args:
            keep: `"mine"` writes what the page shows; `"theirs"` shows what is on disk.

        Raises:
            LabelFileError: the file on disk cannot be used.
        """
        found = self.conflict()
        if found is None:
            return
        if keep not in ("mine", "theirs"):
            raise InputError(f"keep must be 'mine' or 'theirs'. Got {keep!r} instead; reload the page.")
        if keep == "theirs" and found.problem:
            raise LabelFileError(found.problem)
        mine, draft = self.text, read_draft(found.theirs, str(self.path)) if keep == "theirs" else self.draft
        if found.problem:  # undo cannot hold it, so it goes to a file of its own
            self._keep(".other", self.path.read_bytes())
        else:
            self._undo.append(Step(mine, self.rewritten) if keep == "theirs" else Step(found.theirs, ""))
        self._redo, self._burst = [], None
        if keep == "theirs":
            self._set(found.theirs, draft)
            self.rewritten = ""
        write_atomically(self.path, self.text)
        self.on_disk = self.text

    def _spliced(self, wanted: Document, edit: Mapping[str, Any]) -> str | None:
        """Return the text with the edit in it; None where its form has no room for it."""
        try:
            text = spliced(self.text, edit)
            if text is not None and read_draft(text, str(self.path)) == wanted:
                return text
        except (LabelFileError, yaml.YAMLError):
            pass  # a form that the splice does not know
        return None

    def _keep(self, ending: str, content: bytes) -> str:
        """Write a copy beside the file under a name that nothing else has, and return that name."""
        names = (f"{self.path.name}{ending}{number}" for number in ("", *range(2, 10_000)))
        path = next(path for path in map(self.path.with_name, names) if not path.exists() or _holds(path, content))
        if not path.exists():
            write_atomically(path, content)
        return path.name

    def _step(self, back: list[Step], forth: list[Step]) -> None:
        if back:
            forth.append(Step(self.text, self.rewritten))
            self._burst = None
            text, self.rewritten = back.pop()
            self._set(text, read_draft(text, str(self.path)))
            self.save()

    def _set(self, text: str, draft: Document) -> None:
        self.text, self.draft = text, draft
        self.version += 1


def _holds(path: Path, content: bytes) -> bool:
    return path.is_file() and path.read_bytes() == content


def _new_file() -> str:
    return HEAD.format(name=yaml_scalar(DEFAULT_NAME), template=yaml_scalar(DEFAULT_TEMPLATE))
