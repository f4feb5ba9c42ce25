"""Relations of the reference encoder: computed once, stored on disk window by window, read batch by batch.

    <folder>/<key>/relations.f32     [pair relation] in float32: the vectors of anchor and positive side by side
    <folder>/<key>/windows.jsonl     one line per finished window of pairs, with its sha256
    <folder>/<key>.lock              held while windows are computed

The key is a hash of the encoder's weights, its precision, its prompt and all token ids, so another encoder, truncation
or pair makes another entry. A kill loses the current window; a damaged window and all later ones are computed again.
Storage is float32 whatever the encoder computes in, because dispersions of a millionth decide what is shrunk.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, final

import numpy as np
import torch
from filelock import FileLock
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor

from labelspace.corpus import Pairs
from labelspace.encoders import Encoder
from labelspace.encoders.identity import encoder_hash
from labelspace.errors import OutputError
from labelspace.folders import write_atomically
from labelspace.progress import Progress, silent

FORMAT = 1
WINDOW = 1024
"""Pairs tokenized, sorted and encoded together; repeated texts among them are encoded once."""

VECTORS = "relations.f32"
WINDOWS = "windows.jsonl"


@final
class ReferenceRelations:
    """The relations of some pairs, computed by an encoder that must not change until all are stored.

    Args:
        encoder: the reference encoder.
        pairs: the pairs.
        folder: storage folder; other pairs and encoders can share it.

    Example:
        >>> import tempfile
        >>> names = {"source_ids": (0, 0), "sources": ("news",), "seen": (2,)}
        >>> pairs = Pairs(anchors=("a team", "a bank"), positives=("sports", "money"), **names)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     relations = ReferenceRelations(Encoder("tests/data/tiny-bert"), pairs, Path(folder))
        ...     [block.shape for _, block in relations.blocks()], relations.take([1]).shape
        ([torch.Size([2, 64])], torch.Size([1, 64]))
    """

    def __init__(self, encoder: Encoder, pairs: Pairs, folder: Path) -> None:
        self._encoder, self._pairs, self._folder = encoder, pairs, folder
        self._shape = (len(pairs), 2 * encoder.dimension)
        self._entry: Path | None = None

    def blocks(self, report: Progress = silent) -> Iterator[tuple[slice, Float[Tensor, "pair relation"]]]:
        """Yield all relations window by window, computing those that are not on disk.

        Args:
            report: called with the number of pairs done.

        Yields:
            A slice of the pairs, and their relations.

        Raises:
            OutputError: they cannot be written; finished windows are kept.
        """
        entry = self._folder / self._key()
        try:
            entry.mkdir(parents=True, exist_ok=True)
            with FileLock(entry.with_name(entry.name + ".lock")):
                for start in self._made(entry):
                    stop = min(start + WINDOW, len(self._pairs))
                    report(stop, len(self._pairs))
                    yield slice(start, stop), torch.from_numpy(self._map(entry)[start:stop].copy())
        except OSError as error:
            raise OutputError(
                f"relations cannot be stored in {self._folder} ({error}); finished ones are kept, make room and resume."
            ) from error
        self._entry = entry

    def take(self, rows: Sequence[int]) -> Float[Tensor, "pair relation"]:
        """Return the relations of some pairs; `blocks` must have been exhausted before."""
        assert self._entry is not None
        return torch.from_numpy(self._map(self._entry)[list(rows)])

    def _map(self, entry: Path) -> NDArray[np.float32]:
        rows = (entry / VECTORS).stat().st_size // (4 * self._shape[1])
        return np.memmap(entry / VECTORS, dtype=np.float32, mode="r", shape=(rows, self._shape[1]))

    def _made(self, entry: Path) -> Iterator[int]:
        """Yield the first row of each window, once the window is on disk."""
        known = _known_windows(entry)
        size = 4 * self._shape[1]
        kept: list[str] = []
        (entry / VECTORS).touch()
        with (entry / VECTORS).open("r+b") as vectors:
            starts = range(0, len(self._pairs), WINDOW)
            for start, expected in zip(starts, known, strict=False):
                rows = min(WINDOW, len(self._pairs) - start)
                if hashlib.sha256(vectors.read(rows * size)).hexdigest() != expected:
                    break
                kept.append(expected)
                yield start
            vectors.seek(len(kept) * WINDOW * size)
            if len(kept) == len(starts):
                return
            vectors.truncate()
            # Atomically, so that a kill does not cost finished windows.
            write_atomically(entry / WINDOWS, "".join(json.dumps({"sha256": one}) + "\n" for one in kept))
            with (entry / WINDOWS).open("a", encoding="utf-8") as log:
                for start in starts[len(kept) :]:
                    data = self._encode(start).tobytes()
                    # Written, not mapped: on a full disk a write raises an error, while a map kills the process.
                    vectors.write(data)
                    _settle(vectors)
                    log.write(json.dumps({"sha256": hashlib.sha256(data).hexdigest()}) + "\n")
                    _settle(log)
                    yield start

    def _tokens(self, start: int) -> tuple[list[list[int]], list[int]]:
        """Return token ids of a window's distinct texts, and the index of each text, anchors before positives."""
        window = slice(start, start + WINDOW)
        texts = [*self._pairs.anchors[window], *self._pairs.positives[window]]
        places = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        return self._encoder.tokenize(list(places)), [places[text] for text in texts]

    def _encode(self, start: int) -> NDArray[np.float32]:
        token_ids, places = self._tokens(start)
        vectors = self._encoder.embed(token_ids)[places]
        half = len(places) // 2
        return np.concatenate([vectors[:half], vectors[half:]], axis=1)

    def _key(self) -> str:
        digest = hashlib.sha256(f"{FORMAT} {WINDOW} {encoder_hash(self._encoder)}".encode())
        for start in range(0, len(self._pairs), WINDOW):
            token_ids, places = self._tokens(start)
            for ids in (*token_ids, places):
                digest.update(len(ids).to_bytes(4, "little"))
                digest.update(np.asarray(ids, dtype=np.int32).tobytes())
        return digest.hexdigest()[:40]


def _known_windows(entry: Path) -> list[str]:
    """Return the hashes of the windows in a log, up to the first line that cannot be read."""
    known: list[str] = []
    try:
        for line in (entry / WINDOWS).read_text(encoding="utf-8").splitlines():
            known.append(json.loads(line)["sha256"])
    except (OSError, ValueError, KeyError, TypeError):
        pass
    return known


def _settle(file: IO[Any]) -> None:
    file.flush()
    os.fsync(file.fileno())
