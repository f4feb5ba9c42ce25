"""Folders written by labelspace 0.1.0, assembled from the few files that differ between them."""

import json
import shutil
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
OLD = DATA / "saved-0.x"
CLASSIFIERS = ("zero-shot", "description", "lacon", "lacon-fusion", "uncertainty")


def old_folder(name: str, place: Path) -> Path:
    """Assemble one of the folders.

    Args:
        name: name of a folder in `tests/data/saved-0.x`.
        place: parent of the new folder `name`.
    """
    folder = shutil.copytree(OLD / name, place / name)
    (header,) = folder.glob("*.json")
    for file, facts in json.loads(header.read_text(encoding="utf-8"))["files"].items():
        # Saving the model rewrote some of the encoder's files; the size shows which.
        places = [place / file for place in (folder, DATA / "tiny-bert", OLD / "shared")]
        source = next(path for path in places if path.is_file() and path.stat().st_size == facts["bytes"])
        (folder / file).parent.mkdir(exist_ok=True)
        if source != folder / file:
            shutil.copyfile(source, folder / file)
    return folder


def old_answers() -> dict[str, Any]:
    """Return their inputs (`texts`, `labels`) and each one's outputs when it was saved (`answers`)."""
    return json.loads((OLD / "answers.json").read_text(encoding="utf-8"))
