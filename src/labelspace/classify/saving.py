"""A fitted model as a folder, and back. No pickle is written or read.

    model/
    ├── modules.json, config.json, model.safetensors ...   a sentence-transformers model
    ├── label_space.yaml                                   the labels, to read and to edit
    ├── label_vectors.safetensors                          the labels' encoded texts
    ├── labelspace.json                                    class, parameters, versions, what it was fitted on
    └── README.md                                          the model card

The folder is written beside its place under another name and exchanged in one step.
"""

import contextlib
import ctypes
import glob
import hashlib
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from labelspace import __version__
from labelspace.checks import did_you_mean
from labelspace.classify.anchors import LabelVectors, encode_labels
from labelspace.classify.base import BiEncoderClassifier
from labelspace.classify.description import DescriptionClassifier
from labelspace.classify.model_card import model_card
from labelspace.classify.zero_shot import ZeroShotClassifier
from labelspace.config import EncodingConfig, SearchConfig
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, ModelFolderError, OutputError
from labelspace.labels import LabelSpace

FORMAT_VERSION = 1
CLASSES: dict[str, type[BiEncoderClassifier]] = {
    "DescriptionClassifier": DescriptionClassifier,
    "ZeroShotClassifier": ZeroShotClassifier,
}
PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"}
NOT_SAVED = ("labels", "encoder", "callbacks", "search")
PACKAGES = ("torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


def save(model: BiEncoderClassifier, folder: Path) -> Path:
    """Write a fitted model; see `BiEncoderClassifier.save`."""
    folder = folder.absolute()
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"{folder} is a file; a model is saved as a folder, give another name.")
    if folder.is_dir() and any(folder.iterdir()) and not _is_model(folder):
        raise OutputError(f"{folder} is not empty and holds no model; give another name, so that nothing is lost.")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clear_away_killed(folder)
        staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}-", suffix=".tmp", dir=folder.parent))
    except OSError as error:
        raise OutputError(f"{folder.parent} cannot be written to ({error.strerror}); give another place.") from error
    try:
        staged.chmod(0o777 & ~_umask())
        _write(model, staged)
        _replace_folder(staged, folder)
    except (OSError, SafetensorError) as error:
        raise OutputError(
            f"the model could not be written to {folder} ({error}); what was there before is unchanged."
        ) from error
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return folder


