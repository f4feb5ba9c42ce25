"""Peak memory of this process, and of the GPU, during a block of code."""

import contextlib
import ctypes
import gc
import os
import sys
import threading
from pathlib import Path
from typing import Self, final

MIB = 1024**2
SECONDS_BETWEEN_SAMPLES = 0.02
_STATM = Path("/proc/self/statm")


@final
class PeakMemory:
    """Measure the peak memory of this process while a block runs.

    On Linux a thread samples the resident set every 20 ms. Elsewhere the value is the operating system's maximum since
    the start of the process, which never falls; `method` names the one used. The value includes Python, libraries,
    model, and everything held before the block; `memory_before_mib` of a record is the last part, and `give_back`
    keeps it small.

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

    def __exit__(self, *_: object) -> None:
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
    """Return the current resident memory of this process in MiB; where the system does not tell, its maximum so far.

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
    """Return freed memory to the operating system, where the allocator supports it (glibc).

    Otherwise the resident set of a process that opens several models in turn still counts the closed ones.

    Example:
        >>> give_back()
    """
    gc.collect()
    if sys.platform.startswith("linux"):
        # Other C libraries, such as musl, have no malloc_trim.
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).malloc_trim(0)


def gpu_peak_mib(device: str, *, reset: bool = False) -> float | None:
    """Return torch's peak memory on a CUDA device since the last reset, in MiB; None on other devices.

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
