"""A sample of unlabelled documents, drawn from any number of them in constant memory.

Every distinct document gets a ticket: a hash of its text, keyed with the seed. The `size` smallest tickets win. That
is a uniform sample of the *distinct* documents. Classical reservoir sampling (algorithm R) is not: to recognise a
repeated document it would have to remember every dropped one, so a text that occurs a thousand times would be drawn
a thousand times as readily. Tickets also do not depend on the order of the documents, so a shuffled file gives the
same pool in another order.
"""

import hashlib
import heapq
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, final

from labelspace.checks import check_number
from labelspace.corpus.in_memory import document_values, find_text_column, is_table, kind_of
from labelspace.corpus.policy import DocumentPolicy
from labelspace.corpus.readers import open_table
from labelspace.errors import warn
from labelspace.seeds import child_seed

_CHUNK = 1024


@final
@dataclass(frozen=True)
class Pool:
    """Unlabelled documents and their source."""

    texts: tuple[str, ...]
    """The documents: distinct, none empty, in order of first appearance."""

    seen: int
    """Number of documents read, with repetitions and empty ones."""

    source: str
    """Description of the source, recorded with a result."""


def sample_pool(
    source: object,
    *,
    size: int,
    seed: int,
    text_column: str = "text",
    delimiter: str = "auto",
    encoding: str = "auto",
    what: str = "source",
) -> Pool:
    """Draw up to `size` distinct, non-empty documents.

    Args:
        source: whatever `as_documents` or `open_table` takes; a str, or a list of `pathlib.Path`, names files.
            An iterator is read once, without holding it in memory.
        size: most documents in the pool.
        seed: seed of the run; the same documents and seed give the same pool.
        text_column: the column of documents, if `source` is a table or a file. A table in memory whose only column,
            or only one of strings, has another name works with the default.
        delimiter: delimiter of CSV and TSV files, as for `open_table`.
        encoding: encoding of CSV and TSV files, as for `open_table`.
        what: what messages call the source.

    Returns:
        The documents drawn, the number read and their source.

    Raises:
        ConfigError: `size` is not a positive whole number.
        InputError: a value is not a document, or a file cannot be read.
        ColumnError: a table or a file lacks the column.

    Example:
        >>> sample_pool(["a", "b", "a", " "], size=10, seed=0)
        Pool(texts=('a', 'b'), seen=4, source='list in memory (4 documents)')
    """
    check_number("size", size, least=1, whole=True)
    key = child_seed(seed, "pool").to_bytes(8, "big")
    chunks, name = _chunks(source, text_column, what, delimiter=delimiter, encoding=encoding)
    draw, seen = Draw(size), 0
    for chunk in chunks:
        for document in chunk:
            if document and not document.isspace():
                digest = hashlib.blake2b(document.encode(), digest_size=16, key=key).digest()
                draw.add(int.from_bytes(digest, "big"), document)
        seen += len(chunk)
    return Pool(texts=tuple(draw.drawn()), seen=seen, source=name(seen))


@final
class Draw:
    """The items with the smallest tickets, one of each ticket.

    Args:
        size: number of items that are kept; None: all.
    """

    def __init__(self, size: int | None) -> None:
        self.seen = 0
        self._size = size
        self._heap: list[tuple[int, int, Any]] = []  # largest ticket on top, negated; number; item
        self._tickets: set[int] = set()

    def add(self, ticket: int, item: Any) -> None:
        """Take an item, if its ticket is new and small enough."""
        self.seen += 1
        full = len(self._heap) == self._size
        if ticket in self._tickets or (full and ticket > -self._heap[0][0]):
            return
        self._tickets.add(ticket)
        entry = (-ticket, self.seen, item)
        if full:
            self._tickets.remove(-heapq.heapreplace(self._heap, entry)[0])
        else:
            heapq.heappush(self._heap, entry)

    def drawn(self) -> list[Any]:
        """Return the items in the order in which they came."""
        return [item for _, _, item in sorted(self._heap, key=lambda entry: entry[1])]


def _chunks(
    source: object, text_column: str, what: str, **dialect: str
) -> tuple[Iterator[list[str]], Callable[[int], str]]:
    """Return the cleaned documents in small lists, and a function from their count to a description of the source."""
    if is_table(source):
        text_column = find_text_column(source, None if text_column == "text" else text_column, what)
    if _names_files(source) or is_table(source):
        table = open_table(source, text_column=text_column, batch_rows=_CHUNK, **dialect)
        values = (batch.column(text_column).to_pylist() for batch in table.batches())
        files = table.file_names
        if not files:
            return _cleaned(values, table.place), lambda seen: f"{kind_of(source) or 'Arrow table'} ({seen} rows)"
        names = ", ".join(files[:5]) + (f" and {len(files) - 5} more" if files[5:] else "")
        return _cleaned(values, table.place), lambda seen: f"{names} ({seen} rows)"
    items = iter(document_values(source, text_column=text_column, what=what))
    values = iter(lambda: list(islice(items, _CHUNK)), [])
    kind = kind_of(source) or type(source).__name__
    return (
        _cleaned(values, lambda position: f"{what}[{position}]"),
        lambda seen: f"{kind} in memory ({seen} documents)",
    )


def _cleaned(chunks: Iterable[list[object]], place: Callable[[int], str]) -> Iterator[list[str]]:
    policy = DocumentPolicy(place)
    first = 0
    for chunk in chunks:
        yield policy.clean(chunk, first)
        first += len(chunk)
    for kind, note in policy.notes().items():
        if kind == "long":  # a pool leaves empty documents out, so they need no warning
            warn(note)


def _names_files(source: object) -> bool:
    if isinstance(source, (list, tuple)):  # a list of str is documents
        return bool(source) and all(isinstance(item, Path) for item in source)
    return isinstance(source, (str, os.PathLike))
