"""Checkpoints of unfinished training: weights and AdamW state as safetensors, the rest as JSON, never a pickle.

    <place>/weights.safetensors     current weights
    <place>/best.safetensors        kept weights; omitted if they are the current ones
    <place>/optimizer.safetensors   AdamW's moments and step counts
    <place>/progress.safetensors    the loss of every update, and the state of a generator if there is one
    <place>/state.json              looks so far, and the identity of the run

Checkpoints are written at looks: a look is an evaluation, or a mean of recent losses. Dropout masks and the order of
rows need no state, because they come from named child seeds of the run's seed.
"""

import hashlib
import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, final

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.encoders.identity import encoder_hash
from labelspace.errors import ConfigError, ModelFolderError, OutputError
from labelspace.folders import check_files, fingerprints, staged, write_atomically

FORMAT = 3

FIT_PARTS = ("descriptions", "rows", "student")
RATE = "rate"
"""The work before the updates whose result `remembered` keeps."""

# Options that may change on resume. `total_steps` follows from the rest.
MAY_DIFFER = {"max_seconds", "total_steps"}


@final
@dataclass(frozen=True, kw_only=True)
class Checkpoint:
    """Everything a run needs to resume with bit-identical results."""

    step: int
    """Number of updates made."""

    looks: list[dict[str, Any]]
    """The looks so far."""

    losses: Sequence[float]
    """The loss of every update."""

    best_step: int
    """Number of updates that the kept weights had received."""

    seconds: float
    """Wall-clock time spent so far, in seconds."""

    weights: dict[str, Tensor]
    """Current weights by name."""

    best: dict[str, Tensor]
    """Kept weights by name."""

    optimizer: dict[str, Tensor]
    """AdamW's state, `"exp_avg:name"` and the like."""

    noise: Tensor | None = None
    """State of a generator that is shared by all updates."""


