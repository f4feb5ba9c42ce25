"""Model folders: written atomically, with their files checked on reading and without pickles."""

import contextlib
import ctypes
import glob
import hashlib
import os
import platform
import secrets
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import SafetensorError

from labelspace.errors import ModelFolderError, OutputError

PICKLES = {".bin", ".pt", ".pth", ".pkl", ".pickle", ".joblib", ".ckpt", ".npy", ".npz"}


def _here() -> str:
    """Return what tells where process numbers count: a machine or container, and there a namespace of its own."""
    namespace = ""
    with contextlib.suppress(OSError):  # Linux has them
        namespace = str(Path("/proc/self/ns/pid").readlink())
    return hashlib.sha256(f"{platform.node()} {namespace}".encode()).hexdigest()[:8]


HERE = _here()
LONGEST = 86_400
"""Seconds after which a save that wrote nothing more is dead, wherever it ran."""


@contextmanager
def staged(folder: Path, *, private: bool = False) -> Iterator[Path]:
    """Yield an empty folder that replaces `folder` when the block ends without an error.

    Args:
        folder: the folder to write; an existing one stays until the new one is complete and on disk. A link stays a
            link to the new one.
        private: True gives access to the owner only; False follows the umask.

    Raises:
        OutputError: the folder cannot be written; an existing one is unchanged.
    """
    folder = Path(os.path.realpath(folder))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        clear_away_killed(folder.parent, glob.escape(folder.name))
        scratch = _scratch(folder, folder.parent)
    except OSError as error:
        raise OutputError(f"{folder.parent} cannot be written to ({error.strerror}); give another place.") from error
    try:
        mask = 0o077 if private else _umask()
        scratch.chmod(0o777 & ~mask)  # mkdtemp creates it with 0700
        yield scratch
        for path in scratch.rglob("*"):
            if path.is_file():
                path.chmod(0o666 & ~mask)  # safetensors writes 0600
                sync(path)
        sync(scratch)
        _replace(scratch, folder)
    except (OSError, SafetensorError) as error:
        if isinstance(error, OutputError):
            raise
        message = f"{folder} could not be written ({error}); what was there before is unchanged."
        # safetensors has an error of its own for a full disk.
        raise OutputError(message) from (error if isinstance(error, OSError) else OSError(str(error)))
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _scratch(folder: Path, parent: Path) -> Path:
    """Make an empty folder in a parent, under a temporary name for a folder."""
    return Path(tempfile.mkdtemp(prefix=f".{folder.name}.{os.getpid()}-{HERE}-", suffix=".tmp", dir=parent))


def shown_name(name: str) -> str:
    """Return the name of an encoder for a model card: of a folder its last part, since a card may be published."""
    path = Path(name)
    return path.name if path.is_absolute() or path.is_dir() else name


def check_writable(out: Path) -> None:
    """Check, before any work, that a folder can be made at a place, by making one beside it and removing it.

    Raises:
        OutputError: it cannot.
    """
    place = Path(os.path.realpath(out))
    nearest = next(parent for parent in place.parents if parent.exists())
    try:
        _scratch(place, nearest).rmdir()
    except OSError as error:
        raise OutputError(f"{out} cannot be written ({error.strerror}); give another place.") from error


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Write a file in place of what is there, in one step: beside it, forced to the disk, then renamed.

    Args:
        path: its place; a link stays a link to the new content.
        content: bytes, or text that is written in UTF-8 as it is.

    Returns:
        The path as given.

    Raises:
        OutputError: it cannot be written; what was there before is unchanged.
    """
    file = Path(path).resolve()
    scratch = file.with_name(f".{file.name}.{os.getpid()}-{secrets.token_hex(4)}.tmp")
    try:
        with scratch.open("xb") as handle:
            keep_rights(file, scratch)  # before there is anything to read
            handle.write(content.encode() if isinstance(content, str) else content)
            handle.flush()
            os.fsync(handle.fileno())
        scratch.replace(file)
    except OSError as error:
        with contextlib.suppress(OSError):
            scratch.unlink(missing_ok=True)
        reason = error.strerror or error
        raise OutputError(f"{path} cannot be written ({reason}); what was there before is unchanged.") from error
    return Path(path)


def keep_rights(old: Path, new: Path) -> None:
    """Give a file that will replace another the same access rights; without another it keeps its own."""
    with contextlib.suppress(OSError):
        new.chmod(stat.S_IMODE(old.stat().st_mode))


def fingerprints(folder: Path, *, hashed: bool = True) -> dict[str, dict[str, Any]]:
    """Return size and hash of every file of a folder except the model card."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "README.md")
    return {path.relative_to(folder).as_posix(): _fingerprint(path, hashed) for path in files}


