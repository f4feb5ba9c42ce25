"""Token states of a frozen encoder: computed once, stored on disk in bfloat16, read batch by batch.

    <folder>/<key>/states.bf16     states of all tokens, one distinct text after another, [token dim]
    <folder>/<key>/index.json      sizes and the sha256 of states.bf16
    <folder>/<key>.lock            held while an entry is made, opened or removed
    <folder>/.<key>.<bytes>.room   space reserved for an entry that is being made
    <folder>/.lock                 held while entries are counted or removed, space is reserved, or locks change

The key is a hash of the encoder's weights, its precision and the set of token sequences. Another revision, prompt,
truncation or text makes another entry; another order or a repeated text does not. A damaged file is made again. Two
processes that want the same entry make it once; two that want different entries reserve space one after the other, so
that together they stay within the limit. The least recently used entries are removed if that makes enough room;
otherwise none is removed.

Only their owner can read entries, because states reveal much of the texts. Other files in the folder are left alone.
"""

import contextlib
import hashlib
import json
import shutil
import time
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
from labelspace.errors import OutputError, warn
from labelspace.folders import clear_away_killed, sha256_of, staged
from labelspace.progress import Progress, silent

FORMAT = 2
BYTES = 2
"""Bytes of one bfloat16 number."""

STATES = "states.bf16"
INDEX = "index.json"
LOCK, ROOM = ".lock", ".room"
# File name pattern of entries; other files belong to somebody else.
KEY_LENGTH = 40
KEYS = "[0-9a-f]" * KEY_LENGTH
WAIT = 0.05
"""Seconds between two attempts to take a lock that another process holds."""

Batch = tuple[Float[Tensor, "text token dim"], Bool[Tensor, "text token"]]
TokenIds = Sequence[Sequence[int]]


class TokenStates(Protocol):
    """Token states of some texts, read batch by batch."""

    lengths: NDArray[np.int64]
    """[text], number of tokens of each."""

    def take(self, rows: Sequence[int]) -> Batch:
        """Return bfloat16 states [text token dim], zero at padding, and the mask of tokens [text token]."""
        ...


@final
class StoredStates:
    """States in a file; only the current batch is in memory.

    Args:
        path: the file, [token dim] in bfloat16.
        lengths: [distinct text], number of tokens of each, in file order.
        dim: width of a state.
        places: [text], index of each text in file order.
    """

    def __init__(self, path: Path, lengths: NDArray[np.int64], dim: int, places: NDArray[np.intp]) -> None:
        self.lengths = lengths[places]
        self._ends = np.cumsum(lengths)[places]
        # int16 of the same width: numpy has no bfloat16.
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
    """States computed on each request: nothing is stored, and every epoch encodes the texts again.

    Args:
        encoder: frozen; its weights are never changed.
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
    """Token states in one folder, up to a total size.

    Args:
        folder: where entries are stored; created on first use.
        max_bytes: size limit of all entries together, in bytes.

    Raises:
        ConfigError: `max_bytes` is below 0.

    Example:
        >>> import tempfile
        >>> encoder = Encoder("tests/data/tiny-bert")
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     cache = StateCache(Path(folder))
        ...     states, mask = cache.open(encoder, encoder.tokenize(["a text", "one more"])).take([1, 0])
        >>> states.shape, mask.sum(dim=1).tolist()
        (torch.Size([2, 4, 32]), [4, 4])
    """

    def __init__(self, folder: str | Path, max_bytes: int = UncertaintyConfig.cache_bytes) -> None:
        check_number("max_bytes", max_bytes, least=0, whole=True)
        self.folder, self.max_bytes = Path(folder), max_bytes

    def open(self, encoder: Encoder, token_ids: TokenIds, report: Progress = silent) -> TokenStates:
        """Return the states of texts, computing them first if they are not cached.

        Args:
            encoder: frozen; its weights are never changed.
            token_ids: from `Encoder.tokenize`.
            report: called with the number of distinct texts done while states are computed.

        Warns:
            LabelSpaceWarning: the states exceed the limit or cannot be written, so every epoch computes them again.
        """
        first, places = _distinct(token_ids)
        distinct = [token_ids[row] for row in first]
        lengths, dim = _lengths(distinct), encoder.backbone.hidden_size
        size = int(lengths.sum()) * dim * BYTES
        if size > self.max_bytes:
            _say_fresh(f"they take {_told(size)}, and the cache holds {_told(self.max_bytes)}")
            return FreshStates(encoder, token_ids)
        if size == 0:
            return FreshStates(encoder, token_ids)
        entry = self.folder / state_key(encoder, distinct)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with self._held(entry):
                if _is_sound(entry, size):
                    (entry / INDEX).touch()  # records the time of last use
                    with self._counting():
                        self._make_room(size, entry)  # the limit may be lower than when the entry was written
                else:
                    room = self._take_room(size, entry)
                    if room is None:
                        _say_fresh(f"{_told(size)} do not fit beside the entries in use, or on the disk")
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
        """Return the size of all entries together, in bytes."""
        return sum(_size(entry) for entry in self._entries())

    def clear(self) -> int:
        """Remove every entry that nobody is making or opening, and return the number of bytes freed.

        Lock files are removed too. A process that has opened an entry can still read it.
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
        """Hold the lock of an entry, waiting for whoever holds it."""
        lock = FileLock(_lock_of(entry))
        while not lock.is_locked:
            # Hold the folder lock, so that nobody deletes this lock file between open and lock.
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
        """Make room for an entry that nobody can open and reserve it with a note; return None if it does not fit."""
        with self._counting():
            # A damaged entry is useless, and would count beside its replacement.
            shutil.rmtree(entry, ignore_errors=True)
            clear_away_killed(self.folder, KEYS)
            if not self._make_room(size, entry, free=size + 1):
                return None
            room = self.folder / f".{entry.name}.{size}{ROOM}"
            room.touch()
            return room

    def _make_room(self, size: int, entry: Path, *, free: int = 0) -> bool:
        """Remove other entries until one of this size fits; remove none if that would not be enough.

        Args:
            size: bytes of the entry.
            entry: the caller's own entry, whose lock it holds.
            free: bytes that must be free on the disk.
        """
        promised = self._promised(entry.name)
        # Count entries after reservations: an entry finished in between counts twice rather than not at all.
        others = {path: _size(path) for path in self._entries() if path != entry and path.name not in promised}
        excess = sum(others.values()) + sum(promised.values()) + size - self.max_bytes
        excess = max(excess, free - shutil.disk_usage(self.folder).free)
        with contextlib.ExitStack() as locked:
            going: list[Path] = []
            for path in sorted(others, key=_last_used):
                if excess <= 0:
                    break
                # A process that has mapped the file can still read it; one about to map it holds the lock.
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
        """Return the bytes reserved by other processes, by key; delete notes whose process has died."""
        promised: dict[str, int] = {}
        for note in self.folder.glob(f".{KEYS}.*{ROOM}"):
            key, _, size = note.name.removesuffix(ROOM).removeprefix(".").partition(".")
            try:
                # A process holds the lock of its entry until it is done, so a note without a lock is stale.
                with contextlib.nullcontext() if key == own else FileLock(_lock_of(self.folder / key), timeout=0):
                    _unlink(note)
            except Timeout:
                promised[key] = int(size)
        return promised

    def _entries(self) -> list[Path]:
        return [path for path in self.folder.glob(KEYS) if path.is_dir()]


