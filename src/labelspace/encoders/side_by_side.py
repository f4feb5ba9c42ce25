"""Several batches at once on a CPU: small matrices keep one thread busier than all threads together.

The vectors are those of one batch after the other: a batch is computed whole by one worker.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import torch

Item = TypeVar("Item")
Result = TypeVar("Result")

# Above this the interpreter's lock, held while operations are issued, eats the gain.
_MOST_WORKERS = 8

# With fewer batches a worker, some wait for the last.
_BATCHES_A_WORKER = 4


def side_by_side(
    work: Callable[[Item], Result], items: Sequence[Item], device: torch.device
) -> Iterator[tuple[Item, Result]]:
    """Yield each item with its result, in order; on a CPU several are worked on at a time.

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
    rest = items[1:]
    pool = ThreadPoolExecutor(workers, "encode", initializer=torch.set_num_threads, initargs=(threads // workers,))
    try:
        yield from zip(rest, pool.map(in_inference, rest), strict=True)
    finally:
        pool.shutdown(cancel_futures=True)
        # A worker's setting is its own, but threads that start later would inherit it.
        torch.set_num_threads(threads)
