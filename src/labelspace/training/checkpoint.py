"""An unfinished run on disk: weights and AdamW's state as safetensors, the rest as JSON, never a pickle.

    checkpoint/
    ├── weights.safetensors     after the last look
    ├── best.safetensors        after the best one; left out where that is the last
    ├── optimizer.safetensors   AdamW's moments and step counts
    └── state.json              looks so far, and what run this is

A look is what a loop writes down every so many updates: an evaluation, or a mean loss. No generator's state is needed:
dropout masks and the order of pairs are named child seeds of the run's seed.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from labelspace.errors import ConfigError, ModelFolderError
from labelspace.folders import check_files, fingerprints, staged

FORMAT_VERSION = 1
# The number of updates follows from the rest, and older checkpoints lack it.
MAY_DIFFER = {"max_seconds", "total_steps"}
Look = TypeVar("Look")


@final
@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """What a run needs to go on to the same bits."""

    run: dict[str, Any]
    """What run it is: its configuration under `config`, encoder, fingerprints of the pairs."""

    looks: list[dict[str, Any]]
    """The looks so far; the last one's step is where it goes on."""

    best_step: int
    """Step of the best look; the last one's where nothing is compared."""

    seconds: float
    """Wall-clock time spent so far."""

    weights: dict[str, Tensor]
    """Every weight by name."""

    best: dict[str, Tensor]
    """The same after the best evaluation."""

    optimizer: dict[str, Tensor]
    """AdamW's state, `"exp_avg:name"` and the like."""


def write_checkpoint(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint in place of the last one, in one step.

    Raises:
        OutputError: it cannot be written; the last one is unchanged.
    """
    with staged(folder) as new:
        save_file(_on_cpu(checkpoint.weights), new / "weights.safetensors")
        save_file(_on_cpu(checkpoint.optimizer), new / "optimizer.safetensors")
        if checkpoint.best_step != checkpoint.looks[-1]["step"]:
            save_file(_on_cpu(checkpoint.best), new / "best.safetensors")
        state = {
            "format": FORMAT_VERSION,
            "run": checkpoint.run,
            "looks": checkpoint.looks,
            "best_step": checkpoint.best_step,
            "seconds": checkpoint.seconds,
            "files": fingerprints(new, hashed=False),
        }
        (new / "state.json").write_text(json.dumps(state, indent=1, allow_nan=False) + "\n", encoding="utf-8")


def read_state(folder: Path) -> dict[str, Any]:
    """Read and check the JSON half of a checkpoint; needs no torch.

    Raises:
        ConfigError: there is no checkpoint.
        ModelFolderError: it is damaged, cut off or of a newer format.
    """
    path = folder / "state.json"
    if not path.is_file():
        raise ConfigError(f"{folder.parent} holds no checkpoint to go on from; start without resuming.")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        version, files = state["format"], state["files"]
        _ = (dict(state["run"]["config"]), state["looks"][-1]["step"], state["best_step"], float(state["seconds"]))
        _ = [facts["bytes"] for facts in files.values()]
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelFolderError(f"{path} is damaged ({error}); start again in another folder.") from error
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} is of format {version}, this labelspace reads up to {FORMAT_VERSION}; upgrade it."
        )
    check_files(folder, files)
    return state


def check_run(folder: Path, run: dict[str, Any]) -> None:
    """Refuse another run than the one that was interrupted, without opening its weights.

    Raises:
        ConfigError, ModelFolderError: as `read_checkpoint`.
    """
    _check_same(folder, read_state(folder)["run"], run)


def read_checkpoint(folder: Path, run: dict[str, Any]) -> Checkpoint:
    """Open a checkpoint.

    Args:
        folder: where `write_checkpoint` wrote it.
        run: what run is to go on; must be the one that was interrupted.

    Raises:
        ConfigError: there is none, or it belongs to another run; the message says what differs.
        ModelFolderError: it is damaged.
    """
    state = read_state(folder)
    _check_same(folder, state["run"], run)
    try:
        weights = load_file(folder / "weights.safetensors")
        best_file = folder / "best.safetensors"
        best = load_file(best_file) if best_file.is_file() else {name: value.clone() for name, value in weights.items()}
        optimizer = load_file(folder / "optimizer.safetensors")
    except (OSError, SafetensorError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); start again in another folder.") from error
    return Checkpoint(
        run=state["run"],
        looks=state["looks"],
        best_step=state["best_step"],
        seconds=state["seconds"],
        weights=weights,
        best=best,
        optimizer=optimizer,
    )


def looks_of(kind: type[Look], checkpoint: Checkpoint) -> list[Look]:
    """Return the looks of a checkpoint as what they were written from.

    Raises:
        ModelFolderError: one of them is not.
    """
    try:
        return [kind(**values) for values in checkpoint.looks]
    except TypeError as error:
        raise ModelFolderError(f"the checkpoint is damaged ({error}); start again in another folder.") from error


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """Return AdamW's state by the names of the weights, in the order in which it was given them."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        f"{key}:{name}": value
        for name, parameter in zip(names, parameters, strict=True)
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Put the state of `optimizer_tensors` back."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    by_name = dict(zip(names, parameters, strict=True))
    for full_name, value in tensors.items():
        key, _, name = full_name.partition(":")
        optimizer.state[by_name[name]][key] = value.to(by_name[name].device)


def _check_same(folder: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    def flat(run: dict[str, Any]) -> dict[str, Any]:
        return {**{key: value for key, value in run.items() if key != "config"}, **run["config"]}

    before, after = flat(was), flat(now)
    for name in sorted({*before, *after} - MAY_DIFFER):
        if before.get(name) != after.get(name):
            if _is_digest(after.get(name)):  # two of them would say nothing
                raise ConfigError(
                    f"the run in {folder.parent} had other {name}; resume with the same, or start in another folder."
                )
            raise ConfigError(
                f"the run in {folder.parent} had {name} {before.get(name)!r}. Got {after.get(name)!r} instead; "
                "resume with the same data and options, or start in another folder."
            )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 40 and not set(value) - set("0123456789abcdef")


def _on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
