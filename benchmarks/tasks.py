"""The five data sets of the description-only study, as (labels, pool, test)."""

import json
import random
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from labelspace import Label, LabelSpace

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT.parent / "shared" / "data"


@dataclass(frozen=True)
class Task:
    """A data set: its label space, unlabelled pool and labelled test rows."""

    name: str
    labels: LabelSpace
    pool: list[str]
    pool_source: str
    texts: list[str]
    truth: list[str]


@dataclass(frozen=True)
class Source:
    """Files of a task."""

    label_file: str
    folder: str
    hypotheses: str


SOURCES = {
    "agnews": Source("agnews.yaml", "btzsc/agnews", "btzsc/agnews"),
    "rottentomatoes": Source("rottentomatoes.yaml", "btzsc/rottentomatoes", "btzsc/rottentomatoes"),
    "emotion": Source("emotion.yaml", "btzsc/emotiondair", "btzsc/emotiondair"),
    "banking77_cards": Source("banking77_cards.yaml", "mteb/banking77", "btzsc/banking77"),
    "banking77": Source("banking77/labels.yaml", "mteb/banking77", "btzsc/banking77"),
}


def load_task(name: str, data: Path, verbalizers: str, *, test_rows: int | None = None) -> Task:
    """Read a task.

    Args:
        name: a key of SOURCES.
        data: the data folder.
        verbalizers: "official" uses the benchmark authors' hypotheses, read at run time, for the labels that have one
            (72 of the 77 intents); "own" keeps those of the label file.
        test_rows: maximum test rows, drawn with a fixed seed; None: all.
    """
    source = SOURCES[name]
    space = LabelSpace.from_file(ROOT / "examples" / source.label_file)
    if verbalizers == "official":
        classes = json.loads((data / source.hypotheses / "labels.json").read_text())["classes"]
        official = {entry["name"]: entry["hypothesis"] for entry in classes}
        space = LabelSpace(
            [
                Label(label.name, verbalizer=official.get(label.name, own), descriptions=label.descriptions)
                for label, own in zip(space.labels, space.verbalizers, strict=True)
            ],
            name=space.name,
        )
    train, _ = load_rows(data / source.folder, "train", space)
    texts, truth = load_rows(data / source.folder, "test", space, most=test_rows)
    return Task(name, space, train, f"{source.folder}/train.parquet ({len(train)} rows)", texts, truth)


INTENT_FILE = ROOT / "examples" / "banking77" / "labels.yaml"
JOINED = {"short": 1, "long": 5}
"""Number of descriptions joined into one text of `intent_texts`: about 27 tokens with one, 130 with five."""


def intent_texts(length: str) -> list[list[str]]:
    """Return texts of each of the 77 intents, made of its descriptions: costs are measured without any data."""
    return [
        [" ".join([*own[turn:], *own[:turn]][: JOINED[length]]) for turn in range(len(own))]
        for own in LabelSpace.from_file(INTENT_FILE).descriptions
    ]


def _class_names(folder: Path) -> list[str]:
    if (folder / "labels.json").exists():
        return [entry["name"] for entry in json.loads((folder / "labels.json").read_text())["classes"]]
    return json.loads((folder / "meta.json").read_text())["label_names"]


def load_rows(folder: Path, split: str, space: LabelSpace, *, most: int | None = None) -> tuple[list[str], list[str]]:
    """Read texts and label names of a split, at most `most`; rows of other classes are left out."""
    names = _class_names(folder)
    table = pq.read_table(folder / f"{split}.parquet", columns=["text", "label"])
    rows = zip(table["text"].to_pylist(), table["label"].to_pylist(), strict=True)
    kept = [(text, names[label]) for text, label in rows if names[label] in space]
    if most is not None and most < len(kept):
        kept = [kept[row] for row in sorted(random.Random(0).sample(range(len(kept)), most))]
    return [text for text, _ in kept], [label for _, label in kept]