def load(folder: str | Path, *, device: str | None = None) -> BiEncoderClassifier:
    """Open a model that `save` wrote.

    Args:
        folder: the model's folder.
        device: a torch device in place of the best one here.

    Returns:
        The fitted classifier. On the machine that saved it, its scores are the same to the bit. `fit` begins
        again with the encoder it was first fitted from; to go on from this one, pass the folder as `encoder`.

    Raises:
        ModelFolderError: the folder is no model, truncated, of a newer format, or holds a pickle.

    Example:
        >>> import tempfile, labelspace
        >>> clf = labelspace.ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> folder = clf.save(tempfile.mkdtemp() + "/model")
        >>> labelspace.load(folder).predict(["a text"]) == clf.predict(["a text"])
        array([ True])
    """
    folder = Path(folder)
    header = _read_header(folder)
    cls: Any = CLASSES[header["class"]]
    space = LabelSpace.from_file(folder / "label_space.yaml")
    try:
        encoding = EncodingConfig.from_dict(header["encoding"]).to_dict()
        search = SearchConfig.from_dict(header["search"]) if header.get("search") else None
    except (KeyError, TypeError, ConfigError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    try:
        encoding |= {"device": device} if device else {}
        encoder = Encoder(folder, **encoding, offline=True)
        encoder.name, encoder.pooling = header["encoder"]["name"], header["encoder"]["pooling"]
        # A second fit forgets the first: it begins with the encoder as it was before training.
        prompts = {f"{role}_prompt": prompt for role, prompt in header["encoder"]["prompts"].items()}
        untrained = {"name": encoder.name, "pooling": encoder.pooling, **prompts, **encoding}
        parameters: dict[str, Any] = {**header["parameters"], "encoder": untrained}
        if "search" in header:
            parameters["search"] = search
        model: Any = cls(space, **parameters)
        model.encoder_ = encoder
        model.label_vectors_ = _read_vectors(folder, encoder, space)
    except (KeyError, TypeError, SafetensorError) as error:
        raise ModelFolderError(f"{folder} cannot be read ({error}); it is damaged, save the model again.") from error
    model._set_labels(space)
    if header.get("fit") is not None:
        model.fit_result_ = SavedFit(header["fit"])
    return model


@dataclass(frozen=True)
class SavedFit:
    """What a saved model knows of its fit: the plain values of FitResult.to_dict."""

    values: dict[str, Any]
    """Curve, learning rate, uniformity, pool, seed."""

    def to_dict(self) -> dict[str, Any]:
        """Return the values."""
        return self.values


def _write(model: BiEncoderClassifier, folder: Path) -> None:
    model.encoder_.save(folder)
    model.label_space_.to_file(folder / "label_space.yaml")
    _write_vectors(model, folder)
    parameters = {key: value for key, value in model.get_params(deep=False).items() if key not in NOT_SAVED}
    fit = model.fit_result_.to_dict() if isinstance(model, DescriptionClassifier) else None
    header: dict[str, Any] = {
        "format_version": FORMAT_VERSION,
        "class": type(model).__name__,
        "labelspace": __version__,
        "versions": {package: metadata.version(package) for package in PACKAGES},
        "parameters": parameters,
        "encoder": model.encoder_.describe(),
        "encoding": model.encoder_.config.to_dict(),
        "fit": fit,
    }
    if isinstance(model, DescriptionClassifier):
        header["search"] = model.search.to_dict() if model.search else None
    (folder / "README.md").write_text(model_card(model, header), encoding="utf-8")
    header["files"] = {
        path.relative_to(folder).as_posix(): _fingerprint(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in ("README.md", "label_space.yaml")
    }
    text = json.dumps(_finite(header), indent=2, ensure_ascii=False, allow_nan=False)
    (folder / "labelspace.json").write_text(text + "\n", encoding="utf-8")
    for path in folder.rglob("*"):
        if path.is_file():
            path.chmod(0o666 & ~_umask())  # safetensors writes 0600
            _sync(path)
    _sync(folder)


def _finite(value: Any) -> Any:
    """JSON has no word for what is not finite, for example the uniformity of a trial that failed: null."""
    if isinstance(value, dict):
        return {key: _finite(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _read_header(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is no folder; give the folder that save wrote.")
    pickles = sorted(path.name for path in folder.rglob("*") if path.suffix.lower() in PICKLES)
    if pickles:
        raise ModelFolderError(
            f"{folder} holds {pickles[0]}, which can run code when opened; labelspace reads safetensors only. "
            "Remove it, or save the model again."
        )
    path = folder / "labelspace.json"
    if not path.is_file():
        raise ModelFolderError(f"{folder} holds no labelspace.json; give a folder that save wrote.")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        version, name = header["format_version"], header["class"]
        files = {relative: (int(facts["bytes"]), facts.get("sha256")) for relative, facts in header["files"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFolderError(f"{path} is damaged ({error}); save the model again.") from error
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} is of format {version}, and labelspace {__version__} reads up to {FORMAT_VERSION}; "
            "upgrade labelspace."
        )
    if not isinstance(name, str) or name not in CLASSES:
        raise ModelFolderError(f"{path} names the unknown class {name!r}.{did_you_mean(str(name), CLASSES)}")
    for relative, (size, digest) in {"label_space.yaml": (None, None), **files}.items():
        _check_file(folder, relative, size, digest)
    return header


def _check_file(folder: Path, relative: str, size: int | None, digest: str | None) -> None:
    path = folder / relative
    if not path.is_file():
        raise ModelFolderError(f"{folder} lacks {relative}; it was copied in part, copy or save it again.")
    if size is not None and path.stat().st_size != size:
        raise ModelFolderError(
            f"{path} has {path.stat().st_size:,} bytes and should have {size:,}; "
            "it was cut off or changed, copy or save the model again."
        )
    if digest and _sha256(path) != digest:
        raise ModelFolderError(f"{path} is not the file that was saved; copy or save the model again.")


def _fingerprint(path: Path) -> dict[str, Any]:
    hashed = {"sha256": _sha256(path)} if path.suffix == ".safetensors" else {}
    return {"bytes": path.stat().st_size, **hashed}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _space_hash(space: LabelSpace) -> str:
    return hashlib.sha256(json.dumps(space.to_dict(), sort_keys=True).encode()).hexdigest()


def _write_vectors(model: BiEncoderClassifier, folder: Path) -> None:
    tensors: dict[str, np.ndarray] = {}
    for column, name in enumerate(model.label_space_.names):
        vectors = model.label_vectors_[name]
        tensors[f"{column}.verbalizer"] = np.ascontiguousarray(vectors.verbalizer)
        tensors[f"{column}.descriptions"] = np.ascontiguousarray(vectors.descriptions)
    save_file(tensors, folder / "label_vectors.safetensors", metadata={"space": _space_hash(model.label_space_)})


def _read_vectors(folder: Path, encoder: Encoder, space: LabelSpace) -> dict[str, LabelVectors]:
    with safe_open(folder / "label_vectors.safetensors", framework="numpy") as file:
        # Whoever edits label_space.yaml by hand means it: then the vectors are made anew.
        if (file.metadata() or {}).get("space") != _space_hash(space):
            return encode_labels(encoder, space)
        return {
            name: LabelVectors(
                verbalizer=file.get_tensor(f"{column}.verbalizer"),
                descriptions=file.get_tensor(f"{column}.descriptions"),
            )
            for column, name in enumerate(space.names)
        }


def _is_model(folder: Path) -> bool:
    return (folder / "labelspace.json").is_file()


def _clear_away_killed(folder: Path) -> None:
    """Remove what earlier saves to the same place left half-written because they were killed."""
    for path in folder.parent.glob(f".{glob.escape(folder.name)}.*-*.tmp"):
        owner = path.name.removeprefix(f".{folder.name}.").partition("-")[0]
        if owner.isdecimal() and not _runs(int(owner)):
            shutil.rmtree(path, ignore_errors=True)


def _runs(process: int) -> bool:
    if os.name == "nt":  # there signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it is there, and somebody else's
        return True
    return True


def _replace_folder(staged: Path, folder: Path) -> None:
    if not folder.exists():
        staged.rename(folder)
    elif not any(folder.iterdir()):
        staged.replace(folder)
    elif not _exchange(staged, folder):
        # Without the system call there is a moment without a model; the old one then lies beside under this name.
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        staged.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):
        _sync(folder.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux); the old model is then at `one`."""
    at_cwd, exchange = -100, 2
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0


def _sync(path: Path) -> None:
    with _opened(path) as descriptor:
        os.fsync(descriptor)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _umask() -> int:
    # There is no way to read it but to set it; mkdtemp's 0700 would keep a colleague out of the model.
    mask = os.umask(0)
    os.umask(mask)
    return mask
