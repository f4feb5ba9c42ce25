"""Token states of a frozen encoder: computed once, kept on disk in bfloat16, read a batch at a time.

    <folder>/<key>/states.bf16     the states of all tokens, distinct text after text, [token dim], nothing else
    <folder>/<key>/index.json      sizes and the sha256 of states.bf16
    <folder>/<key>.lock            held while an entry is made, opened or removed
    <folder>/.<key>.<bytes>.room   room kept free for an entry that is being made
    <folder>/.lock                 held while entries are counted and removed, room is taken, and locks are

The key is a hash of the encoder's weights, its precision and the set of the texts' tokens, so another revision, prompt,
cut or text is another entry, while another order and a text that comes twice are not; and a file that is not what it
was written as is made again. Two processes that want the same entry make it once; two that want different ones take
room one after the other, so that together they keep the bound. The least recently used entries go when that makes
enough room, and none goes where it would not.

Nobody but their owner can read entries: they tell much of the texts. What else lies in the folder is not touched.
"""

import contextlib
import hashlib
import json
import shutil
import time
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, final

import numpy as np
import torch
from filelock import FileLock, Timeout
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from labelspace.checks import check_number
from labelspace.config import UncertaintyConfig
from labelspace.encoders.batching import plan_batches
from labelspace.encoders.encoder import Encoder
from labelspace.encoders.identity import encoder_hash
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import LabelSpaceWarning, OutputError
from labelspace.folders import clear_away_killed, staged
from labelspace.progress import Progress, silent

FORMAT = 2
BYTES = 2
"""Of a number in bfloat16."""

STATES = "states.bf16"
INDEX = "index.json"
LOCK, ROOM = ".lock", ".room"
# As a pattern of file names: what has no such name is somebody else's.
KEY_LENGTH = 40
KEYS = "[0-9a-f]" * KEY_LENGTH
WAIT = 0.05
"""Seconds between two looks at a lock that somebody else holds."""

Batch = tuple[Float[Tensor, "text token dim"], Bool[Tensor, "text token"]]
TokenIds = Sequence[Sequence[int]]


class TokenStates(Protocol):
    """The token states of some texts, a batch at a time."""

    lengths: NDArray[np.int64]
    """[text], tokens of each."""

    def take(self, rows: Sequence[int]) -> Batch:
        """Return states in bfloat16, [text token dim], zero at padding, and where there is a token, [text token]."""
        ...


@final
class StoredStates:
    """States that lie in a file; what is held in memory is the batch.

    Args:
        path: the file, [token dim] in bfloat16.
        lengths: [distinct text], tokens of each, in the order of the file.
        dim: width of a state.
        places: [text], where in that order each one is.
    """

    def __init__(self, path: Path, lengths: NDArray[np.int64], dim: int, places: NDArray[np.intp]) -> None:
        self.lengths = lengths[places]
        self._ends = np.cumsum(lengths)[places]
        # As signed integers of the same width: numpy has no bfloat16.
        self._values = np.memmap(path, dtype=np.int16, mode="r", shape=(int(lengths.sum()), dim))

    def take(self, rows: Sequence[int]) -> Batch:
        """Return the states of some texts; see `TokenStates`."""
        wanted = self.lengths[list(rows)]
        values = np.zeros((len(wanted), max(1, int(wanted.max(initial=0))), self._values.shape[1]), dtype=np.int16)
        for place, (row, length) in enumerate(zip(rows, wanted, strict=True)):
            end = self._ends[row]
            values[place, :length] = self._values[end - length : end]
        mask = np.arange(values.shape[1]) < wanted[:, None]
        return torch.from_numpy(values).view(torch.bfloat16), torch.from_numpy(mask)


