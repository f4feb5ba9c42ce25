"""Scores of a slow view on disk, in blocks: after a kill, nothing is asked twice."""

import hashlib
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from labelspace.errors import OutputError
from labelspace.folders import write_atomically
from labelspace.labels import LabelSpace
from labelspace.progress import Progress, silent

BLOCK = 32


@final
class ScoreStore:
    """The scores of one view on some documents.

    Args:
        folder: where scores are kept; None: they are not.
        view: what the view is.
        texts: the documents.
        space: the labels.

    Example:
        >>> store = ScoreStore(None, "nli:some", ["a"], LabelSpace.from_names(["sports", "money"]))
        >>> class Scorer:
        ...     def scores(self, texts, space):
        ...         return np.ones((len(texts), len(space)), dtype=np.float32)
        >>> store.ask(Scorer).tolist()
        [[1.0, 1.0]]
    """

    def __init__(self, folder: Path | None, view: str, texts: Sequence[str], space: LabelSpace) -> None:
        self._texts, self._space, self._folder = texts, space, None
        if folder is not None:
            what = json.dumps([view, _files_of(view), space.to_dict()], sort_keys=True)
            self._folder = folder / hashlib.sha256(what.encode()).hexdigest()[:16]

    def ask(self, opened: Callable[[], Any], report: Progress = silent) -> NDArray[np.float32]:
        """Return the scores, [text label].

        Args:
            opened: opens the scorer; not called if everything is kept already.
            report: called with the number of documents done.

        Raises:
            OutputError: a block cannot be kept.
        """
        scorer: Any = None
        found = np.empty((len(self._texts), len(self._space)), dtype=np.float32)
        for start in range(0, len(self._texts), BLOCK):
            block = list(self._texts[start : start + BLOCK])
            kept = self._read(block)
            if kept is None:
                scorer = opened() if scorer is None else scorer
                kept = np.asarray(scorer.scores(block, self._space), dtype=np.float32)
                self._write(block, kept)
            found[start : start + BLOCK] = kept
            report(start + len(block), len(self._texts))
        return found

    def _file(self, block: list[str]) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{hashlib.sha256(json.dumps(block).encode()).hexdigest()[:32]}.safetensors"

    def _read(self, block: list[str]) -> NDArray[np.float32] | None:
        file = self._file(block)
        if file is None or not file.is_file():
            return None
        try:
            scores = load(file.read_bytes())["scores"]
        except (OSError, KeyError, SafetensorError):
            return None
        return scores if scores.shape == (len(block), len(self._space)) else None

    def _write(self, block: list[str], scores: NDArray[np.float32]) -> None:
        file = self._file(block)
        if file is None:
            return
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise OutputError(f"{file.parent} cannot be written ({error.strerror}); give another place.") from error
        write_atomically(file, save({"scores": np.ascontiguousarray(scores)}))


def _files_of(view: str) -> list[list[object]]:
    """Return size and time of the files of a view in a folder, so that another model in its place is asked again."""
    folder = Path(view.partition(":")[2].partition("#")[0])
    files = sorted(folder.rglob("*")) if folder.is_dir() else []
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
