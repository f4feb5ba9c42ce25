"""Token states on disk: the encoder's own, computed once, limited in size, and checked before use."""

import json
import os
import signal
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from filelock import FileLock

from labelspace.encoders import Encoder
from labelspace.encoders import state_cache as module
from labelspace.encoders.state_cache import INDEX, STATES, FreshStates, StateCache, StoredStates, state_key
from labelspace.errors import ConfigError, LabelSpaceWarning

TEXTS = ["the team won the match", "a bank", "the minister asked the court for time today", "rain"]


@pytest.fixture(params=["float32", "bfloat16"])
def encoder(request: Any, tiny_encoder_folder: Path) -> Encoder:
    return Encoder(tiny_encoder_folder, dtype=request.param, device="cpu")


@pytest.fixture
def plain(tiny_encoder_folder: Path) -> Encoder:
    return Encoder(tiny_encoder_folder, dtype="float32", device="cpu")


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Record the number of texts of each encoding."""
    asked: list[int] = []
    real = module.encoded_states

    def counting(encoder: Encoder, token_ids: Any, *rest: Any) -> Any:
        asked.append(len(token_ids))
        return real(encoder, token_ids, *rest)

    monkeypatch.setattr(module, "encoded_states", counting)
    return asked


def entry_of(cache: StateCache) -> Path:
    (entry,) = [path for path in cache.folder.iterdir() if path.is_dir()]
    return entry


def test_stored_states_are_those_of_the_encoder_in_bfloat16(encoder: Encoder, tmp_path: Path):
    ids = encoder.tokenize(TEXTS)
    states, mask = StateCache(tmp_path).open(encoder, ids).take(range(4))
    assert states.dtype is torch.bfloat16
    assert mask.sum(dim=1).tolist() == [len(row) for row in ids]
    for row, own in enumerate(ids):
        alone, _ = encoder.backbone.states(encoder.backbone.batch([own], [0]))
        # The batch may change the last digit of bfloat16.
        assert torch.allclose(states[row, : len(own)].float(), alone[0].float(), atol=0.05, rtol=0.02)
        assert not states[row, len(own) :].any()


def test_states_come_back_in_the_requested_order(plain: Encoder, tmp_path: Path):
    stored = StateCache(tmp_path).open(plain, plain.tokenize(TEXTS))
    everything, _ = stored.take([0, 1, 2, 3])
    some, mask = stored.take([3, 1])
    assert some.shape[1] == max(stored.lengths[[3, 1]])
    for place, row in enumerate([3, 1]):
        length = stored.lengths[row]
        assert torch.equal(some[place, :length], everything[row, :length])
        assert mask[place].sum() == length


def test_fresh_states_equal_stored_ones(plain: Encoder, tmp_path: Path):
    ids = plain.tokenize(TEXTS)
    stored, fresh = StateCache(tmp_path).open(plain, ids).take([2, 0]), FreshStates(plain, ids).take([2, 0])
    assert torch.allclose(stored[0].float(), fresh[0].float(), atol=0.02)
    assert torch.equal(stored[1], fresh[1])


def test_texts_are_encoded_once(plain: Encoder, tmp_path: Path, counted: list[int]):
    ids = plain.tokenize(TEXTS)
    for _ in range(3):
        StateCache(tmp_path).open(plain, ids)
    assert counted == [4]


def test_the_key_depends_on_weights_precision_tokens_and_truncation(plain: Encoder, tiny_encoder_folder: Path):
    ids = plain.tokenize(TEXTS)
    changed = plain.copy()
    with torch.no_grad():
        next(iter(changed.backbone.transformer.model.parameters())).view(-1)[7] += 1e-3
    others = {
        "weights": state_key(changed, ids),
        "precision": state_key(Encoder(tiny_encoder_folder, dtype="bfloat16", device="cpu"), ids),
        "a text": state_key(plain, plain.tokenize([*TEXTS[:-1], "snow"])),
        "a text less": state_key(plain, ids[1:]),
        "where a text ends": state_key(plain, [ids[0] + ids[1], *ids[2:]]),
        "a cut": state_key(plain, [row[:4] for row in ids]),
    }
    assert len({state_key(plain, ids), *others.values()}) == 7
    assert state_key(plain.copy(), ids) == state_key(plain, ids)


def test_order_and_repetition_do_not_change_the_entry(plain: Encoder, tmp_path: Path, counted: list[int]):
    ids, cache = plain.tokenize(TEXTS), StateCache(tmp_path)
    before, _ = cache.open(plain, ids).take(range(4))
    order = [2, 0, 2, 3, 1, 0, 2]
    again = cache.open(plain, [ids[row] for row in order])
    assert counted == [4]
    assert again.lengths.tolist() == [len(ids[row]) for row in order]
    states, mask = again.take([5, 0, 4, 2])
    assert torch.equal(states, before[[0, 2, 1, 2]])
    assert mask.sum(dim=1).tolist() == [len(ids[row]) for row in (0, 2, 1, 2)]
    assert entry_of(cache)


@pytest.mark.parametrize("order", [[3, 1, 0, 2], [1, 1, 3, 0, 2, 0]])
def test_the_bytes_do_not_depend_on_the_order_of_texts(plain: Encoder, tmp_path: Path, order: list[int]):
    ids = plain.tokenize(TEXTS)
    caches = [StateCache(tmp_path / name) for name in ("plain", "other")]
    for cache, rows in zip(caches, (range(4), order), strict=True):
        cache.open(plain, [ids[row] for row in rows])
    entries = [entry_of(cache) for cache in caches]
    assert entries[0].name == entries[1].name
    for name in (STATES, INDEX):
        assert (entries[0] / name).read_bytes() == (entries[1] / name).read_bytes()


def test_a_repeated_text_is_stored_once(plain: Encoder, tmp_path: Path):
    ids, cache = plain.tokenize(TEXTS), StateCache(tmp_path)
    cache.open(plain, ids * 50)
    assert cache.bytes() == sum(map(len, ids)) * 32 * 2


@pytest.mark.parametrize("damage", ["a flipped byte", "cut off", "no index", "an older format", "nonsense"])
def test_a_damaged_entry_is_made_again(plain: Encoder, tmp_path: Path, counted: list[int], damage: str):
    ids, cache = plain.tokenize(TEXTS), StateCache(tmp_path)
    before, _ = cache.open(plain, ids).take(range(4))
    before = before.clone()
    states, index = entry_of(cache) / STATES, entry_of(cache) / INDEX
    if damage == "a flipped byte":
        data = bytearray(states.read_bytes())
        data[100] ^= 0xFF
        states.write_bytes(data)
    elif damage == "cut off":
        states.write_bytes(states.read_bytes()[:-2])
    elif damage == "no index":
        index.unlink()
    elif damage == "an older format":
        index.write_text(json.dumps({**json.loads(index.read_text()), "format": 0}))
    else:
        index.write_text("[]")
    after, _ = cache.open(plain, ids).take(range(4))
    assert counted == [4, 4]
    assert torch.equal(before, after)


def test_the_least_recently_used_entry_is_removed_for_room(plain: Encoder, tmp_path: Path, counted: list[int]):
    lots = [plain.tokenize([f"{word} {text}" for text in TEXTS]) for word in ("news", "team", "bank")]
    size = max(sum(map(len, ids)) for ids in lots) * 32 * 2
    cache = StateCache(tmp_path, max_bytes=2 * size)
    for number, ids in enumerate(lots[:2]):
        cache.open(plain, ids)
        stamp = 1_000_000 + number
        os.utime(tmp_path / state_key(plain, ids) / INDEX, (stamp, stamp))
    cache.open(plain, lots[0])  # now the second is the least recently used
    cache.open(plain, lots[2])
    kept = {path.name for path in tmp_path.iterdir() if path.is_dir()}
    assert kept == {state_key(plain, lots[0]), state_key(plain, lots[2])}
    assert cache.bytes() <= cache.max_bytes


def three_lots(encoder: Encoder) -> tuple[list[list[list[int]]], int]:
    """Return the tokens of three sets of texts of similar size, and the bytes of the largest."""
    lots = [encoder.tokenize([f"{word} {text}" for text in TEXTS]) for word in ("news", "team", "bank")]
    return lots, max(sum(map(len, ids)) for ids in lots) * 32 * 2


def kept(cache: StateCache, encoder: Encoder, lots: list[list[list[int]]]) -> list[bool]:
    return [(cache.folder / state_key(encoder, ids) / INDEX).exists() for ids in lots]


def test_remaking_a_damaged_entry_removes_no_other_entry(plain: Encoder, tmp_path: Path):
    lots, size = three_lots(plain)
    cache = StateCache(tmp_path, max_bytes=2 * size)
    for ids in lots[:2]:
        cache.open(plain, ids)
    (tmp_path / state_key(plain, lots[1]) / INDEX).unlink()
    cache.open(plain, lots[1])
    assert kept(cache, plain, lots) == [True, True, False]


def test_a_lower_limit_applies_from_the_next_opening(plain: Encoder, tmp_path: Path, counted: list[int]):
    lots, size = three_lots(plain)
    for ids in lots:
        StateCache(tmp_path).open(plain, ids)
    lower = StateCache(tmp_path, max_bytes=size)
    lower.open(plain, lots[1])
    assert kept(lower, plain, lots) == [False, True, False]
    assert len(counted) == 3, "it was there"


def test_reserved_room_is_respected_and_nothing_is_removed_in_vain(plain: Encoder, tmp_path: Path):
    lots, size = three_lots(plain)
    cache = StateCache(tmp_path, max_bytes=3 * size)
    cache.open(plain, lots[0])
    other = "0" * 40
    note = tmp_path / f".{other}.{5 * size // 2}.room"
    note.touch()
    with (
        FileLock(tmp_path / f"{other}.lock"),
        pytest.warns(LabelSpaceWarning, match="do not fit beside the entries in use"),
    ):
        assert isinstance(cache.open(plain, lots[1]), FreshStates)
    assert kept(cache, plain, lots) == [True, False, False]
    assert note.exists()
    cache.open(plain, lots[1])  # no lock is held: the process that reserved the room was killed
    assert kept(cache, plain, lots) == [True, True, False]
    assert not note.exists()


def test_an_entry_being_opened_is_not_removed(plain: Encoder, tmp_path: Path):
    lots, size = three_lots(plain)
    cache = StateCache(tmp_path, max_bytes=2 * size)
    for ids in lots[:2]:
        cache.open(plain, ids)
    with FileLock(tmp_path / f"{state_key(plain, lots[0])}.lock"):
        assert cache.clear() > 0
        assert kept(cache, plain, lots) == [True, False, False]
        cache.open(plain, lots[1])
        cache.open(plain, lots[2])
    assert kept(cache, plain, lots) == [True, False, True]


def test_clear_leaves_neither_entries_nor_their_locks(plain: Encoder, tmp_path: Path):
    cache = StateCache(str(tmp_path))
    cache.open(plain, plain.tokenize(TEXTS))
    assert cache.clear() > 0
    assert [path.name for path in tmp_path.iterdir()] == [".lock"]
    assert cache.clear() == StateCache(tmp_path / "nowhere").clear() == 0


@pytest.mark.skipif(os.name == "nt", reason="Windows has other rights")
def test_other_files_in_the_folder_are_left_alone(plain: Encoder, tmp_path: Path):
    lots, size = three_lots(plain)
    own = ("thesis/chapter.txt", "poetry.lock", ".note.1-2.tmp/draft.txt", ".x.y.room", "abc.lock", "0" * 39 + "/a.txt")
    for name in own:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("mine")
    cache = StateCache(tmp_path, max_bytes=size)
    for ids in lots:
        cache.open(plain, ids)
    assert cache.bytes() <= size
    assert cache.clear() > 0
    assert {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()} == {*own, ".lock"}


def test_only_the_owner_can_read_an_entry(plain: Encoder, tmp_path: Path):
    before = os.umask(0)
    try:
        cache = StateCache(tmp_path)
        cache.open(plain, plain.tokenize(TEXTS))
    finally:
        os.umask(before)
    entry = entry_of(cache)
    assert entry.stat().st_mode & 0o777 == 0o700
    assert {path.stat().st_mode & 0o777 for path in entry.iterdir()} == {0o600}


def test_an_open_entry_stays_readable_after_its_removal(plain: Encoder, tmp_path: Path):
    cache, ids = StateCache(tmp_path), plain.tokenize(TEXTS)
    stored = cache.open(plain, ids)
    before, _ = stored.take([0, 1])
    assert cache.clear() > 0
    assert cache.bytes() == 0
    assert torch.equal(stored.take([0, 1])[0], before)


def test_states_above_the_limit_are_recomputed_with_a_warning(plain: Encoder, tmp_path: Path):
    ids = plain.tokenize(TEXTS)
    size = f"{2 * 32 * sum(map(len, ids)):,}"
    with pytest.warns(LabelSpaceWarning, match=f"not kept.* take {size} bytes, and the cache holds 100 bytes.*bytes"):
        states = StateCache(tmp_path, max_bytes=100).open(plain, ids)
    assert isinstance(states, FreshStates)
    assert not any(tmp_path.iterdir())


def test_an_unwritable_folder_is_not_fatal(plain: Encoder, tmp_path: Path):
    (tmp_path / "taken").write_text("a file")
    with pytest.warns(LabelSpaceWarning, match="cannot be written"):
        states = StateCache(tmp_path / "taken").open(plain, plain.tokenize(TEXTS))
    assert states.take([0])[0].shape[2] == 32


def test_a_full_disk_leaves_no_partial_entry(plain: Encoder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "sha256_of", full)
    with pytest.warns(LabelSpaceWarning, match="No space left"):
        states = StateCache(tmp_path).open(plain, plain.tokenize(TEXTS))
    assert isinstance(states, FreshStates)
    assert [path for path in tmp_path.iterdir() if path.is_dir()] == []


def test_an_empty_input_makes_no_entry(plain: Encoder, tmp_path: Path):
    states, mask = StateCache(tmp_path).open(plain, []).take([])
    assert states.shape == (0, 1, 32)
    assert mask.shape == (0, 1)


def test_reading_needs_the_memory_of_one_batch(tmp_path: Path):
    lengths = np.full(4096, 64, dtype=np.int64)
    path = tmp_path / STATES
    with path.open("wb") as file:
        file.truncate(4096 * 64 * 384 * 2)
    stored = StoredStates(path, lengths, 384, np.arange(4096))
    tracemalloc.start()
    states, _ = stored.take([5, 4000])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert states.untyped_storage().nbytes() == 2 * 64 * 384 * 2
    assert peak < 2 * states.untyped_storage().nbytes()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("kept", [True, False])
def test_writing_needs_the_memory_of_a_few_batches_even_on_a_slow_disk(
    tiny_encoder_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
):
    made: list[weakref.ref[torch.Tensor]] = []
    held: list[int] = []
    many = threading.Event()
    real = module.side_by_side

    def watched(work: Any, items: Any, device: Any) -> Any:
        def noted(item: Any) -> Any:
            block = work(item)
            made.extend(weakref.ref(states) for states in block)
            if len(made) > 20:
                many.set()
            return block

        return real(noted, items, device)

    def slow(done: float, total: float | None = None, note: str = "") -> None:
        if done == 5:
            many.wait(0.1)  # the disk is busy, and the encoder may run ahead
        held.append(sum(states() is not None for states in made))

    monkeypatch.setattr(module, "side_by_side", watched)
    encoder = Encoder(tiny_encoder_folder, dtype="float32", device="cpu", token_budget=1)  # each text is a batch
    ids = encoder.tokenize([f"text {number}" for number in range(100)])
    if kept:
        StateCache(tmp_path).open(encoder, ids, slow)
    else:
        for _ in module.encoded_states(encoder, ids, slow):
            pass
    assert len(made) == len(held) == 100
    assert max(held) <= 2 * 2 + 2, "what two workers are ahead, and what is being written"


def test_a_negative_size_is_refused(tmp_path: Path):
    with pytest.raises(ConfigError, match="max_bytes"):
        StateCache(tmp_path, max_bytes=-1)


WORKER = """
import sys, time
from pathlib import Path
from labelspace.encoders import Encoder, state_cache
real = state_cache.encoded_states
def patient(*given):
    print("encoding", flush=True)
    while not Path(sys.argv[3]).exists():
        time.sleep(0.05)
    yield from real(*given)