@final
class FreshStates:
    """States that are computed each time they are asked for: nothing is written, and every epoch costs an encoding.

    Args:
        encoder: never changed.
        token_ids: from `Encoder.tokenize`.
    """

    def __init__(self, encoder: Encoder, token_ids: TokenIds) -> None:
        self.lengths = _lengths(token_ids)
        self._encoder, self._token_ids = encoder, token_ids

    def take(self, rows: Sequence[int]) -> Batch:
        """Return the states of some texts; see `TokenStates`."""
        wanted = self.lengths[list(rows)]
        width, dim = max(1, int(wanted.max(initial=0))), self._encoder.backbone.hidden_size
        values = torch.zeros((len(wanted), width, dim), dtype=torch.bfloat16)
        for places, block in encoded_states(self._encoder, [self._token_ids[row] for row in rows]):
            for place, states in zip(places, block, strict=True):
                values[place, : len(states)] = states
        return values, torch.arange(width) < torch.from_numpy(wanted)[:, None]


@final
class StateCache:
    """Entries of token states under one folder, at most so many bytes of them.

    Args:
        folder: where; made when it is needed.
        most_bytes: of all entries together.

    Raises:
        ConfigError: `most_bytes` is below 0.

    Example:
        >>> import tempfile
        >>> encoder = Encoder("tests/data/tiny-bert")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = StateCache(Path(folder))
        ...     states, mask = cache.open(encoder, encoder.tokenize(["a text", "one more"])).take([1, 0])
        >>> states.shape, mask.sum(dim=1).tolist()
        (torch.Size([2, 4, 32]), [4, 4])
    """

    def __init__(self, folder: str | Path, most_bytes: int = UncertaintyConfig.cache_bytes) -> None:
        check_number("most_bytes", most_bytes, least=0, whole=True)
        self.folder, self.most_bytes = Path(folder), most_bytes

    def open(self, encoder: Encoder, token_ids: TokenIds, report: Progress = silent) -> TokenStates:
        """Return the states of texts, computed first where they are not here yet.

        Args:
            encoder: makes them; never changed.
            token_ids: from `Encoder.tokenize`.
            report: told how many distinct texts are done while they are computed.

        Warns:
            LabelSpaceWarning: they do not fit in, or cannot be written; they are then computed anew each time.
        """
        first, places = _distinct(token_ids)
        distinct = [token_ids[row] for row in first]
        lengths, dim = _lengths(distinct), encoder.backbone.hidden_size
        size = int(lengths.sum()) * dim * BYTES
        if size > self.most_bytes:
            _say_fresh(f"they take {_told(size)}, and the cache holds {_told(self.most_bytes)}")
            return FreshStates(encoder, token_ids)
        if size == 0:
            return FreshStates(encoder, token_ids)
        entry = self.folder / state_key(encoder, distinct)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._held(entry):
                if _is_sound(entry, size):
                    (entry / INDEX).touch()  # the time of the last use
                    with self._counting():
                        self._make_room(size, entry)  # the bound may be lower than when it was written
                else:
                    room = self._take_room(size, entry)
                    if room is None:
                        _say_fresh(f"of {_told(size)} no room can be made beside what is in use or on the disk")
                        return FreshStates(encoder, token_ids)
                    try:
                        _write(entry, encoder, distinct, lengths, report)
                    finally:
                        _unlink(room)
                return StoredStates(entry / STATES, lengths, dim, places)
        except (OSError, OutputError) as error:
            _say_fresh(f"they cannot be written ({error})")
            return FreshStates(encoder, token_ids)

    def bytes(self) -> int:
        """Return how many bytes all entries take."""
        return sum(_size(entry) for entry in self._entries())

    def clear(self) -> int:
        """Remove every entry that nobody is making or opening right now, and return how many bytes that freed.

        Their locks go with them. What somebody has opened stays readable to them.
        """
        if not self.folder.is_dir():
            return 0
        freed = 0
        with self._counting():
            clear_away_killed(self.folder, KEYS)
            self._promised()
            locks = [path.with_suffix("") for path in self.folder.glob(f"{KEYS}{LOCK}")]
            for entry in {*self._entries(), *locks}:
                with contextlib.suppress(Timeout), FileLock(_lock_of(entry), timeout=0):
                    freed += _size(entry)
                    _discard(entry)
        return freed

    @contextlib.contextmanager
    def _held(self, entry: Path) -> Iterator[None]:
        """Hold the lock of an entry; whoever has it, is waited for."""
        lock = FileLock(_lock_of(entry))
        while not lock.is_locked:
            # Nobody is between the opening of a lock's file and its locking while another removes it.
            with self._counting(), contextlib.suppress(Timeout):
                lock.acquire(timeout=0)
            if not lock.is_locked:
                time.sleep(WAIT)
        try:
            yield
        finally:
            lock.release()

    def _counting(self) -> FileLock:
        return FileLock(self.folder / LOCK)

    def _take_room(self, size: int, entry: Path) -> Path | None:
        """Make room for an entry that nobody can open, and keep it under a note; None where there is none to make."""
        with self._counting():
            # What is damaged is of no use, and would count beside what takes its place.
            shutil.rmtree(entry, ignore_errors=True)
            clear_away_killed(self.folder, KEYS)
            if not self._make_room(size, entry, free=size + 1):
                return None
            room = self.folder / f".{entry.name}.{size}{ROOM}"
            room.touch()
            return room

    def _make_room(self, size: int, entry: Path, *, free: int = 0) -> bool:
        """Remove other entries until one of this size fits in; none where removing all of them would not do.

        Args:
            size: bytes of the entry.
            entry: the caller's own, whose lock it holds.
            free: bytes that the disk must have left.
        """
        promised = self._promised(entry.name)
        # Counted after what is promised: an entry that is finished meanwhile is in both, and never in neither.
        others = {path: _size(path) for path in self._entries() if path != entry and path.name not in promised}
        excess = sum(others.values()) + sum(promised.values()) + size - self.most_bytes
        excess = max(excess, free - shutil.disk_usage(self.folder).free)
        with contextlib.ExitStack() as locked:
            going: list[Path] = []
            for path in sorted(others, key=_last_used):
                if excess <= 0:
                    break
                # Whoever has mapped the file keeps what it maps; whoever is about to, holds the lock.
                with contextlib.suppress(Timeout):
                    locked.enter_context(FileLock(_lock_of(path), timeout=0))
                    going.append(path)
                    excess -= others[path]
            if excess > 0:
                return False
            for path in going:
                _discard(path)
        return True

    def _promised(self, own: str = "") -> dict[str, int]:
        """Return the bytes of entries that others are making, by key; notes that were left behind go away."""
        promised: dict[str, int] = {}
        for note in self.folder.glob(f".{KEYS}.*{ROOM}"):
            key, _, size = note.name.removesuffix(ROOM).removeprefix(".").partition(".")
            try:
                # Who makes an entry holds its lock to the end, so a note without a lock is nobody's.
                with contextlib.nullcontext() if key == own else FileLock(_lock_of(self.folder / key), timeout=0):
                    _unlink(note)
            except Timeout:
                promised[key] = int(size)
        return promised

    def _entries(self) -> list[Path]:
        return [path for path in self.folder.glob(KEYS) if path.is_dir()]


