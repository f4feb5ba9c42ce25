"""Requests of many clients in one run of the encoder: a bounded queue, and one worker that takes what waits."""

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from labelspace.config.serving import ServingConfig

CHARACTERS_PER_TOKEN = 4


class BusyError(Exception):
    """As many texts wait as may wait; the message says how many, the request may come again."""


@final
@dataclass(frozen=True, eq=False)
class Job:
    """What one request wants of one model."""

    model: Any
    """Jobs of the same model are worked on together."""

    documents: Sequence[Any]
    """Texts, or pairs of texts."""

    asked: Any
    """What is asked of the documents."""

    future: "asyncio.Future[Any]"
    """Gets the result, or the error."""

    label_texts: Sequence[tuple[str, str]] = ()
    """Role and text of options whose vectors are wanted, in place of documents."""

    @property
    def size(self) -> int:
        """Number of texts to encode."""
        return len(self.documents) + len(self.label_texts)

    @property
    def tokens(self) -> int:
        """How many tokens there are, roughly."""
        texts = [*map(_parts, self.documents), *((text,) for _, text in self.label_texts)]
        return sum(2 + sum(map(len, parts)) // CHARACTERS_PER_TOKEN for parts in texts)


def _parts(document: Any) -> Sequence[str]:
    return document if isinstance(document, tuple) else (document,)


@final
class Batcher:
    """The queue of jobs and the thread that works on them.

    A worker that is free takes what waits at once, so a single client never waits for others. Where the last run
    served several clients, it first waits a few milliseconds for the next ones: their answers have only just left.

    Args:
        work: gets jobs of one model, and returns the result of each.
        config: how many texts may wait, and how many tokens go together.
        seen: called with the number of documents of each run.
    """

    def __init__(
        self,
        work: Callable[[Sequence[Job]], Sequence[Any]],
        config: ServingConfig,
        seen: Callable[[int], object],
    ) -> None:
        self.config = config
        self._work, self._seen = work, seen
        self._jobs: deque[Job] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closed = self._several = False
        self._loop: Any = None
        self._thread = threading.Thread(target=self._run, name="labelspace-encoder", daemon=True)

    def start(self) -> None:
        """Start the worker, for the running event loop."""
        self._loop = asyncio.get_running_loop()
        self._thread.start()

    @property
    def waiting(self) -> int:
        """Number of texts that wait."""
        return self._waiting

    async def submit(
        self, model: Any, documents: Sequence[Any], asked: Any, label_texts: Sequence[tuple[str, str]] = ()
    ) -> Any:
        """Return the result for some documents, or texts of options; a cancelled caller costs no run of the encoder.

        Raises:
            BusyError: too many documents wait.
        """
        job = Job(model, documents, asked, self._loop.create_future(), label_texts)
        with self._changed:
            if self._waiting and self._waiting + job.size > self.config.max_waiting:
                raise BusyError(f"{self._waiting:,} texts wait already; try again in a second.")
            self._jobs.append(job)
            self._waiting += job.size
            self._changed.notify()
        try:
            return await job.future
        finally:
            self._forget(job)

    def _forget(self, job: Job) -> None:
        """Take a job out of the queue whose client has gone before its turn, and give its place to others."""
        if job.future.cancelled():
            with self._changed:
                if job in self._jobs:
                    self._jobs.remove(job)
                    self._waiting -= job.size

    def close(self) -> None:
        """Finish what waits, then end the worker."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        while batch := self._take():
            results = self._results(batch)
            if documents := sum(len(job.documents) for job in batch):
                self._seen(documents)  # first: who has an answer finds it counted
            self._loop.call_soon_threadsafe(_deliver, batch, results)

    def _take(self) -> list[Job]:
        """Wait for jobs; return those of the first one's model, up to the budget. None are left: the service ends."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._jobs or self._closed)
                if self._several and not self._closed:
                    self._gather()
                batch = self._pop()
                if batch or self._closed:
                    break
        self._several = len(batch) > 1
        return batch

    def _gather(self) -> None:
        """Wait a little for more, until the budget is full."""
        until = time.monotonic() + self.config.wait
        while (left := until - time.monotonic()) > 0 and sum(job.tokens for job in self._jobs) < self.config.together:
            if not self._changed.wait(left):
                break

    def _pop(self) -> list[Job]:
        batch: list[Job] = []
        others: deque[Job] = deque()
        budget = self.config.together
        while self._jobs:
            job = self._jobs.popleft()
            if batch and job.model is not batch[0].model:
                others.append(job)
            elif batch and job.tokens > budget:
                self._jobs.appendleft(job)
                break
            else:
                batch.append(job)
                budget -= job.tokens
                self._waiting -= job.size
        self._jobs.extendleft(reversed(others))
        return batch

    def _results(self, batch: Sequence[Job]) -> Sequence[Any]:
        """Return the result or the error of each job; a job that fails fails alone."""
        try:
            return self._work(batch)
        except Exception as error:  # noqa: BLE001 (whatever it is, the client learns of it, and the worker goes on)
            if len(batch) == 1:
                return [error]
            return [self._results([job])[0] for job in batch]


def _deliver(batch: Sequence[Job], results: Sequence[Any]) -> None:
    for job, result in zip(batch, results, strict=True):
        if job.future.done():  # its client has gone
            continue
        if isinstance(result, Exception):
            job.future.set_exception(result)
        else:
            job.future.set_result(result)
