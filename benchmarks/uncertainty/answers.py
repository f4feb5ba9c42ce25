"""What main's runs answered, row by row: kept beside the results and not in them, for part `compared`."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file, save_file

from uncertainty.settings import Settings


class Answers(NamedTuple):
    """Of one run, for each test row."""

    right: NDArray[np.bool_]
    entropy: NDArray[np.float64]
    uncertainty: NDArray[np.float64]
    """All 0: the run has none."""


def place(settings: Settings, name: str, variant: str, seed: int) -> Path:
    """Return the file of a run; another protocol has another table, and so another folder."""
    return settings.answers / settings.out.stem / f"{settings.short}_{name}_{variant}_seed{seed}.safetensors"


def keep(settings: Settings, name: str, variant: str, seed: int, answers: Answers) -> None:
    """Keep what a run answered."""
    path = place(settings, name, variant, seed)
    path.parent.mkdir(parents=True, exist_ok=True)
    save_file(answers._asdict(), path)


def kept(settings: Settings, name: str, variant: str, seed: int) -> Answers:
    """Return what a run answered.

    Raises:
        FileNotFoundError: the run was made elsewhere, or its answers were removed.
    """
    path = place(settings, name, variant, seed)
    if not path.exists():
        raise FileNotFoundError(f"{path} is not there; answers are kept where part main ran, so run that again here.")
    return Answers(**load_file(path))
