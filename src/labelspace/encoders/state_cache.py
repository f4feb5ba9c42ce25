"""Token states of a frozen encoder: computed once, kept on disk in bfloat16, read a batch at a time.

    <folder>/<key>/states.bf16     the states of all tokens, text after text, [token dim], nothing else
    <folder>/<key>/index.json      sizes and the sha256 of states.bf16
    <folder>/<key>.lock            held while an entry is made, opened or removed

The key is a hash of the encoder's weights, its precision and every token id, so another revision, prompt, cut or text
is another entry, and a file that is not what it was written as is made again. Two processes that want the same entry
make it once. The least recently used entries go when there is no room.
"""

import contextlib
import hashlib
import json
import shutil
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
from labelspace.encoders.batching import plan_batches
from labelspace.encoders.encoder import Encoder
from labelspace.encoders.side_by_side import side_by_side
from labelspace.errors import LabelSpaceWarning, OutputError
from labelspace.folders import clear_away_killed, staged
from labelspace.progress import Progress, silent

FORMAT = 1
BYTES = 2
"""Of a number in bfloat16."""

DEFAULT_BYTES = 10 * 1024**3
STATES = "states.bf16"
# Of a configuration: where it lies and who wrote it.
IRRELEVANT = ("_name_or_path", "transformers_version")
INDEX = "index.json"

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
        lengths: [text], tokens of each text, in the order of the file.
        dim: width of a state.
    """

    def __init__(self, path: Path, lengths: NDArray[np.int64], dim: int) -> None:
        self.lengths = lengths
        self._ends = np.cumsum(lengths)
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
        >>> cache = StateCache(Path(tempfile.mkdtemp()))
        >>> states, mask = cache.open(encoder, encoder.tokenize(["a text", "one more"])).take([1, 0])
        >>> states.shape, mask.sum(dim=1).tolist()
        (torch.Size([2, 4, 32]), [4, 4])
    """

    def __init__(self, folder: Path, most_bytes: int = DEFAULT_BYTES) -> None:
        check_number("most_bytes", most_bytes, least=0, whole=True)
        self.folder, self.most_bytes = folder, most_bytes

    def open(self, encoder: Encoder, token_ids: TokenIds, report: Progress = silent) -> TokenStates:
        """Return the states of texts, computed first where they are not here yet.

        Args:
            encoder: makes them; never changed.
            token_ids: from `Encoder.tokenize`.
            report: told how many texts are done while they are computed.

        Warns:
            LabelSpaceWarning: they do not fit in, or cannot be written; they are then computed anew each time.
        """
        lengths, dim = _lengths(token_ids), encoder.backbone.hidden_size
        size = int(lengths.sum()) * dim * BYTES
        if size > self.most_bytes:
            _say_fresh(f"they take {size / 1e9:.1f} GB, and the cache holds {self.most_bytes / 1e9:.1f} GB")
            return FreshStates(encoder, token_ids)
        if size == 0:
            return FreshStates(encoder, token_ids)
        entry = self.folder / state_key(encoder, token_ids)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with FileLock(_lock_of(entry)):
                if not _is_sound(entry, size):
                    self._make_room(size, entry)
                    _write(entry, encoder, token_ids, lengths, report)
                (entry / INDEX).touch()  # the time of the last use
                return StoredStates(entry / STATES, lengths, dim)
        except (OSError, OutputError) as error:
            _say_fresh(f"they cannot be written ({error})")
            return FreshStates(encoder, token_ids)

    def bytes(self) -> int:
        """Return how many bytes all entries take."""
        return sum(_size(entry) for entry in self._entries())

    def clear(self) -> int:
        """Remove every entry that nobody is making or opening right now, and return how many bytes that freed."""
        return sum(self._remove(entry) for entry in self._entries())

    def _make_room(self, size: int, keep: Path) -> None:
        clear_away_killed(self.folder)
        taken = self.bytes()
        for entry in sorted(self._entries(), key=_last_used):
            free = shutil.disk_usage(self.folder).free
            if taken + size <= self.most_bytes and size < free:
                break
            if entry != keep:
                taken -= self._remove(entry)

    def _remove(self, entry: Path) -> int:
        # Whoever has mapped the file keeps what it maps; whoever is about to, holds the lock.
        try:
            with FileLock(_lock_of(entry), timeout=0):
                size = _size(entry)
                shutil.rmtree(entry, ignore_errors=True)
                return size
        except Timeout:
            return 0

    def _entries(self) -> list[Path]:
        return [path for path in self.folder.glob("*") if path.is_dir() and not path.name.startswith(".")]


def state_key(encoder: Encoder, token_ids: TokenIds) -> str:
    """Return a name for the token states of some texts: whatever changes one of them changes it."""
    digest = hashlib.sha256(f"{FORMAT} {encoder.dtype}".encode())
    config = encoder.backbone.transformer.model.config.to_diff_dict()
    config = {name: value for name, value in config.items() if name not in IRRELEVANT}
    digest.update(json.dumps(config, sort_keys=True, default=str).encode())
    for name, values in sorted(encoder.backbone.transformer.model.state_dict().items()):
        digest.update(name.encode())
        digest.update(values.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())
    for ids in token_ids:
        digest.update(len(ids).to_bytes(4, "little"))
        digest.update(np.asarray(ids, dtype=np.int32).tobytes())
    return digest.hexdigest()[:40]


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
    with staged(entry) as scratch:
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
    return entry.with_name(entry.name + ".lock")


def _size(entry: Path) -> int:
    with contextlib.suppress(OSError):
        return (entry / STATES).stat().st_size
    return 0


def _last_used(entry: Path) -> float:
    with contextlib.suppress(OSError):
        return (entry / INDEX).stat().st_mtime
    return 0.0


def _lengths(token_ids: TokenIds) -> NDArray[np.int64]:
    return np.array([len(ids) for ids in token_ids], dtype=np.int64)


def _say_fresh(why: str) -> None:
    warnings.warn(
        f"token states are not kept on disk: {why}. Every epoch encodes the texts again; give another cache folder or "
        "more cache_bytes.",
        LabelSpaceWarning,
        stacklevel=3,
    )
