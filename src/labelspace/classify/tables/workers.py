"""Chunks of documents answered by several processes on one machine, in the order in which they came.

    this process     reads chunks      sends documents to a worker     gets the columns of their answers
    a worker         opens the model from a temporary folder, once; reads and writes no other file

Only a few chunks are on the way at any time, so memory does not grow with the input. Workers are started anew rather
than forked, because torch's threads do not survive a fork. They end with this process, however it ends.
"""

import contextlib
import multiprocessing
import os
import shutil
import signal
import sys
import tempfile
import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pyarrow as pa

from labelspace.classify.fitted import Fitted
from labelspace.classify.saved.opening import open_to_answer
from labelspace.classify.saved.saving import MEMBERS
from labelspace.classify.tables.columns import answer_columns
from labelspace.corpus import Documents
from labelspace.encoders.resolve import check_remote_code
from labelspace.errors import RemoteCodeError

_AHEAD_A_WORKER = 2  # one chunk in progress and one waiting; with fewer, a worker would idle while this process reads

Columns = list[pa.Array]


def answered(
    model: Fitted,
    chunks: Iterable[tuple[pa.RecordBatch, Documents]],
    schema: pa.Schema,
    *,
    workers: int,
    all_scores: bool,
    top: int | None,
) -> Generator[tuple[pa.RecordBatch, Columns]]:
    """Yield each chunk with the columns of its answers, in the order of the chunks; close it to end the workers.

    Args:
        model: a fitted classifier; for more than one worker it is one that can be saved.
        chunks: rows with their documents, read only a few ahead.
        schema: of the rows with their answers, from `output_schema`.
        workers: processes; 1 answers in this one.
        all_scores: as for `predict_file`.
        top: as for `predict_file`.

    Raises:
        BrokenProcessPool: a worker ended before its work was done.
    """
    how: Any = {"schema": schema, "all_scores": all_scores, "top": top}
    if workers == 1:
        for batch, documents in chunks:
            yield batch, answer_columns(model, documents, **how)
        return
    coming: deque[tuple[pa.RecordBatch, Future[Columns]]] = deque()
    with contextlib.closing(_Pool(model, workers, how)) as pool:
        for batch, documents in chunks:
            coming.append((batch, pool.submit(documents)))
            if len(coming) == _AHEAD_A_WORKER * workers:
                yield _first(coming)
        while coming:
            yield _first(coming)


def _first(coming: deque[tuple[pa.RecordBatch, Future[Columns]]]) -> tuple[pa.RecordBatch, Columns]:
    # A separate function, so that no local name keeps a chunk that the caller has dropped.
    batch, future = coming.popleft()
    return batch, future.result()


class _Pool:
    """Processes that answer documents, and the folder from which they open the model."""

    def __init__(self, model: Any, workers: int, how: dict[str, Any]) -> None:
        self._scratch = tempfile.TemporaryDirectory(prefix="labelspace-workers-", ignore_cleanup_errors=True)
        folder = model.save(Path(self._scratch.name) / "model")
        torch: Any = sys.modules.get("torch")  # a model of words needs none
        threads = max(1, torch.get_num_threads() // workers) if torch is not None else 1
        if os.name == "nt":
            workers = min(workers, 61)  # the most processes that Windows waits for
        self._task = (str(folder), _runs_own_code(folder), threads, how)
        context = multiprocessing.get_context("spawn")
        # Nothing is sent: the pipe closes when this process ends, even by kill -9, and that ends the workers.
        end, self._leash = context.Pipe(duplex=False)
        self._pool = ProcessPoolExecutor(workers, context, initializer=_begin, initargs=(end, self._scratch.name))

    def submit(self, documents: Documents) -> Future[Columns]:
        with _ctrl_c_later():  # a process started now would inherit it, and print a traceback at Ctrl-C
            return self._pool.submit(_answer, *self._task, documents)

    def close(self) -> None:
        self._leash.close()
        self._pool.shutdown(cancel_futures=True)
        self._scratch.cleanup()


def _begin(leash: Connection, scratch: str) -> None:
    """Set up a worker: Ctrl-C is the parent's affair, and a worker ends with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def end_with_parent() -> None:
        with contextlib.suppress(EOFError, OSError):
            leash.recv()
        shutil.rmtree(scratch, ignore_errors=True)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=end_with_parent, daemon=True).start()


def _answer(folder: str, own_code: bool, threads: int, how: dict[str, Any], documents: Documents) -> Columns:
    return answer_columns(_opened(folder, own_code, threads), documents, **how)


@cache
def _opened(folder: str, own_code: bool, threads: int) -> Fitted:
    model = open_to_answer(folder, trust_remote_code=own_code)
    torch: Any = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(threads)
    return model


def _runs_own_code(folder: Path) -> bool:
    """Return whether a model's encoder has code of its own, which runs in this process already: it was allowed."""
    try:
        for part in (folder, *(folder / MEMBERS).glob("*")):
            check_remote_code(part, False)
    except RemoteCodeError:
        return True
    return False


@contextlib.contextmanager
def _ctrl_c_later() -> Iterator[None]:
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
