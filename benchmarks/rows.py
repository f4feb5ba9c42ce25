"""Labelled rows of a data set, read from its parquet files."""

import functools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

Document = str | tuple[str, str]


@dataclass(frozen=True)
class Rows:
    """Labelled texts, or pairs of texts."""

    texts: list[Document]
    truth: list[str]

    def __len__(self) -> int:
        return len(self.truth)

    def __add__(self, other: "Rows") -> "Rows":
        return Rows(self.texts + other.texts, self.truth + other.truth)

    @property
    def names(self) -> list[str]:
        """The labels, sorted."""
        return sorted(set(self.truth))

    def take(self, rows: Sequence[int]) -> "Rows":
        """Return the given rows, in that order."""
        return Rows([self.texts[row] for row in rows], [self.truth[row] for row in rows])

    def of_class(self, name: str) -> list[int]:
        """Return the row numbers of a label."""
        return [row for row, label in enumerate(self.truth) if label == name]


@functools.lru_cache(maxsize=2)
def read(folder: Path, split: str) -> Rows:
    """Read one split; rows with two texts become pairs."""
    names = json.loads((folder / "meta.json").read_text(encoding="utf-8"))["label_names"]
    table = pq.read_table(folder / f"{split}.parquet")
    texts: list[Document] = table["text"].to_pylist()
    if "text_pair" in table.column_names:
        texts = list(zip(texts, table["text_pair"].to_pylist(), strict=True))
    return Rows(texts, [names[label] for label in table["label"].to_pylist()])
