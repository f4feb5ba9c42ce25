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
from typing import final

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
    heap: list[tuple[int, int, str]] = []  # largest ticket on top, negated; number; text
    drawn: set[int] = set()
    seen = 0
    for chunk in chunks:
        for number, document in enumerate(chunk, seen):
            if not document or document.isspace():
                continue
            ticket = int.from_bytes(hashlib.blake2b(document.encode(), digest_size=16, key=key).digest(), "big")
            if ticket in drawn or (len(heap) == size and ticket > -heap[0][0]):
                continue
            drawn.add(ticket)
            if len(heap) < size:
                heapq.heappush(heap, (-ticket, number, document))
            else:
                drawn.remove(-heapq.heapreplace(heap, (-ticket, number, document))[0])
        seen += len(chunk)
    texts = tuple(document for _, _, document in sorted(heap, key=lambda entry: entry[1]))
    return Pool(texts=texts, seen=seen, source=name(seen))


def _chunks(
    source: object, text_column: str, what: str, **dialect: str
) -> tuple[Iterator[list[str]], Callable[[int], str]]:
    """Return the cleaned documents in small lists, and a function from their count to a description of the source."""
    if is_table(source):
        text_column = find_text_column(source, None if text_column == "text" else text_column, what)
    if _names_files(source) or is_table(source):
        table = open_table(source, text_column=text_column, batch_rows=_CHUNK, **dialect)
        values = (batch.column(text_column).to_pylist() for batch in table.batches())
        files = table.fingerprint()["files"]
        if files is None:
            return _cleaned(values, table.place), lambda seen: f"{kind_of(source) or 'Arrow table'} ({seen} rows)"
        names = ", ".join(file["name"] for file in files[:5]) + (f" and {len(files) - 5} more" if files[5:] else "")
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
