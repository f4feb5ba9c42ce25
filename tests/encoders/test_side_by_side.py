"""Concurrent batches give the same results as sequential ones, and leave the caller's threads alone."""

import gc
import os
import signal
import threading
import time
import weakref
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from labelspace import Encoder
from labelspace.encoders.side_by_side import side_by_side

CPU = torch.device("cpu")

AHEAD = 2 * 2
"""Batches that two workers are at, or that wait for them."""


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize(
    ("kind", "dtype"),
    [  # packed texts, and padded ones with caches of their own
        ("bert-mean", "float32"),
        ("bert-mean", "bfloat16"),
        ("modernbert-cls", "float32"),
        ("qwen3-last", "bfloat16"),
    ],
)
def test_vectors_do_not_depend_on_how_many_batches_run_at_a_time(
    kind: str, dtype: str, tiny_folder: Callable[[str], Path]
):
    encoder = Encoder(tiny_folder(kind), dtype=dtype, device="cpu", token_budget=24, text_prompt="", label_prompt="")
    texts = [f"text {'word ' * (number % 17)}{number}" for number in range(30)]
    together = encoder.encode(texts)
    torch.set_num_threads(1)
    # Not bit-identical: some processors sum in another order with another number of threads.
    assert np.abs(together - encoder.encode(texts)).max() < (0.03 if dtype == "bfloat16" else 1e-5)


@pytest.mark.usefixtures("two_threads")
def test_results_come_in_order_from_more_than_one_thread():
    seen: set[str] = set()
    meet = threading.Barrier(2, timeout=10)

    def work(item: int) -> int:
        seen.add(threading.current_thread().name)
        assert torch.is_inference_mode_enabled()
        if item:
            assert torch.get_num_threads() == 1
            meet.wait()  # passes only if two workers run at a time
        return item * item

    assert list(side_by_side(work, range(21), CPU)) == [(item, item * item) for item in range(21)]
    assert len(seen) == 3
    assert torch.get_num_threads() == 2
    assert _threads_of_a_new_thread() == 2
    assert not torch.is_inference_mode_enabled()


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("ready", [True, False])
@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_items_to_be_treated_alike_have_the_threads_of_one_worker_however_few_they_are(count: int, ready: bool):
    """With all threads for a few labels and one thread for each of many, the last bits of a vector would differ."""
    done: list[int] = []

    def work(item: int) -> int:
        if item and not ready:
            assert 0 in done  # the first one fills the lazy caches, before any other begins
        done.append(item)
        return torch.get_num_threads()

    results = list(side_by_side(work, range(count), CPU, ready=ready, alike=True))
    assert results == [(item, 1) for item in range(count)]
    assert _threads_of_a_new_thread() == 2


@pytest.mark.usefixtures("two_threads")
def test_an_error_in_one_batch_ends_the_others_and_is_raised():
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            raise ValueError("batch 3")
        done.append(item)

    with pytest.raises(ValueError, match="batch 3"):
        list(side_by_side(work, range(1000), CPU))
    assert len(done) <= 3 + 2 * AHEAD
    assert _threads_of_a_new_thread() == 2


@pytest.mark.usefixtures("two_threads")
def test_few_batches_are_computed_ahead_of_a_slow_caller():
    done: list[int] = []
    too_many = threading.Event()

    def work(item: int) -> int:
        done.append(item)
        if len(done) > 5 + AHEAD:
            too_many.set()
        return item

    results = side_by_side(work, range(1000), CPU)
    assert [next(results)[0] for _ in range(5)] == [0, 1, 2, 3, 4]
    assert not too_many.wait(0.05)
    assert [item for item, _ in results] == list(range(5, 1000))


@pytest.mark.usefixtures("two_threads")
def test_a_result_is_freed_once_the_caller_drops_it():
    class Block:
        pass

    results = side_by_side(lambda _: Block(), range(100), CPU)
    next(results)
    dropped = [weakref.ref(next(results)[1]) for _ in range(20)]
    next(results)
    gc.collect()
    assert not [block for block in dropped if block() is not None]


@pytest.mark.usefixtures("two_threads")
def test_closing_the_iterator_cancels_waiting_batches():
    done: list[int] = []
    results = side_by_side(done.append, range(1000), CPU)
    for _ in range(5):
        next(results)
    results.close()  # pyright: ignore[reportAttributeAccessIssue]  # a generator, although its type does not say so
    assert len(done) <= 5 + AHEAD
    assert _threads_of_a_new_thread() == 2


@pytest.mark.skipif(os.name == "nt", reason="Windows sends no signal to a thread")
@pytest.mark.usefixtures("two_threads")
def test_ctrl_c_is_raised_at_once():
    done: list[int] = []

    def work(item: int) -> None:
        if item == 3:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        elif item > 3:
            time.sleep(0.001)
        done.append(item)

    with pytest.raises(KeyboardInterrupt):
        list(side_by_side(work, range(100_000), CPU))
    assert len(done) < 100_000
    assert _threads_of_a_new_thread() == 2


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("items", [0, 1, 8])
def test_few_batches_run_in_the_callers_thread(items: int):
    here = threading.current_thread().name
    ran_in = [name for _, name in side_by_side(lambda _: threading.current_thread().name, range(items), CPU)]
    assert ran_in == [here] * items


@pytest.mark.usefixtures("two_threads")
def test_where_no_cache_is_lazy_no_batch_runs_alone_and_five_are_enough():
    here = threading.current_thread().name
    meet = threading.Barrier(2, timeout=10)

    def work(item: int) -> str:
        if item < 4:
            meet.wait()  # passes only if two workers run at a time, from the first batch on
        return threading.current_thread().name

    found = list(side_by_side(work, range(5), CPU, ready=True))
    assert [item for item, _ in found] == [0, 1, 2, 3, 4]
    assert here not in {name for _, name in found}


def _threads_of_a_new_thread() -> int:
    found: list[int] = []
    thread = threading.Thread(target=lambda: found.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    return found[0]
