"""Several batches at once on a CPU: small matrices keep one thread busier than all threads together.

The vectors are those of one batch after the other: a batch is computed whole by one worker. Only a few batches are
ahead of the caller, so that what it is slow to write does not pile up in memory.
"""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# Above this the interpreter's lock, held while operations are issued, eats the gain.
_MOST_WORKERS = 8

# With fewer batches a worker, some wait for the last.
_BATCHES_A_WORKER = 4

# One that a worker is at and one that waits for it; with fewer it would idle while the caller is at work.
_AHEAD_A_WORKER = 2


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], device: torch.device
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order; on a CPU several are worked on at a time, and few ahead of the caller.

    Args:
        work: called in inference mode, from several threads at once.
        items: the longest batch first: it goes alone, so what a model keeps for later is made by one thread.
        device: anything but a CPU gets one item after the other.
    """

    def in_inference(item: Item) -> Result:
        # Inference mode belongs to a thread, not to the process.
        with torch.inference_mode():
            return work(item)

    threads = torch.get_num_threads()
    workers = min(threads, _MOST_WORKERS)
    spread = device.type == "cpu" and workers > 1 and len(items) > _BATCHES_A_WORKER * workers
    alone = items[:1] if spread else items
    for item in alone:
        yield item, in_inference(item)
    if len(alone) == len(items):
        return
    coming: deque[tuple[Item, Future[Result]]] = deque()
    pool = ThreadPoolExecutor(workers, "encode", initializer=torch.set_num_threads, initargs=(threads // workers,))
    try:
        for item in items[1:]:
            coming.append((item, pool.submit(in_inference, item)))
            if len(coming) == _AHEAD_A_WORKER * workers:
                yield _first(coming)
        while coming:
            yield _first(coming)
    finally:
        pool.shutdown(cancel_futures=True)
        # A worker's setting is its own, but threads that start later would inherit it.
        torch.set_num_threads(threads)


def _first(coming: deque[tuple[Item, Future[Result]]]) -> tuple[Item, Result]:
    # A function of its own, so that no name keeps a result that the caller has dropped.
    item, future = coming.popleft()
    return item, future.result()
