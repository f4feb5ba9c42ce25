"""Folders that labelspace 0.1.0 wrote, put together from the few files that differ between them."""

import json
import shutil
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data"
OLD = DATA / "saved-0.x"
CLASSIFIERS = ("zero-shot", "description", "lacon", "lacon-fusion", "uncertainty")


def old_folder(name: str, place: Path) -> Path:
    """Put one of them together.

    Args:
        name: of a folder in `tests/data/saved-0.x`.
        place: where the new folder `name` goes.
    """
    folder = shutil.copytree(OLD / name, place / name)
    (header,) = folder.glob("*.json")
    for file, facts in json.loads(header.read_text(encoding="utf-8"))["files"].items():
        # Some of the encoder's files were written anew when the model was saved; the size tells which.
        places = [place / file for place in (folder, DATA / "tiny-bert", OLD / "shared")]
        source = next(path for path in places if path.is_file() and path.stat().st_size == facts["bytes"])
        (folder / file).parent.mkdir(exist_ok=True)
        if source != folder / file:
            shutil.copyfile(source, folder / file)
    return folder


def old_answers() -> dict[str, Any]:
    """What they were asked (`texts`, `labels`) and what each answered when it was saved (`answers`)."""
    return json.loads((OLD / "answers.json").read_text(encoding="utf-8"))
