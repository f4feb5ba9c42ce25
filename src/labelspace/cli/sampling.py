"""A random sample of a file's rows, without holding the others in memory."""

import heapq
import random
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from labelspace.corpus import Documents, DocumentTable


def sample_rows(
    table: "DocumentTable", size: int, seed: int, *, labelled_first: bool = False
) -> "tuple[Documents, list[Any]]":
    """Draw rows at random, in the order of the file.

    Args:
        table: the rows.
        size: maximum number of rows.
        seed: seed of the draw.
        labelled_first: True takes every row with a label, and draws from the others.

    Returns:
        Texts, and labels, which are None without a label column.
    """
    from labelspace.corpus import Documents, Kind
    from labelspace.corpus.targets import is_unlabelled

    tickets = random.Random(child_seed(seed, "figures"))

    def rows() -> Iterator[tuple[float, int, str, Any]]:
        number = 0
        for batch in table.batches():
            texts = table.texts(batch)
            names = batch.column(table.label_column).to_pylist() if table.label_column else [None] * len(texts)
            for text, name in zip(texts, names, strict=True):
                ticket = tickets.random()
                yield ticket - (labelled_first and not is_unlabelled(name)), number, text, name
                number += 1

    drawn = heapq.nsmallest(size, rows(), key=lambda row: row[0])
    drawn.sort(key=lambda row: row[1])
    return Documents([row[2] for row in drawn], Kind.TEXTS), [row[3] for row in drawn]
