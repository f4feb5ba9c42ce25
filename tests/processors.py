"""The fast tests again, as another processor would run them.

    python tests/processors.py             # every setting
    python tests/processors.py today       # the one whose turn it is, by the day of the year
    python tests/processors.py avx2        # that one

Each setting holds torch, oneDNN, MKL, OpenBLAS and numpy to the kernels of a lesser processor, or gives them another
number of threads. Held to less than AVX-512 nothing computes in bfloat16 unless asked.
"""

import argparse
import datetime
import os
import subprocess
import sys
import time

FAST = ["-m", "pytest", "-q", "-n", "2", "-p", "no:cacheprovider", "-m", "not slow"]
WHAT = ["tests", "src", "--doctest-modules"]

AVX2 = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    "OPENBLAS_CORETYPE": "Haswell",
}
PLAIN = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Prescott",
}
# Two test processes of two threads share two cores: a thread that spins while it waits takes the other's time.
ONE, TWO = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "0"}

SETTINGS = {
    "plain": ({**PLAIN, **ONE}, ("",)),
    "avx2": ({**AVX2, **ONE}, ("AVX512", "V4")),
    "two-threads": (TWO, ()),
    "avx2-two-threads": ({**AVX2, **TWO}, ("AVX512", "V4")),
}
"""By name: environment variables, and what the names of numpy's features that are switched off hold."""


def disabled(parts: tuple[str, ...]) -> str:
    """Return which of numpy's features to switch off; it refuses to hear of one that the processor has not."""
    from numpy._core import _multiarray_umath as numpy_core  # pyright: ignore[reportMissingImports]

    known = numpy_core.__cpu_dispatch__
    return " ".join(name for name in known if numpy_core.__cpu_features__[name] and any(part in name for part in parts))


def todays() -> str:
    """Return the setting whose turn it is."""
    return list(SETTINGS)[datetime.date.today().timetuple().tm_yday % len(SETTINGS)]


def run(name: str) -> bool:
    """Run the fast tests under one setting; true where they are green."""
    variables, features = SETTINGS[name]
    environment = {**os.environ, **variables}
    if switched_off := disabled(features):
        environment["NPY_DISABLE_CPU_FEATURES"] = switched_off
    print(f"== {name}: {' '.join(f'{key}={environment[key]}' for key in environment if key not in os.environ)}")
    sys.stdout.flush()
    started = time.perf_counter()
    done = subprocess.run([sys.executable, *FAST, *WHAT], env=environment, check=False)
    print(f"== {name}: {'green' if not done.returncode else 'RED'} in {time.perf_counter() - started:.0f} s")
    return not done.returncode


def main() -> int:
    """Run what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", nargs="?", choices=[*SETTINGS, "today", "all"], default="all")
    asked = parser.parse_args().setting
    names = list(SETTINGS) if asked == "all" else [todays() if asked == "today" else asked]
    green = [run(name) for name in names]  # all of them, also after a red one
    return 0 if all(green) else 1


if __name__ == "__main__":
    raise SystemExit(main())
