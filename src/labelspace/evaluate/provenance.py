"""Where a number comes from: without that it is not written down."""

import datetime
import importlib.metadata
import json
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from labelspace import __version__
from labelspace.errors import ConfigError, OutputError

PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


def provenance(*, seeds: Sequence[int], data: str) -> dict[str, Any]:
    """Collect commit, versions, hardware, seeds and data of a result made here and now.

    Args:
        seeds: the seeds that the result depends on; none where nothing is random.
        data: which documents it was measured on, or where the unlabelled pool came from.

    Returns:
        Plain values, ready for JSON.

    Example:
        >>> sorted(provenance(seeds=[0], data="a list"))[:4]
        ['command', 'commit', 'data', 'date']
    """
    import torch

    return {
        "labelspace": __version__,
        "commit": _commit(),
        "versions": {
            "python": platform.python_version(),
            **{package: importlib.metadata.version(package) for package in PACKAGES},
        },
        "hardware": {
            "platform": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "memory_gib": _memory_gib(),
            "gpu": torch.cuda.get_device_name(0) if torch.cuda.is_available() else None,
            "threads": torch.get_num_threads(),
        },
        "seeds": list(seeds),
        "data": data,
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
    }


def write_result(path: str | Path, result: dict[str, Any], *, provenance: dict[str, Any]) -> None:
    """Write a result as JSON, whole or not at all.

    Args:
        path: the file; its folder is made.
        result: plain values.
        provenance: from `provenance`.

    Raises:
        ConfigError: without provenance.
        OutputError: the file cannot be written.
    """
    if not provenance.get("versions") or "commit" not in provenance:
        raise ConfigError("a result needs its provenance; pass what labelspace.evaluate.provenance returns.")
    path = Path(path)
    text = json.dumps({**result, "provenance": provenance}, indent=2, ensure_ascii=False) + "\n"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError as error:
        raise OutputError(f"{path} cannot be written ({error.strerror}).") from error


def _commit() -> str | None:
    """The commit of the checkout that this package runs from, marked when it was changed since."""
    here = Path(__file__).resolve().parent

    def git(*arguments: str) -> str:
        command = ["git", "-C", str(here), *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()

    try:
        commit = git("rev-parse", "HEAD")
        return f"{commit}-dirty" if git("status", "--porcelain", "--untracked-files=no", "--", ".") else commit
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _memory_gib() -> float | None:
    try:
        return round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        return None