@final
@dataclass(frozen=True)
class Place:
    """Location of a run's checkpoint, and identity of the run."""

    folder: Path
    """The checkpoint's folder, replaced as a whole at each write."""

    run: dict[str, Any]
    """What decides the run: its configuration under `config`, and fingerprints of encoder and data."""

    resume: bool = False
    """True resumes from the checkpoint, which must exist."""

    def __post_init__(self) -> None:
        # A write replaces the folder as a whole, so refuse one that a user keeps other things in.
        if self.folder.is_dir() and not begun(self.folder) and any(self.folder.iterdir()):
            raise OutputError(
                f"{self.folder} holds something else than a checkpoint; give another place for checkpoints."
            )

    @classmethod
    def of_fit(cls, folder: str | Path | None, part: str, encoder: Encoder, **run: Any) -> Self | None:
        """Return the place of one part of a fit, set to resume if it holds a checkpoint; None without a folder.

        Args:
            folder: common folder of all parts.
            part: `"descriptions"` or `"rows"`.
            encoder: the encoder before training.
            run: everything else that decides the run.

        Raises:
            ConfigError: the checkpoint belongs to another run, or `folder` is not a folder name.
            ModelFolderError: the checkpoint is damaged.
            OutputError: `folder` is a file, or is not writable, or the part's folder in it holds something else.
        """
        if folder is None:
            return None
        if not isinstance(folder, (str, Path)) or folder == "" or "\0" in str(folder):
            raise ConfigError(f"checkpoint must be a folder or None. Got {folder!r} instead.")
        place = _writable(Path(folder).expanduser()) / part
        made = cls(place, {**run, "encoder": encoder_hash(encoder)}, begun(place))
        if made.resume:
            made.check()
        return made

    def check(self) -> None:
        """Refuse the checkpoint of another run, without reading its weights.

        Raises:
            ConfigError, ModelFolderError: as `read`.
        """
        state = read_state(self.folder)
        _check_same(self.folder.parent, state["run"], self.run)

    def read(self) -> Checkpoint:
        """Read the checkpoint.

        Raises:
            ConfigError: there is none, or it belongs to another run; the message says what differs.
            ModelFolderError: it is damaged.
        """
        self.check()
        state = read_state(self.folder)
        try:
            weights = load_file(self.folder / "weights.safetensors")
            best_file = self.folder / "best.safetensors"
            best = load_file(best_file) if best_file.is_file() else weights
            optimizer = load_file(self.folder / "optimizer.safetensors")
            progress = load_file(self.folder / "progress.safetensors")
        except (OSError, SafetensorError) as error:
            raise ModelFolderError(f"{self.folder} cannot be read ({error}); start again in another folder.") from error
        return Checkpoint(
            step=state["step"],
            looks=state["looks"],
            losses=progress["losses"].tolist(),
            best_step=state["best_step"],
            seconds=state["seconds"],
            weights=weights,
            best=best,
            optimizer=optimizer,
            noise=progress.get("noise"),
        )

    def write(self, state: Checkpoint, *, total_steps: int) -> None:
        """Replace the previous checkpoint in one atomic step.

        Raises:
            OutputError: it cannot be written; the previous one is unchanged.
        """
        progress = {"losses": torch.tensor(state.losses, dtype=torch.float64)}
        if state.noise is not None:
            progress["noise"] = state.noise
        facts = {
            "format": FORMAT,
            "run": {**self.run, "total_steps": total_steps},
            "step": state.step,
            "looks": state.looks,
            "best_step": state.best_step,
            "seconds": state.seconds,
        }
        with staged(self.folder) as new:
            save_file(_on_cpu(state.weights), new / "weights.safetensors")
            save_file(_on_cpu(state.optimizer), new / "optimizer.safetensors")
            save_file(progress, new / "progress.safetensors")
            if state.best_step != state.step:
                save_file(_on_cpu(state.best), new / "best.safetensors")
            facts["files"] = fingerprints(new, hashed=False)
            (new / "state.json").write_text(json.dumps(facts, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    def remembered(self, what: str, work: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return the stored result of work done before the updates, or do the work and store its result.

        Args:
            what: name of the work, used for a file beside the checkpoint.
            work: returns plain values.

        Raises:
            ConfigError: the stored result belongs to another run.
            ModelFolderError: the stored result is damaged.
            OutputError: the result cannot be written.
        """
        file = self.folder.with_name(f"{self.folder.name}-{what}.json")
        if file.is_file():
            try:
                kept = json.loads(file.read_text(encoding="utf-8"))
                run, value = dict(kept["run"]), dict(kept["value"])
            except (OSError, ValueError, KeyError, TypeError) as error:
                raise ModelFolderError(f"{file} is damaged ({error}); remove it, and start again.") from error
            _check_same(file.parent, run, self.run)
            return value
        value = work()
        write_atomically(file, json.dumps({"run": self.run, "value": value}, indent=1) + "\n")
        return value


def _writable(folder: Path) -> Path:
    """Create a folder, and fail now if checkpoints could not be written to it."""
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; checkpoints are kept in a folder, give another name.")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryDirectory(prefix=".checkpoint.", dir=folder).cleanup()
    except OSError as error:
        raise OutputError(f"{folder} cannot be written to ({error.strerror}); give another place.") from error
    return folder


def begun(folder: Path) -> bool:
    """Return whether there is a checkpoint."""
    return (folder / "state.json").is_file()


def clear(folder: str | Path) -> None:
    """Remove a fit's checkpoints from its folder, and the folder if nothing else is in it."""
    place = Path(folder).expanduser()
    for part in FIT_PARTS:
        if begun(place / part):
            shutil.rmtree(place / part, ignore_errors=True)
        (place / f"{part}-{RATE}.json").unlink(missing_ok=True)
    if place.is_dir() and not any(place.iterdir()):
        place.rmdir()


def read_state(folder: Path) -> dict[str, Any]:
    """Read and check the JSON half of a checkpoint, without its weights.

    Raises:
        ConfigError: there is no checkpoint.
        ModelFolderError: it is damaged, cut off or of another format.
    """
    path = folder / "state.json"
    if not path.is_file():
        raise ConfigError(f"{folder.parent} holds no checkpoint to resume from; start without resuming.")
    try:
        state = json.loads(path.read_text(encoding="utf-8"))
        version, files = state["format"], state["files"]
        if version == FORMAT:
            _ = (dict(state["run"]["config"]), list(state["looks"]), int(state["step"]), int(state["best_step"]))
            _ = (int(state["run"]["total_steps"]), float(state["seconds"]), [each["bytes"] for each in files.values()])
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise ModelFolderError(f"{path} is damaged ({error}); start again in another folder.") from error
    if version != FORMAT:
        raise ModelFolderError(
            f"another version of labelspace wrote {folder} (format {version}, not {FORMAT}); start again in another "
            "folder."
        )
    check_files(folder, files)
    return state


def looks_of(kind: type[Any] | None, state: Checkpoint) -> list[Any]:
    """Return the looks of a checkpoint as objects of their class.

    Raises:
        ModelFolderError: a look does not have the fields of `kind`.
    """
    try:
        return [kind(**values) for values in state.looks] if kind is not None else []
    except TypeError as error:
        raise ModelFolderError(f"the checkpoint is damaged ({error}); start again in another folder.") from error


def digest_of(texts: Iterable[Any]) -> str:
    """Return a hash of texts, pairs, numbers or plain values, in order."""
    digest = hashlib.sha256()
    for text in texts:
        digest.update(repr(text).encode("utf-8", "surrogatepass"))
        digest.update(b"\n")
    return digest.hexdigest()


def optimizer_tensors(optimizer: torch.optim.Optimizer, names: list[str]) -> dict[str, Tensor]:
    """Return AdamW's state by weight name; `names` must be in the order of its parameters."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    return {
        f"{key}:{name}": value
        for name, parameter in zip(names, parameters, strict=True)
        for key, value in optimizer.state.get(parameter, {}).items()
    }


def restore_optimizer(optimizer: torch.optim.Optimizer, names: list[str], tensors: dict[str, Tensor]) -> None:
    """Restore the state from `optimizer_tensors`."""
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    by_name = dict(zip(names, parameters, strict=True))
    for full_name, value in tensors.items():
        key, _, name = full_name.partition(":")
        # A copy, as of the kept weights: what was read is in the mapped file, which Windows does not replace.
        optimizer.state[by_name[name]][key] = value.to(by_name[name].device, copy=True)


def _check_same(place: Path, was: dict[str, Any], now: dict[str, Any]) -> None:
    def flat(run: dict[str, Any]) -> dict[str, Any]:
        return {**{key: value for key, value in run.items() if key != "config"}, **run["config"]}

    # Through JSON like the stored run, which turns tuples into lists.
    before, after = flat(was), flat(json.loads(json.dumps(now)))
    names = {*before, *after} - MAY_DIFFER
    differ = sorted(name for name in names if before.get(name) != after.get(name))
    for name in differ:
        if not _is_digest(after.get(name)):
            raise ConfigError(
                f"the run in {place} had {name} {before.get(name)!r}. Got {after.get(name)!r} instead; "
                "resume with the same data and options, or start in another folder."
            )
    if differ:  # two digests would tell the user nothing
        raise ConfigError(
            f"the run in {place} had other {differ[0]}; resume with the same, or start in another folder."
        )


def _is_digest(value: Any) -> bool:
    return isinstance(value, str) and len(value) >= 40 and not set(value) - set("0123456789abcdef")


def _on_cpu(tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name: value.detach().cpu().contiguous() for name, value in tensors.items()}
