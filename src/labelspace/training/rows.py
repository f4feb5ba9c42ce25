"""Labelled texts as token ids: cut into chunks for the encoder, split, balanced and put into batches."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from labelspace.encoders import Encoder
from labelspace.encoders.backbone import Backbone
from labelspace.encoders.batching import TokenBatch, plan_batches
from labelspace.seeds import child_seed

Document = str | tuple[str, str]
"""A text, or a pair of texts."""

Targets = NDArray[np.intp]


@final
@dataclass(frozen=True)
class Rows:
    """Texts or pairs of texts, tokenised once."""

    token_ids: list[list[int]]
    """Of each text, special tokens included."""

    token_types: list[list[int]] | None
    """Of each pair, where the tokenizer gives them; None for plain texts."""

    prompt_tokens: int
    """Leading tokens that pooling leaves out; 0 for most encoders."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each text."""
        return [len(ids) for ids in self.token_ids]

    def take(self, rows: Sequence[int]) -> "Rows":
        """Return some of the rows, in the order asked for."""
        types = None if self.token_types is None else [self.token_types[row] for row in rows]
        return Rows([self.token_ids[row] for row in rows], types, self.prompt_tokens)

    def __add__(self, other: "Rows") -> "Rows":
        """Put two lots of rows into one; a plain text beside pairs is all of the first type."""
        types = None
        if self.token_types is not None or other.token_types is not None:
            types = [
                each
                for part in (self, other)
                for each in part.token_types or [[0] * len(ids) for ids in part.token_ids]
            ]
        return Rows(self.token_ids + other.token_ids, types, self.prompt_tokens)


@final
@dataclass(frozen=True)
class Chunk:
    """Rows that go through the encoder together."""

    batch: TokenBatch
    """Token ids; `positions` are rows."""

    token_types: Tensor | None
    """For pairs."""

    prompt_tokens: int
    """Leading tokens that pooling leaves out."""


def tokenize(encoder: Encoder, documents: Sequence[Document]) -> Rows:
    """Turn texts, or pairs of texts, into token ids.

    Example:
        >>> encoder = Encoder("tests/data/tiny-bert")
        >>> tokenize(encoder, [("news", "sports")]).token_types
        [[0, 0, 0, 1, 1]]
    """
    prompt_tokens = encoder.backbone.prompt_tokens(encoder.prompts["text"])
    texts = [document for document in documents if isinstance(document, str)]
    if len(texts) == len(documents):
        return Rows(encoder.tokenize(texts), None, prompt_tokens)
    pairs = [document for document in documents if not isinstance(document, str)]
    return Rows(*encoder.tokenize_pairs(pairs), prompt_tokens)


def cut(backbone: Backbone, rows: Rows, token_budget: int) -> list[Chunk]:
    """Cut rows into chunks of similar length, at most `token_budget` padded tokens each."""
    return [make_chunk(backbone, rows, positions) for positions in plan_batches(rows.lengths, token_budget)]


def make_chunk(backbone: Backbone, rows: Rows, positions: list[int]) -> Chunk:
    """Pad some of the rows to one width."""
    types = None if rows.token_types is None else backbone.batch_types(rows.token_types, positions)
    return Chunk(backbone.batch(rows.token_ids, positions), types, rows.prompt_tokens)


def split(targets: Targets, share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Hold rows out, as many of each label as its share; one row of each label stays for training.

    Args:
        targets: [text], the label of each row.
        share: of the rows that are held out, rounded to whole rows; above 0 it is one row at least.
        seed: of the draw.

    Returns:
        Rows to train on and rows held out, both ascending.

    Example:
        >>> train, held_out = split(np.array([0] * 20 + [1] * 20), 0.05, seed=0)
        >>> len(train), len(held_out)
        (38, 2)
    """
    draw = random.Random(child_seed(seed, "held out"))
    places = {int(label): np.flatnonzero(targets == label).tolist() for label in np.unique(targets)}
    wanted = max(1, round(share * len(targets)))
    exact = {label: share * len(rows) for label, rows in places.items()}
    counts = {label: min(int(exact[label]), len(rows) - 1) for label, rows in places.items()}
    # What rounding down has left over goes to the labels that lost most by it.
    order = sorted(places, key=lambda label: (int(exact[label]) - exact[label], label))
    for label in order:
        if sum(counts.values()) < wanted and counts[label] < len(places[label]) - 1:
            counts[label] += 1
    held_out = sorted(row for label, rows in places.items() for row in draw.sample(rows, counts[label]))
    kept = set(held_out)
    return [row for row in range(len(targets)) if row not in kept], held_out


def balanced(targets: Targets, *, seed: int, epoch: int) -> list[int]:
    """Draw as many rows as there are, every label equally often; none comes again before all of its label came.

    Example:
        >>> drawn = balanced(np.array([0, 0, 0, 1]), seed=0, epoch=0)
        >>> sorted(drawn)[2:], len(set(drawn[:2]))
        ([3, 3], 2)
    """
    present = np.unique(targets)
    drawn: list[int] = []
    for place, label in enumerate(present):
        count = (len(targets) + place) // len(present)
        rows = np.flatnonzero(targets == label)
        endless = cycle(len(rows), seed=child_seed(seed, "balanced", epoch, int(label)))
        drawn += [int(rows[next(endless)]) for _ in range(count)]
    return drawn


def cycle(count: int, *, seed: int) -> Iterator[int]:
    """Yield 0 to count - 1 without end, each time in another order."""
    turn = 0
    while True:
        order = list(range(count))
        random.Random(child_seed(seed, "turn", turn)).shuffle(order)
        yield from order
        turn += 1