state_cache.encoded_states = patient
encoder = Encoder(sys.argv[1], dtype="float32", device="cpu")
cache = state_cache.StateCache(Path(sys.argv[2]), int(sys.argv[4]))
print(type(cache.open(encoder, encoder.tokenize(sys.argv[5:]))).__name__, flush=True)
"""
TWO = ("the team won", "a bank")


@pytest.fixture
def encoding(tiny_encoder_folder: Path, tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Start a process that opens texts in the cache; it has begun to encode them and waits for the file `go`."""
    started: list[subprocess.Popen[str]] = []

    def start(*texts: str, most_bytes: int = 10**9) -> subprocess.Popen[str]:
        places = (tiny_encoder_folder, tmp_path / "states", tmp_path / "go")
        words = [sys.executable, "-c", WORKER, *map(str, (*places, most_bytes, *texts))]
        started.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
        assert started[-1].stdout is not None
        assert started[-1].stdout.readline() == "encoding\n"
        return started[-1]

    yield start
    for process in started:
        with process:
            process.kill()


@pytest.mark.slow
def test_two_processes_make_an_entry_once(encoding: Any, plain: Encoder, counted: list[int], tmp_path: Path):
    other = encoding(*TWO)
    threading.Timer(0.5, (tmp_path / "go").touch).start()
    states = StateCache(tmp_path / "states").open(plain, plain.tokenize(TWO))
    assert isinstance(states, StoredStates)
    assert counted == []
    assert other.communicate(timeout=120)[0] == "StoredStates\n"


