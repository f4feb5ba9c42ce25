"""Scores of a slow view on disk, one by one: after a kill, or with more documents, nothing is asked twice."""

import hashlib
import json
from collections.abc import Callable, Generator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from labelspace.errors import OutputError
from labelspace.families.endpoint_address import address_of
from labelspace.folders import write_atomically
from labelspace.labels import LabelSpace
from labelspace.progress import Progress, silent

BLOCK = 32
"""Answers of a file."""

Row = NDArray[np.float32]


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
            what = json.dumps([view, _source_of(view), space.to_dict()], sort_keys=True)
            self._folder = folder / hashlib.sha256(what.encode()).hexdigest()[:16]
        self._kept = self._read()

    @property
    def documents(self) -> int:
        """The number of different documents."""
        return len(set(self._texts))

    @property
    def keeps(self) -> bool:
        """Whether scores are kept on disk."""
        return self._folder is not None

    @property
    def missing(self) -> list[str]:
        """The documents without scores, each once, in order."""
        return [text for text in dict.fromkeys(self._texts) if _key(text) not in self._kept]

    def ask(self, opened: Callable[[], Any], report: Progress = silent) -> NDArray[np.float32]:
        """Return the scores, [text label].

        Args:
            opened: opens the scorer; not called if everything is kept already.
            report: called with the number of documents done.

        Raises:
            OutputError: scores cannot be kept.
        """
        missing = self.missing
        if missing:
            done, fresh = len(self._texts) - len(missing), dict[bytes, Row]()
            try:
                with closing(_answers(opened(), missing, self._space)) as answers:
                    for text, row in answers:
                        fresh[_key(text)] = row
                        done += 1
                        if len(fresh) == BLOCK:
                            fresh = self._keep(fresh)
                        report(done, len(self._texts))
            finally:
                self._keep(fresh)
        return np.array([self._kept[_key(text)] for text in self._texts], dtype=np.float32)

    def _keep(self, fresh: dict[bytes, Row]) -> dict[bytes, Row]:
        """Keep some scores, in a file of their own; return an empty place for others."""
        self._kept |= fresh
        if self._folder is not None and fresh:
            try:
                self._folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise OutputError(f"{self._folder} cannot be written ({error.strerror}); give another.") from error
            texts = np.frombuffer(b"".join(fresh), dtype=np.uint8).reshape(len(fresh), -1)
            file = self._folder / f"{hashlib.sha256(texts.tobytes()).hexdigest()[:32]}.safetensors"
            write_atomically(file, save({"texts": texts, "scores": np.array([*fresh.values()], dtype=np.float32)}))
        return {}

    def _read(self) -> dict[bytes, Row]:
        """Return the scores that are kept, by the hash of the text; a damaged file is as good as none."""
        kept: dict[bytes, Row] = {}
        for file in sorted(self._folder.glob("*.safetensors")) if self._folder is not None else ():
            try:
                found = load(file.read_bytes())
                texts, scores = found["texts"], found["scores"]
            except (OSError, KeyError, SafetensorError):
                continue
            if scores.shape == (len(texts), len(self._space)):
                kept |= {text.tobytes(): row for text, row in zip(texts, scores, strict=True)}
        return kept


def _key(text: str) -> bytes:
    return hashlib.sha256(json.dumps(text).encode()).digest()


def _answers(scorer: Any, texts: list[str], space: LabelSpace) -> Generator[tuple[str, Row]]:
    """Yield each text with its scores; scorers that need texts together get a block of them."""
    if hasattr(scorer, "each"):  # answers arrive one by one, as from `families.EndpointScorer`
        yield from ((texts[place], row) for place, row in scorer.each(texts, space))
        return
    for start in range(0, len(texts), BLOCK):
        block = texts[start : start + BLOCK]
        yield from zip(block, np.asarray(scorer.scores(block, space), dtype=np.float32), strict=True)


def _source_of(view: str) -> object:
    """Return what a view's name leaves open, so that another model in its place is asked again.

    That is the URL of a hosted model, and size and time of the files of a folder.
    """
    kind, _, name = view.partition(":")
    if kind == "openai":
        return address_of(name)[1]
    folder = Path(name.partition("#")[0])
    files = sorted(folder.rglob("*")) if folder.is_dir() else []
    return [[file.name, file.stat().st_size, file.stat().st_mtime_ns] for file in files if file.is_file()]
