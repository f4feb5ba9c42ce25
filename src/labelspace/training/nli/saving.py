"""The header of a saved NLI cross-encoder, read and checked."""

import json
import os
import shutil
from importlib import metadata
from pathlib import Path
from typing import Any

from labelspace.errors import ModelFolderError
from labelspace.folders import refuse_pickles
from labelspace.training.nli.config import VARIANTS

KIND = "nli-cross-encoder"
FORMAT_VERSION = 1
CHECKPOINT = "checkpoint"


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
