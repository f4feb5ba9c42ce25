"""Provenance of results: code, versions, machine, seeds, data. No result file is written without it."""

import contextlib
import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from labelspace.errors import ConfigError
from labelspace.folders import write_atomically
from labelspace.shell import command_line
from labelspace.version import __version__

PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")
REQUIRED = ("labelspace", "commit", "versions", "hardware", "seeds", "data", "date", "command")


def provenance(
    *, seeds: int | Sequence[int] | None = None, data: Any = None, dtype: str | None = None
) -> dict[str, Any]:
    """Return the provenance of a result made now by this process.

    Args:
        seeds: seeds of the run or runs; None: nothing was random.
        data: the documents: a name with its revision, a fingerprint, and the source of the unlabelled pool.
        dtype: dtype of the encoder; None: the choice of `"auto"` on this machine.

    Returns:
        Plain values, ready for JSON. `commit` is as in `source_commit`.

    Example:
        >>> found = provenance(seeds=0, data="agnews, test split, revision eb185aa")
        >>> found["seeds"], found["data"], sorted(found["versions"])[:3]
        ([0], 'agnews, test split, revision eb185aa', ['numpy', 'python', 'scikit-learn'])
    """
    import torch

    from labelspace.encoders.precision import choose_device, choose_dtype

    if dtype is None:
        dtype = str(choose_dtype("auto", choose_device("auto"))).removeprefix("torch.")
    return {
        "labelspace": __version__,
        "commit": source_commit(),
        "versions": {"python": platform.python_version(), **{name: metadata.version(name) for name in PACKAGES}},
        "hardware": {
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": _cores(),
            "memory_gib": _memory_gib(),
            "accelerator": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
            "torch_threads": torch.get_num_threads(),
            "dtype": dtype,
        },
        "seeds": [] if seeds is None else [seeds] if isinstance(seeds, int) else list(seeds),
        "data": data,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command_line(_program(), *sys.argv[1:]),
    }


def _program() -> str:
    """Return the program's name without its path, because result files are shared with other machines."""
    called = Path(sys.argv[0])
    return "labelspace" if called.name == "__main__.py" and called.parent.name == "labelspace" else called.name


def source_commit(folder: Path | None = None) -> str | None:
    """Return the commit of the checkout that labelspace runs from, with `-dirty` if its code was changed since.

    Args:
        folder: folder of the package; None: the imported one.

    Returns:
        None if the package is not in `src/` of a git checkout, or git is not available.
    """
    package = (folder or Path(__file__).parents[1]).resolve()
    root = package.parents[1]
    # The checkout must be the package's own: an environment inside another project's checkout is not our source.
    top = _git(root, "rev-parse", "--show-toplevel")
    if package.parent.name != "src" or top is None or Path(top.strip()).resolve() != root:
        return None
    commit = _git(root, "rev-parse", "HEAD")
    # Untracked files count only if they could be code: a new result file is no change of the code.
    changed = _git(root, "status", "--porcelain", "--untracked-files=all")
    if commit is None or changed is None:
        return None
    dirty = any(_could_be_code(line) for line in changed.splitlines())
    return commit.strip() + ("-dirty" if dirty else "")


def _could_be_code(line: str) -> bool:
    # `line` is one of git status. Changed or removed result files are no change of the code.
    path = line[3:].removeprefix('"')
    if line.startswith("?? "):
        return path.startswith("src/")
    return not path.startswith("benchmarks/results/")


def write_result(path: str | Path, result: Mapping[str, Any], *, provenance: Mapping[str, Any] | None = None) -> Path:
    """Write a result with its provenance as JSON, atomically: a killed write leaves the old file or the new one.

    Args:
        path: the file; an existing one is replaced.
        result: plain values.
        provenance: result of `provenance()`, written under the key `"provenance"`.

    Returns:
        The file.

    Raises:
        ConfigError: provenance is missing or lacks an entry, or the result is not plain finite values.
        OutputError: the file cannot be written; an existing one is unchanged.

    Example:
        >>> write_result("f1.json", {"macro_f1": 0.87})
        Traceback (most recent call last):
        labelspace.errors.ConfigError: f1.json: a result is not written without its provenance; pass provenance().
    """
    if not isinstance(provenance, Mapping):
        raise ConfigError(f"{path}: a result is not written without its provenance; pass provenance().")
    missing = [key for key in REQUIRED if key not in provenance]
    if missing:
        raise ConfigError(f"{path}: the provenance lacks {', '.join(missing)}; pass provenance().")
    try:
        text = json.dumps({**result, "provenance": dict(provenance)}, indent=2, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigError(f"{path}: the result is not plain finite values ({error}); convert them first.") from error
    return write_atomically(path, (text + "\n").encode())


def _git(folder: Path, *words: str) -> str | None:
    # Read-only: without optional locks git does not even refresh its index.
    command = ["git", "--no-optional-locks", "-C", str(folder), *words]
    try:
        done = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout if done.returncode == 0 else None


def _processor() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1024**3, 1)
    except (AttributeError, ValueError, OSError):
        return None