def check_files(folder: Path, files: dict[str, dict[str, Any]]) -> None:
    """Compare a folder with its `fingerprints`.

    Raises:
        ModelFolderError: a file is missing, truncated or differs from the one saved.
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
        if "sha256" in facts and sha256_of(path) != facts["sha256"]:
            raise ModelFolderError(f"{path} is not the file that was saved; copy or save it again.")


def refuse_pickles(folder: Path) -> None:
    """Refuse a folder with a file that can run code when opened.

    Raises:
        ModelFolderError: the folder contains such a file; the message names it.
    """
    found = sorted(path.name for path in folder.rglob("*") if path.suffix.lower() in PICKLES)
    if found:
        raise ModelFolderError(
            f"{folder} holds {found[0]}, which can run code when opened; labelspace reads safetensors only. "
            "Remove it, or save the model again."
        )


def _fingerprint(path: Path, hashed: bool) -> dict[str, Any]:
    digest = {"sha256": sha256_of(path)} if hashed else {}
    return {"bytes": path.stat().st_size, **digest}


def sha256_of(path: Path) -> str:
    """Return the hash of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def clear_away_killed(parent: Path, name: str = "*") -> None:
    """Remove the temporary folders that killed saves of `parent / name` left; by default those of any name."""
    for path in parent.glob(f".{name}.*-*.tmp"):
        owner, _, rest = path.name.removesuffix(".tmp").rpartition(".")[2].partition("-")
        ours = rest.startswith(f"{HERE}-")
        if owner.isdecimal() and (not _runs(int(owner)) if ours else _still_since(path) > LONGEST):
            shutil.rmtree(path, ignore_errors=True)


def _still_since(folder: Path) -> float:
    """Return for how many seconds nothing has been written in a folder."""
    with contextlib.suppress(OSError):
        return time.time() - max(path.stat().st_mtime for path in (folder, *folder.rglob("*")))
    return 0.0


def _runs(process: int) -> bool:
    if os.name == "nt":  # on Windows signal 0 is Ctrl-C
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it runs, but belongs to another user
        return True
    return True


def _replace(scratch: Path, folder: Path) -> None:
    if not folder.exists():
        scratch.rename(folder)
    elif not _exchange(scratch, folder):
        # Without the system call there is a moment without the folder; until then the old one has this name.
        old = folder.with_name(f".{folder.name}.old")
        shutil.rmtree(old, ignore_errors=True)
        folder.rename(old)
        scratch.rename(folder)
        shutil.rmtree(old, ignore_errors=True)
    with contextlib.suppress(OSError):
        sync(folder.parent)


def _exchange(one: Path, other: Path) -> bool:
    """Swap two folders atomically; return False where the system cannot (anything but Linux)."""
    at_cwd, exchange = -100, 2
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
    except (OSError, AttributeError, TypeError):  # TypeError on Windows
        return False
    return renameat2(at_cwd, os.fsencode(one), at_cwd, os.fsencode(other), exchange) == 0


def sync(path: Path) -> None:
    """Force a file or the names in a folder to the disk; other systems than POSIX do so with open files alone."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _umask() -> int:
    # The umask can be read only by setting it.
    mask = os.umask(0)
    os.umask(mask)
    return mask
