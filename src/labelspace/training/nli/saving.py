"""A folder that is there whole or not at all: written beside its place under another name, exchanged in one step."""

import contextlib
import ctypes
import glob
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from labelspace.errors import ModelFolderError, OutputError
from labelspace.training.nli.config import VARIANTS

KIND = "nli-cross-encoder"
FORMAT_VERSION = 1
CHECKPOINT = "checkpoint"
PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"}


@contextmanager
def staged(folder: Path) -> Iterator[Path]:
    """Yield an empty folder that takes the place of `folder` when the block ends without an error.

    Args:
        folder: what is to be written; what is there stays until the new one is whole and on the disk.

    Raises:
        OutputError: it cannot be written; what was there before is unchanged.
    """
    folder = folder.absolute()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _clear_away_killed(folder)
        scratch = Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}-", suffix=".tmp", dir=folder.parent))
    except OSError as error:
        raise OutputError(f"{folder.parent} cannot be written to ({error.strerror}); give another place.") from error
    try:
        mask = _umask()
        scratch.chmod(0o777 & ~mask)  # mkdtemp's 0700 would keep a colleague out
        yield scratch
        for path in scratch.rglob("*"):
            if path.is_file():
                path.chmod(0o666 & ~mask)  # safetensors writes 0600
                _sync(path)
        _sync(scratch)
        _replace(scratch, folder)
    except (OSError, SafetensorError) as error:
        if isinstance(error, OutputError):
            raise
        raise OutputError(f"{folder} could not be written ({error}); what was there before is unchanged.") from error
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def fingerprints(folder: Path, *, hashed: bool = True) -> dict[str, dict[str, Any]]:
    """Return size, and for weights the hash, of every file of a folder but the model card."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "README.md")
    return {path.relative_to(folder).as_posix(): _fingerprint(path, hashed) for path in files}


def check_files(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Compare a folder with its `fingerprints`.

    Raises:
        ModelFolderError: a file is missing, cut off or another one than was saved.
    """
    for relative, facts in files.items():
        path = folder / relative
        if not path.is_file():
            raise ModelFolderError(f"{folder} lacks {relative}; it was copied in part, copy or save it again.")
        if path.stat().st_size != facts["bytes"]:
            raise ModelFolderError(
                f"{path} has {path.stat().st_size:,} bytes and should have {facts['bytes']:,}; "
                "it was cut off or changed, copy or save it again."
            )
        if "sha256" in facts and _sha256(path) != facts["sha256"]:
            raise ModelFolderError(f"{path} is not the file that was saved; copy or save it again.")


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder with a file that can run code when opened.

    Raises:
        ModelFolderError: there is one; the message names it.
    """
    found = sorted(path.name for path in folder.rglob("*") if path.suffix.lower() in PICKLES)
    if found:
        raise ModelFolderError(
            f"{folder} holds {found[0]}, which can run code when opened; labelspace reads safetensors only. "
            "Remove it, or save the model again."
        )


def link_folder(source: Path, target: Path) -> None:
    """Make a second name for every file of a flat folder, or a copy where the disk has no second names."""
    target.mkdir()
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:
            shutil.copy2(path, target / path.name)


def version_here() -> str:
    """Return the version of labelspace; the package itself lies above this folder."""
    return metadata.version("labelspace")


def is_nli_folder(folder: Path) -> bool:
    """Return whether a folder says that it holds an NLI cross-encoder; looks at `labelspace.json` only."""
    try:
        header = json.loads((folder / "labelspace.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(header, dict) and header.get("kind") == KIND


def read_header(folder: Path) -> dict[str, Any]:
    """Read and check `labelspace.json` of a saved model.

    Raises:
        ModelFolderError: it is missing, damaged, of another kind or of a newer format, or the folder holds a pickle.
    """
    if not folder.is_dir():
        raise ModelFolderError(f"{folder} is no folder; give the folder of an NLI model.")
    refuse_pickles(folder)
    path = folder / "labelspace.json"
    if not path.is_file():
        raise ModelFolderError(f"{folder} holds no labelspace.json; give a folder that labelspace train-nli wrote.")
    try:
        header = json.loads(path.read_text(encoding="utf-8"))
        kind, version = header.get("kind"), header.get("format")
    except (ValueError, AttributeError) as error:
        raise ModelFolderError(f"{path} is damaged ({error}); save the model again.") from error
    if kind != KIND:
        raise ModelFolderError(f"{folder} holds no NLI cross-encoder. Got kind {kind!r} instead of {KIND!r}.")
    if not isinstance(version, int) or version > FORMAT_VERSION:
        raise ModelFolderError(
            f"{folder} is of format {version}, and labelspace {version_here()} reads up to {FORMAT_VERSION}; "
            "upgrade labelspace."
        )
    whole = (
        header.get("variant") in VARIANTS
        and isinstance(header.get("max_tokens"), int)
        and isinstance(header.get("dropout"), (int, float))
        and isinstance(header.get("files"), dict)
        and all(isinstance(facts, dict) and "bytes" in facts for facts in header["files"].values())
    )
    if not whole:
        raise ModelFolderError(f"{path} is damaged (variant, max_tokens, dropout or files); save the model again.")
    return header


def _fingerprint(path: Path, hashed: bool) -> dict[str, Any]:
    digest = {"sha256": _sha256(path)} if hashed and path.suffix == ".safetensors" else {}
    return {"bytes": path.stat().st_size, **digest}


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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


def _replace(scratch: Path, folder: Path) -> None:
    if not folder.exists():
        scratch.rename(folder)
    elif not _exchange(scratch, folder):
        # Without the system call there is a moment without a folder; the old one then lies beside under this name.
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        scratch.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):
        _sync(folder.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders in one step, where the system can (Linux); the old one is then at `one`."""
    at_cwd, exchange = -100, 2
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError):
        return False
    return renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    # There is no way to read it but to set it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
