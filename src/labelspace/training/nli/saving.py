"""The header of a saved NLI cross-encoder, and hard links to its checkpoint."""

import os
import shutil
from pathlib import Path
from typing import Any

from labelspace.config import NLI_VARIANTS
from labelspace.errors import ModelFolderError
from labelspace.header import HEADER, NLI, read_header

CHECKPOINT = "checkpoint"


def link_folder(source: Path, target: Path) -> None:
    """Hard-link every file of a flat folder; copy files where the disk has no hard links."""
    target.mkdir()
    for path in source.iterdir():
        try:
            os.link(path, target / path.name)
        except OSError:
            shutil.copy2(path, target / path.name)


def read_nli_header(folder: Path) -> dict[str, Any]:
    """Read and check `labelspace.json` of a saved model.

    Raises:
        ModelFolderError: it is missing, damaged, of another kind or of a newer format, or the folder holds a pickle.
    """
    header = read_header(folder, NLI)
    whole = (
        header.get("variant") in NLI_VARIANTS
        and isinstance(header.get("max_tokens"), int)
        and isinstance(header.get("dropout"), (int, float))
    )
    if not whole:
        raise ModelFolderError(f"{folder / HEADER} is damaged (variant, max_tokens or dropout); save the model again.")
    return header
