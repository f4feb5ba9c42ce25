"""The revision of a model, by which a stored result is known to be of the same weights and settings."""

import functools
import hashlib
import json
from pathlib import Path

from labelspace.folders import sha256_of
from labelspace.header import HEADER

WEIGHTS = (".safetensors", ".gguf")
SETTINGS = ("*.json", "*/config.json")
# What a header says of the making of a model; two equal models may differ in it.
MAKING = ("format", "labelspace", "versions", "encoder", "fit", "files")
VERSIONS = ("__version__", "transformers_version")


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
        content = _told(path, MAKING if path == place / HEADER else VERSIONS)
        digest.update(f"{path.relative_to(place).as_posix()} {len(content)} ".encode() + content)
    return f"{weights}+{digest.hexdigest()[:8]}"


def _told(path: Path, making: tuple[str, ...]) -> bytes:
    """Return a file's JSON without what it says of its making; another file as it is."""
    content = path.read_bytes()
    try:
        told = json.loads(content)
    except ValueError:
        return content
    if isinstance(told, dict):
        told = {name: value for name, value in told.items() if name not in making}
    return json.dumps(told, sort_keys=True).encode()


def same_revision(one: str | None, other: str | None) -> bool:
    """Return whether two revisions may be of the same model.

    One without settings, as results were stored before settings were hashed, matches any settings of the same weights.

    Example:
        >>> same_revision("sha256:1+a", "sha256:1+b"), same_revision("sha256:1", "sha256:1+b")
        (False, True)
    """
    if one is None or other is None:
        return True
    return one == other or one == other.partition("+")[0] or other == one.partition("+")[0]


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
