"""Row-by-row answers of main's runs, stored outside the results, for part `compared`."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from uncertainty.settings import Settings


class Answers(NamedTuple):
    """Answers of one run, one entry per test row."""

    right: NDArray[np.bool_]
    entropy: NDArray[np.float64]
    uncertainty: NDArray[np.float64]
    """Uncertainty; all 0 if the run has none."""


def place(settings: Settings, name: str, variant: str, seed: int) -> Path:
    """Return the file of a run; each protocol has its own table, and so its own folder."""
    return settings.answers / settings.out.stem / f"{settings.short}_{name}_{variant}_seed{seed}.safetensors"


def keep(settings: Settings, name: str, variant: str, seed: int, answers: Answers) -> None:
    """Store the answers of a run."""
    path = place(settings, name, variant, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(answers._asdict(), path)


def kept(settings: Settings, name: str, variant: str, seed: int) -> Answers:
    """Load the answers of a run.

    Raises:
        FileNotFoundError: the run was made on another machine, or its answers were removed.
    """
    path = place(settings, name, variant, seed)
    if not path.exists():
        raise FileNotFoundError(
            f"there is no {path}: answers stay on the machine that ran part main; run it again here."
        )
    return Answers(**load_file(path))