@pytest.mark.slow
def test_two_processes_with_different_texts_stay_within_the_limit_together(
    encoding: Any, plain: Encoder, tmp_path: Path
):
    """Each needs more than half of the limit; the first is still writing when the second looks for room."""
    bound = 2 * sum(map(len, plain.tokenize([*TWO, "rain"]))) * 32 * 2 - 1
    other, cache = encoding(*TWO, "rain", most_bytes=bound), StateCache(tmp_path / "states", bound)
    with pytest.warns(LabelSpaceWarning, match="token states are not kept on disk"):
        assert isinstance(cache.open(plain, plain.tokenize([*TWO, "snow"])), FreshStates)
    (tmp_path / "go").touch()
    assert other.communicate(timeout=120)[0] == "StoredStates\n"
    assert 0 < cache.bytes() <= bound
    assert not list((tmp_path / "states").glob(".*.room"))


@pytest.mark.slow
def test_nothing_left_by_a_killed_process_is_trusted(encoding: Any, plain: Encoder, counted: list[int], tmp_path: Path):
    killed = encoding(*TWO)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert isinstance(StateCache(tmp_path / "states").open(plain, plain.tokenize(TWO)), StoredStates)
    assert counted == [2]
    assert [path for path in (tmp_path / "states").iterdir() if path.name.endswith(".tmp")] == []