def state_key(encoder: Encoder, token_ids: TokenIds) -> str:
    """Return a key for the token states of a set of texts; it changes whenever any of the states would."""
    digest = hashlib.sha256(f"{FORMAT} {encoder_hash(encoder, states=True)}".encode())
    for own in sorted(set(_digests(token_ids))):
        digest.update(own)
    return digest.hexdigest()[:KEY_LENGTH]


def encoded_states(
    encoder: Encoder, token_ids: TokenIds, report: Progress = silent
) -> Iterator[tuple[list[int], list[Tensor]]]:
    """Yield (places, states) per batch: for each text a tensor [token dim] in bfloat16, without padding."""
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
            # Written, not mapped: on a full disk a write raises an error, while a mapped file kills the process.
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
            "sha256": sha256_of(scratch / STATES),
        }
        (scratch / INDEX).write_text(json.dumps(facts, indent=2) + "\n", encoding="utf-8")


def _is_sound(entry: Path, size: int) -> bool:
    try:
        facts = json.loads((entry / INDEX).read_text(encoding="utf-8"))
        whole = (entry / STATES).stat().st_size == size
        return whole and facts["format"] == FORMAT and facts["sha256"] == sha256_of(entry / STATES)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _lock_of(entry: Path) -> Path:
    return entry.with_name(entry.name + LOCK)


def _discard(entry: Path) -> None:
    """Remove an entry and its lock, which the caller holds."""
    shutil.rmtree(entry, ignore_errors=True)
    _unlink(_lock_of(entry))


def _unlink(path: Path) -> None:
    # Windows does not remove open files.
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
    """Return one row per distinct text, in an order that depends only on the set, and each row's place in it."""
    digests = list(_digests(token_ids))
    rows: dict[bytes, int] = {}
    for row, digest in enumerate(digests):
        rows.setdefault(digest, row)
    ordered = sorted(rows)
    places = {digest: place for place, digest in enumerate(ordered)}
    return [rows[digest] for digest in ordered], np.array([places[digest] for digest in digests], dtype=np.intp)


def _digests(token_ids: TokenIds) -> Iterator[bytes]:
    # Hashes stand in for the tokens, so that comparing and sorting needs no second copy of them.
    return (hashlib.sha256(np.asarray(ids, dtype=np.int32).tobytes()).digest() for ids in token_ids)


def _lengths(token_ids: TokenIds) -> NDArray[np.int64]:
    return np.array([len(ids) for ids in token_ids], dtype=np.int64)


def _told(size: int) -> str:
    """Format a number of bytes for people.

    Example:
        >>> [_told(size) for size in (0, 1_000, 76_800_000, 10 * 1024**3)]
        ['0 bytes', '1,000 bytes', '76.8 MB', '10.7 GB']
    """
    for unit, name in ((10**9, "GB"), (10**6, "MB")):
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size:,} bytes"


def _say_fresh(why: str) -> None:
    warn(
        f"token states are not kept on disk: {why}. Every epoch encodes the texts again; give another cache folder or "
        "more cache_bytes."
    )
