"""Peak memory is the most that the process held during the block, even if it was freed before the end."""

import ctypes
import gc
import sys

import numpy as np
import pytest

from labelspace.bench import memory
from labelspace.bench.memory import PeakMemory, give_back, gpu_peak_mib, resident_mib


@pytest.mark.skipif(not memory._STATM.exists(), reason="samples /proc")
def test_memory_freed_before_the_end_counts_in_the_peak():
    import time

    before = resident_mib()
    with PeakMemory() as peak:
        held = np.ones(100 * 1024**2, dtype=np.uint8)
        time.sleep(0.1)
        del held
    assert peak.mib > before + 90
    assert "sampled" in peak.method


def test_without_proc_the_systems_maximum_is_used(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "_STATM", tmp_path / "none")
    with PeakMemory() as peak:
        pass
    assert peak.mib > 1
    assert "ru_maxrss" in peak.method


def test_an_error_in_the_block_stops_the_sampling():
    with pytest.raises(KeyError), PeakMemory() as peak:
        raise KeyError
    assert peak._thread is None or not peak._thread.is_alive()


def test_there_is_no_gpu_memory_on_a_cpu():
    assert gpu_peak_mib("cpu") is None


def _has_malloc_trim() -> bool:
    return sys.platform.startswith("linux") and hasattr(ctypes.CDLL(None), "malloc_trim")


@pytest.mark.slow
@pytest.mark.skipif(not _has_malloc_trim(), reason="needs glibc")
def test_memory_of_freed_objects_is_returned():
    pieces = [bytes(4096) for _ in range(30_000)]
    pin = bytes(4096)  # above them in the heap, so that the heap cannot shrink by itself
    del pieces
    gc.collect()
    before = resident_mib()
    give_back()
    assert resident_mib() < before - 60
    assert pin


def test_without_glibc_give_back_does_nothing(monkeypatch):
    class Library:
        pass

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library())
    give_back()