def state_key(encoder: Encoder, token_ids: TokenIds) -> str:
    """Return a name for the token states of a set of texts: whatever changes one of them changes it."""
    digest = hashlib.sha256(f"{FORMAT} {encoder_hash(encoder, states=True)}".encode())
    for own in sorted(set(_digests(token_ids))):
        digest.update(own)
    return digest.hexdigest()[:KEY_LENGTH]


def encoded_states(
    encoder: Encoder, token_ids: TokenIds, report: Progress = silent
) -> Iterator[tuple[list[int], list[Tensor]]]:
    """Yield (places, states) for batches of texts: a tensor [token dim] in bfloat16 for each, without padding."""
    backbone = encoder.backbone

    def run(positions: list[int]) -> list[Tensor]:
        states, mask = backbone.states(backbone.batch(token_ids, positions))
        states = states.to(torch.bfloat16).cpu()
        return [row[kept] for row, kept in zip(states, mask.cpu(), strict=True)]

    backbone.prepare()
    done = 0
    plan = plan_batches([len(ids) for ids in token_ids], encoder.config.token_budget)
    for positions, block in side_by_side(run, plan, backbone.device):
        yield positions, block
        done += len(positions)
        report(done, len(token_ids))


def _write(entry: Path, encoder: Encoder, token_ids: TokenIds, lengths: NDArray[np.int64], report: Progress) -> None:
    row_bytes = encoder.backbone.hidden_size * BYTES
    starts = np.cumsum(lengths) - lengths
    with staged(entry, private=True) as scratch:
        with (scratch / STATES).open("wb") as file:
            # Written, not mapped: on a full disk writing raises an error, and a map kills the process.
            file.truncate(int(lengths.sum()) * row_bytes)
            for places, block in encoded_states(encoder, token_ids, report):
                for place, states in zip(places, block, strict=True):
                    file.seek(int(starts[place]) * row_bytes)
                    file.write(states.contiguous().view(torch.int16).numpy().tobytes())
        facts = {
            "format": FORMAT,
            "encoder": encoder.name,
            "texts": len(token_ids),
            "tokens": int(lengths.sum()),
            "dim": encoder.backbone.hidden_size,
            "sha256": _sha256(scratch / STATES),
        }
        (scratch / INDEX).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _is_sound(entry: Path, size: int) -> bool:
    try:
        facts = json.loads((entry / INDEX).read_text(encoding="utf-8"))
        whole = (entry / STATES).stat().st_size == size
        return whole and facts["format"] == FORMAT and facts["sha256"] == _sha256(entry / STATES)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _lock_of(entry: Path) -> Path:
    return entry.with_name(entry.name + LOCK)


