"""Peak memory of a process while something runs."""

import contextlib
import ctypes
import gc
import os
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self, final

MIB = 1024**2
SECONDS_BETWEEN_SAMPLES = 0.02
_STATM = Path("/proc/self/statm")


@final
class PeakMemory:
    """Measures the most memory that this process held while a block ran.

    On Linux a thread samples the resident set every 20 ms. Elsewhere it is the operating system's own maximum, which
    counts from the start of the process and never falls; `method` says which one it was. It is all that the process
    holds: Python, libraries and model, and whatever was there before (`memory_before_mib` of a record says how much;
    `give_back` makes that little).

    Example:
        >>> with PeakMemory() as peak:
        ...     held = bytearray(32 * 1024**2)
        >>> peak.mib > 32
        True
    """

    def __init__(self) -> None:
        self.mib = 0.0
        self.method = "resident set, sampled every 20 ms" if _STATM.exists() else "ru_maxrss since the process began"
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._look()
        if _STATM.exists():
            self._thread = threading.Thread(target=self._watch, name="peak memory", daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        self._look()

    def _watch(self) -> None:
        while not self._end.wait(SECONDS_BETWEEN_SAMPLES):
            self._look()

    def _look(self) -> None:
        self.mib = max(self.mib, resident_mib())


def resident_mib() -> float:
    """Return the memory that this process holds now, in MiB; where nobody tells, the most it ever held.

    Example:
        >>> resident_mib() > 1
        True
    """
    with contextlib.suppress(OSError, ValueError, IndexError):
        pages = int(_STATM.read_text(encoding="ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / MIB
    try:
        import resource
    except ImportError:  # Windows
        return 0.0
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most / MIB if sys.platform == "darwin" else most / 1024


def give_back() -> None:
    """Return the memory of objects that are gone to the system, where it can be told to take it (glibc).

    Without this the resident set of a process that opens models one after another counts those that it has closed.

    Example:
        >>> give_back()
    """
    gc.collect()
    if sys.platform.startswith("linux"):
        # Other libraries than glibc, such as musl, have no malloc_trim.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def gpu_peak_mib(device: str, *, reset: bool = False) -> float | None:
    """Return the most memory that torch held on a CUDA device since the last reset, in MiB; None elsewhere.

    Example:
        >>> gpu_peak_mib("cpu") is None
        True
    """
    if not device.startswith(("cuda", "auto")):
        return None
    import torch

    if not torch.cuda.is_available():
        return None
    if reset:
        torch.cuda.reset_peak_memory_stats()
    return torch.cuda.max_memory_allocated() / MIB
