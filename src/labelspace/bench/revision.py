"""The revision of a model, by which a stored result is known to be of the same weights and settings."""

import functools
import hashlib
import json
from pathlib import Path

from labelspace.folders import sha256_of
from labelspace.header import HEADER, peek

WEIGHTS = (".safetensors", ".gguf")
SETTINGS = ("*.json", "*/config.json")
# What a header says of the making of a model; two equal models may differ in it.
MAKING = ("format", "labelspace", "versions", "encoder", "fit", "files")


def model_revision(place: Path) -> str | None:
    """Return the revision of a local model.

    Args:
        place: a model's folder, or its single file.

    Returns:
        The hub commit; of another file its `weights_revision`; of another folder that, `+`, and the first 8 digits of a
        hash of its settings, such as pooling, prompts and the anchor. None if the folder holds no weights.
    """
    weights = weights_revision(place)
    if weights is None or place.is_file() or place.parent.name == "snapshots":
        return weights
    digest = hashlib.sha256()
    for path in sorted({path for pattern in SETTINGS for path in place.glob(pattern) if path.is_file()}):
        if path.name == "tokenizer.json":  # it also holds how the tokenizer was last used
            continue
        if path == place / HEADER:
            header = {name: value for name, value in peek(place).items() if name not in MAKING}
            content = json.dumps(header, sort_keys=True).encode()
        else:
            content = path.read_bytes()
        digest.update(f"{path.relative_to(place).as_posix()} {len(content)} ".encode() + content)
    return f"{weights}+{digest.hexdigest()[:8]}"


def same_revision(stored: str | None, revision: str | None) -> bool:
    """Return whether a stored result may be of a revision; one without settings, as once stored, may be of any.

    Example:
        >>> same_revision("sha256:1+a", "sha256:1+b"), same_revision("sha256:1", "sha256:1+b")
        (False, True)
    """
    return None in (stored, revision) or stored in (revision, str(revision).partition("+")[0])


def weights_revision(place: Path) -> str | None:
    """Return the revision of local weights: the hub commit, or `sha256:` and the first 16 digits of their hash.

    Args:
        place: a model's folder, or its single file.

    Returns:
        None if the folder holds no weights.
    """
    folder = place.parent if place.is_file() else place
    if folder.parent.name == "snapshots":
        return folder.name
    if place.is_file():
        facts = place.stat()
        return f"sha256:{_hash(place, facts.st_size, facts.st_mtime_ns)[:16]}"
    files = sorted(path for path in folder.rglob("*") if path.suffix in WEIGHTS and path.is_file())
    if not files:
        return None
    digest = hashlib.sha256()
    for path in files:
        facts = path.stat()
        digest.update(f"{path.relative_to(folder).as_posix()} {_hash(path, facts.st_size, facts.st_mtime_ns)}".encode())
    return f"sha256:{digest.hexdigest()[:16]}"


@functools.lru_cache(maxsize=256)
def _hash(path: Path, size: int, changed: int) -> str:  # noqa: ARG001  size and time make a changed file a new cache entry
    return sha256_of(path)
