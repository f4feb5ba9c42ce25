"""Run the fast tests as another processor would.

    python tests/processors.py             # every setting but "native"
    python tests/processors.py today       # one setting or "native", chosen by the day of the year
    python tests/processors.py avx2        # the named setting

Each setting restricts torch, oneDNN, MKL, OpenBLAS and numpy to the kernels of a lesser processor, or changes the
number of threads. Below AVX-512, nothing computes in bfloat16 by default.
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
# Two test processes of two threads share two cores; a thread that spins while waiting would slow the other.
ONE, TWO = {"OMP_NUM_THREADS": "1"}, {"OMP_NUM_THREADS": "2", "GOMP_SPINCOUNT": "0"}

SETTINGS = {
    "native": (ONE, ()),
    "plain": ({**PLAIN, **ONE}, ("",)),
    "avx2": ({**AVX2, **ONE}, ("AVX512", "V4")),
    "two-threads": (TWO, ()),
    "avx2-two-threads": ({**AVX2, **TWO}, ("AVX512", "V4")),
}
"""By name: environment variables, and the parts of names by which numpy's features are turned off."""


def disabled(parts: tuple[str, ...]) -> str:
    """Return the numpy features to turn off; numpy refuses features that the processor lacks."""
    from numpy._core import _multiarray_umath as numpy_core  # pyright: ignore[reportMissingImports]

    known = numpy_core.__cpu_dispatch__
    return " ".join(name for name in known if numpy_core.__cpu_features__[name] and any(part in name for part in parts))


def todays() -> str:
    """Return today's setting."""
    return list(SETTINGS)[datetime.date.today().timetuple().tm_yday % len(SETTINGS)]


def run(name: str) -> bool:
    """Run the fast tests under one setting; return whether they passed."""
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
    """Run the requested settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setting", nargs="?", choices=[*SETTINGS, "today", "all"], default="all")
    asked = parser.parse_args().setting
    names = list(SETTINGS)[1:] if asked == "all" else [todays() if asked == "today" else asked]
    green = [run(name) for name in names]  # run all of them, even after a failure
    return 0 if all(green) else 1


if __name__ == "__main__":
    raise SystemExit(main())
