"""Several batches at once on a CPU: small matrices use one thread each better than all threads together.

Each batch is computed by one worker with its share of the threads. Only a few batches are computed ahead of the caller,
so results do not pile up in memory when the caller is slow.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# With more workers, waiting for the interpreter lock costs more than the extra thread gains.
_MOST_WORKERS = 8

# With fewer batches per worker, some workers idle while the last batch runs, and the first one runs alone.
_BATCHES_A_WORKER = 4
_READY_BATCHES_A_WORKER = 2

# One batch in progress and one queued; with fewer, a worker would idle while the caller is busy.
_AHEAD_A_WORKER = 2


def side_by_side(
    work: Callable[[Item], Result],
    items: Sequence[Item],
    device: torch.device,
    *,
    ready: bool = False,
    alike: bool = False,
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order; on a CPU, process several at once, a few ahead of the caller.

    Args:
        work: called in inference mode, from several threads at once.
        items: longest batch first. It runs alone, so that one thread fills the model's lazy caches.
        device: any device but a CPU processes one item at a time.
        ready: True where the model has no lazy caches, so that the first batch needs not run alone.
        alike: True gives every item the threads of one worker, however many items there are. By default a few items
            take all threads, one after another, and the number of threads can change the last bits of a result.
    """

    def in_inference(item: Item) -> Result:
        # Inference mode is a thread's setting, not the process's.
        with torch.inference_mode():
            return work(item)

    threads = torch.get_num_threads()
    workers = min(threads, _MOST_WORKERS)
    enough = _READY_BATCHES_A_WORKER if ready else _BATCHES_A_WORKER
    spread = device.type == "cpu" and workers > 1 and (alike or len(items) > enough * workers)
    alone = items[: 0 if ready or alike else 1] if spread else items
    for item in alone:
        yield item, in_inference(item)
    if len(alone) == len(items):
        return
    coming: deque[tuple[Item, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(workers, "encode", initializer=torch.set_num_threads, initargs=(threads // workers,))
    try:
        for item in items[len(alone) :]:
            coming.append((item, pool.submit(in_inference, item)))
            if len(coming) == _AHEAD_A_WORKER * workers or not (ready or alone):
                yield _first(coming)
                ready = True
        while coming:
            yield _first(coming)
    finally:
        pool.shutdown(cancel_futures=True)
        # The setting is per thread, but threads started later would inherit the worker's.
        torch.set_num_threads(threads)


def _first(coming: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    # A separate function, so that no local name keeps a result the caller has dropped.
    item, future = coming.popleft()
    return item, future.result()