def _discard(entry: Path) -> None:
    """Remove an entry and its lock, which the caller holds."""
    shutil.rmtree(entry, ignore_errors=True)
    _unlink(_lock_of(entry))


def _unlink(path: Path) -> None:
    # Windows does not remove what is open.
    with contextlib.suppress(OSError):
        path.unlink()


def _size(entry: Path) -> int:
    with contextlib.suppress(OSError):
        return (entry / STATES).stat().st_size
    return 0


def _last_used(entry: Path) -> float:
    with contextlib.suppress(OSError):
        return (entry / INDEX).stat().st_mtime
    return 0.0


def _distinct(token_ids: TokenIds) -> tuple[list[int], NDArray[np.intp]]:
    """Return a row of each distinct text, in an order that the set alone decides, and the place of every row in it."""
    digests = list(_digests(token_ids))
    rows: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        rows.setdefault(digest, row)
    ordered = sorted(rows)
    places = {digest: place for place, digest in enumerate(ordered)}
    return [rows[digest] for digest in ordered], np.array([places[digest] for digest in digests], dtype=np.intp)


def _digests(token_ids: TokenIds) -> Iterator[bytes]:
    # In place of the tokens themselves, which would be held a second time to be compared and sorted.
    return (hashlib.sha256(np.asarray(ids, dtype=np.int32).tobytes()).digest() for ids in token_ids)


def _lengths(token_ids: TokenIds) -> NDArray[np.int64]:
    return np.array([len(ids) for ids in token_ids], dtype=np.int64)


def _told(size: int) -> str:
    """Return a number of bytes as one would say it.

    Example:
        >>> [_told(size) for size in (0, 1_000, 76_800_000, 10 * 1024**3)]
        ['0 bytes', '1,000 bytes', '76.8 MB', '10.7 GB']
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:,} bytes"


def _say_fresh(why: str) -> None:
    warnings.warn(
        f"token states are not kept on disk: {why}. Every epoch encodes the texts again; give another cache folder or "
        "more cache_bytes.",
        LabelSpaceWarning,
        stacklevel=3,
    )
