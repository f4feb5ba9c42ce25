"""Anchor-positive pairs of several sources: a draw from each, mixed in batches (REZE, sections 3.1 and 3.2).

    pair_sources     pairs one by one, read again on each iteration
         |
    draw_pairs       at most `per_source` pairs per source    -> Pairs, in memory
         |
    mixed_batches    every pair once per epoch                -> row numbers

The draw works as in `pool`: each distinct pair gets a ticket, a hash of its two texts keyed with seed and source, and
the smallest tickets win. It is uniform over the distinct pairs, holds only the drawn pairs in memory, and depends on
neither the order of the rows nor the batches they are read in.
"""

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import final

import numpy as np

from labelspace.checks import check_number
from labelspace.corpus.pair_sources import PairSource, ticket
from labelspace.corpus.pool import Draw
from labelspace.errors import InputError
from labelspace.seeds import child_seed


@final
@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs held in memory, row by row; made by `draw_pairs`.

    Raises:
        InputError: columns of different lengths, or a source id out of range.
    """

    anchors: tuple[str, ...]
    """Anchor of each pair."""

    positives: tuple[str, ...]
    """Positive of each pair."""

    source_ids: tuple[int, ...]
    """Source of each pair, as an index into `sources`."""

    sources: tuple[str, ...]
    """Names of the sources, in order of first appearance."""

    seen: tuple[int, ...]
    """Number of pairs read from each source, with repetitions."""

    source_columns: tuple[str, ...] = ()
    """Column that names each source; "" if the file or the caller names it. The tuple is empty if not recorded."""

    def __post_init__(self) -> None:
        lengths = [len(self.anchors), len(self.positives), len(self.source_ids)]
        if len(set(lengths)) > 1:
            raise InputError(
                "pairs need one positive and one source id for each anchor. Got "
                "{} anchors, {} positives and {} source ids.".format(*lengths)
            )
        if len(self.sources) != len(self.seen):
            raise InputError(
                "pairs need one number seen for each source. Got "
                f"{len(self.sources)} sources and {len(self.seen)} numbers seen."
            )
        odd = {number for number in self.source_ids if not 0 <= number < len(self.sources)}
        if odd:
            raise InputError(
                f"a source id must be an index into the {len(self.sources)} sources, from 0. Got {min(odd)} instead."
            )

    def __len__(self) -> int:
        return len(self.anchors)

    def take(self, rows: Sequence[int]) -> "Pairs":
        """Return some rows, in the order given; sources without rows are kept."""
        return replace(
            self,
            anchors=tuple(self.anchors[row] for row in rows),
            positives=tuple(self.positives[row] for row in rows),
            source_ids=tuple(self.source_ids[row] for row in rows),
        )

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each source, by name."""
        found = Counter(self.source_ids)
        return {name: found[number] for number, name in enumerate(self.sources)}

    def fingerprint(self) -> str:
        """Return a hash of all rows in order."""
        digest = hashlib.sha256(repr(self.sources).encode())
        for row in zip(self.anchors, self.positives, self.source_ids, strict=True):
            digest.update(repr(row).encode())
        return digest.hexdigest()


def draw_pairs(sources: Sequence[PairSource], *, per_source: int | None = None, seed: int = 0) -> Pairs:
    """Read several sources and draw distinct pairs from each.

    Args:
        sources: sources to read, each once. Rows that name the same source share one draw, whichever table holds them.
        per_source: most pairs per source; None: all, held in memory.
        seed: seed of the draw.

    Returns:
        The pairs, source by source, each in row order.

    Raises:
        ConfigError: `per_source` is not a positive whole number.
        InputError: there is no source, two share a name, one has no pair, or one cannot be read.

    Example:
        >>> import pyarrow as pa
        >>> from labelspace.corpus import open_pairs
        >>> rows = {"anchor": ["a", "b", "c"], "positive": ["A", "B", "C"]}
        >>> pairs = draw_pairs([open_pairs(pa.table(rows), name="letters")], per_source=2)
        >>> len(pairs), pairs.counts(), pairs.seen
        (2, {'letters': 2}, (3,))
    """
    if per_source is not None:
        check_number("per_source", per_source, least=1, whole=True)
    _check_names(sources)
    draws: dict[str, Draw] = {}
    keys: dict[str, bytes] = {}
    columns: dict[str, str] = {}
    for source in sources:
        for pair in source:
            if pair.source not in draws:
                draws[pair.source] = Draw(per_source)
                keys[pair.source] = child_seed(seed, "pairs", pair.source).to_bytes(8, "big")
                columns[pair.source] = source.source_column or ""
            draws[pair.source].add(ticket(keys[pair.source], pair.anchor, pair.positive), pair)
    drawn = [draw.drawn() for draw in draws.values()]
    return Pairs(
        anchors=tuple(pair.anchor for part in drawn for pair in part),
        positives=tuple(pair.positive for part in drawn for pair in part),
        source_ids=tuple(number for number, part in enumerate(drawn) for _ in part),
        sources=tuple(draws),
        seen=tuple(draw.seen for draw in draws.values()),
        source_columns=tuple(columns.values()),
    )


def mixed_batches(pairs: Pairs, batch_size: int, *, seed: int, epoch: int) -> Iterator[list[int]]:
    """Yield the row numbers of one epoch in batches: every pair once, regardless of source or task.

    Section 3.2: each batch mixes examples of all sources, so a source appears in proportion to its pairs.

    Args:
        pairs: the pairs to batch.
        batch_size: rows per batch; the last batch may be shorter.
        seed: seed of the run.
        epoch: number of the epoch; each epoch has its own order.

    Returns:
        Lists of row numbers; each number from 0 to `len(pairs) - 1` appears once.

    Raises:
        ConfigError: `batch_size` is not a positive whole number.

    Example:
        >>> import pyarrow as pa
        >>> from labelspace.corpus import open_pairs
        >>> pairs = draw_pairs([open_pairs(pa.table({"anchor": list("abc"), "positive": list("ABC")}), name="letters")])
        >>> batches = list(mixed_batches(pairs, 2, seed=0, epoch=0))
        >>> [len(batch) for batch in batches], sorted(row for batch in batches for row in batch)
        ([2, 1], [0, 1, 2])
    """
    check_number("batch_size", batch_size, least=1, whole=True)
    order = np.random.default_rng(child_seed(seed, "pair batches", epoch)).permutation(len(pairs))
    for start in range(0, len(order), batch_size):
        yield order[start : start + batch_size].tolist()


def _check_names(sources: Sequence[PairSource]) -> None:
    if not sources:
        raise InputError("pairs need at least one source. Got none instead.")
    names = [source.name for source in sources if source.name is not None]
    for name, count in Counter(names).items():
        if count > 1:
            raise InputError(f"{count} sources are called {name!r}; give each its own name: name=...")
