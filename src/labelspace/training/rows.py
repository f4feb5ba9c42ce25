"""Labelled texts as token ids: cut into chunks for the encoder, split, and drawn by weight."""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from labelspace.corpus import Document
from labelspace.encoders import Encoder
from labelspace.encoders.batching import TokenBatch, plan_batches, rounded_up
from labelspace.errors import InputError
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    from labelspace.encoders.backbone import Backbone

Targets = NDArray[np.intp]

# Up to this size a chunk stays in the processor's cache, and its products are wide enough.
CHUNK_TOKENS = 2048

# Every shape of a chunk costs memory that stays: its kernels, and gaps between them, some 30 MB for MiniLM in bfloat16.
MANY_CHUNKS = 16
"""More chunks than this are cut anew, half as large and of few widths, so that all shapes together stay small."""


@final
@dataclass(frozen=True)
class Rows:
    """Texts or pairs of texts, tokenized once."""

    token_ids: list[list[int]]
    """Token ids of each text, special tokens included."""

    token_types: list[list[int]] | None
    """Token types of each pair, if the tokenizer has them; None for plain texts."""

    prompt_tokens: int
    """Number of leading tokens that pooling excludes; 0 for most encoders."""

    def __len__(self) -> int:
        return len(self.token_ids)

    @property
    def lengths(self) -> list[int]:
        """Tokens of each text."""
        return [len(ids) for ids in self.token_ids]

    def take(self, rows: Sequence[int]) -> "Rows":
        """Return some rows, in the order given."""
        types = None if self.token_types is None else [self.token_types[row] for row in rows]
        return Rows([self.token_ids[row] for row in rows], types, self.prompt_tokens)

    def __add__(self, other: "Rows") -> "Rows":
        """Concatenate rows; beside pairs, the tokens of plain texts get the first type."""
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
class Labelled:
    """Rows with their labels."""

    rows: Rows
    """The texts."""

    targets: Targets
    """[text], the label of each row."""

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, rows: Sequence[int]) -> "Labelled":
        """Return some rows, in the order given."""
        return Labelled(self.rows.take(rows), self.targets[list(rows)])


@final
@dataclass(frozen=True)
class Chunk:
    """Rows that go through the encoder together."""

    batch: TokenBatch
    """Token ids; `positions` are row numbers."""

    token_types: Tensor | None
    """Token types of pairs; None for plain texts."""

    prompt_tokens: int
    """Number of leading tokens that pooling excludes."""


def tokenize(encoder: Encoder, documents: Sequence[Document], *, role: str = "text") -> Rows:
    """Turn texts, or pairs of texts, into token ids.

    Args:
        encoder: provides tokenizer and prompts.
        documents: texts, or pairs of texts.
        role: `"text"` or `"label"`; selects the prompt of plain texts.

    Example:
        >>> encoder = Encoder("tests/data/tiny-bert")
        >>> tokenize(encoder, [("news", "sports")]).token_types
        [[0, 0, 0, 1, 1]]
    """
    prompt_tokens = encoder.prompt_tokens(role)
    texts = [document for document in documents if isinstance(document, str)]
    if len(texts) == len(documents):
        return Rows(encoder.tokenize(texts, role=role), None, prompt_tokens)
    pairs = [document for document in documents if not isinstance(document, str)]
    return Rows(*encoder.tokenize_pairs(pairs), prompt_tokens)


def cut(backbone: "Backbone", rows: Rows, max_tokens_in_memory: int) -> list[Chunk]:
    """Cut rows into chunks of similar length, each within the token limits."""
    lengths = rows.lengths
    plan = plan_batches(lengths, min(CHUNK_TOKENS, max_tokens_in_memory))
    if len(plan) <= MANY_CHUNKS:
        return [make_chunk(backbone, rows, positions) for positions in plan]
    widths = [min(rounded_up(length), max(length, backbone.max_tokens)) for length in lengths]
    plan = plan_batches(widths, min(CHUNK_TOKENS // 2, max_tokens_in_memory))
    return [make_chunk(backbone, rows, positions, at_least=widths[positions[0]]) for positions in plan]


def make_chunk(backbone: "Backbone", rows: Rows, positions: list[int], *, at_least: int = 1) -> Chunk:
    """Pad some of the rows to one width, `at_least` or more."""
    ids, types = backbone.batch(rows.token_ids, positions, at_least=at_least), None
    if rows.token_types is not None:
        types = backbone.batch_types(rows.token_types, positions, at_least=at_least)
    return Chunk(ids, types, rows.prompt_tokens)


def split(targets: Targets, share: float, *, seed: int) -> tuple[list[int], list[int]]:
    """Hold rows out in proportion to each label; at least one row per label stays for training.

    Args:
        targets: [text], the label of each row.
        share: share of the rows to hold out, rounded to whole rows, at least one.
        seed: seed of the draw.

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
    # Rows left over from rounding down go to the labels that lost most by it.
    order = sorted(places, key=lambda label: (int(exact[label]) - exact[label], label))
    for label in order:
        if sum(counts.values()) < wanted and counts[label] < len(places[label]) - 1:
            counts[label] += 1
    held_out = sorted(row for label, rows in places.items() for row in draw.sample(rows, counts[label]))
    kept = set(held_out)
    return [row for row in range(len(targets)) if row not in kept], held_out


def split_texts(
    rows: Rows, targets: Targets, share: float, *, seed: int, required: bool = False
) -> tuple[list[int], list[int]]:
    """Hold rows out like `split`, with equal texts on the same side, so that none is both trained and held out.

    Args:
        rows: the texts.
        targets: [text], the label of each row.
        share: share of the different texts to hold out.
        seed: seed of the draw.
        required: True: the share is the user's `validation`, so some row must be held out.

    Returns:
        Rows to train on and rows held out, both ascending; none is held out if no label can spare a text of its own. A
        text that is more than this share of its label's rows is always trained on.

    Raises:
        InputError: a row is required, and none can be held out.

    Example:
        >>> texts = Rows([[1], [2], [3], [4]] * 2, None, 0)
        >>> split_texts(texts, np.array([0, 0, 1, 1] * 2), 0.5, seed=0)
        ([1, 2, 5, 6], [0, 3, 4, 7])
    """
    text = _first_of_each(rows)
    different, repeats = np.unique(text, return_counts=True)
    different = different[repeats <= np.maximum(1, share * np.bincount(targets)[targets[different]])]
    _, places = split(targets[different], share, seed=seed)
    held_out = np.isin(text, different[places])
    # A label may have only texts that first occur under another label; train on those.
    lost = ~np.isin(targets, targets[~held_out])
    held_out &= ~np.isin(text, text[lost])
    if required and not held_out.any():
        raise InputError(
            f"validation={share:g} holds out none of {len(targets)} rows, as each label keeps a text of its own for "
            "training; label more texts, or set validation to 0 or 'auto'."
        )
    return np.flatnonzero(~held_out).tolist(), np.flatnonzero(held_out).tolist()


def different(labelled: Labelled) -> Labelled:
    """Return rows without those that repeat a text and its label, such as a round of labelling that was read twice.

    Example:
        >>> rows = Rows([[1], [2], [1], [1]], None, 0)
        >>> different(Labelled(rows, np.array([0, 0, 0, 1]))).rows.token_ids
        [[1], [2], [1]]
    """
    pairs = np.stack([_first_of_each(labelled.rows), labelled.targets])
    _, places = np.unique(pairs, axis=1, return_index=True)
    return labelled if len(places) == len(labelled) else labelled.take(np.sort(places).tolist())


def _first_of_each(rows: Rows) -> NDArray[np.intp]:
    """Return, of each row, the first row with its text, [text]."""
    first: dict[tuple[bytes, ...], int] = {}
    parts = (rows.token_ids,) if rows.token_types is None else (rows.token_ids, rows.token_types)
    keys = (tuple(np.asarray(each, dtype=np.int32).tobytes() for each in row) for row in zip(*parts, strict=True))
    return np.array([first.setdefault(key, row) for row, key in enumerate(keys)], dtype=np.intp)


def draw_weighted(targets: Targets, weights: NDArray[np.floating], *, seed: int, epoch: int) -> list[int]:
    """Draw as many rows as there are, in proportion to label weights; rows repeat only after all of their label.

    Args:
        targets: [text], the label of each row.
        weights: [label], above 0: relative frequency of each label's rows.
        seed: seed of the draw.
        epoch: number of the epoch; it changes the order, and the choice for labels that lose rows.

    Example:
        >>> drawn = draw_weighted(np.array([0, 0, 0, 1]), np.array([1.0, 3.0]), seed=0, epoch=0)
        >>> sorted(drawn)[2:], len(set(drawn[:2]))
        ([3, 3], 2)
    """
    counts = np.bincount(targets, minlength=len(weights))
    shares = np.cumsum(weights * counts) / (weights * counts).sum()
    # One offset for all labels: a share of a tenth of a row appears in one epoch of ten and is never lost.
    offset = random.Random(child_seed(seed, "offset", epoch)).random()
    ends = np.floor(shares * len(targets) + offset).astype(int)
    ends[-1] = len(targets)
    drawn: list[int] = []
    for label, (start, end) in enumerate(zip([0, *ends[:-1]], ends, strict=True)):
        rows = np.flatnonzero(targets == label)
        if len(rows):
            endless = cycle(len(rows), seed=child_seed(seed, "weighted", epoch, label))
            drawn += [int(rows[next(endless)]) for _ in range(end - start)]
    return drawn


def class_weights(
    given: str | Mapping[str, float] | None, names: Sequence[str], targets: Targets
) -> NDArray[np.float64] | None:
    """Return the weight of each label, [label], or None if every row counts the same.

    Args:
        given: `"balanced"`, weights by name (1 if missing), or None; as scikit-learn's `class_weight`.
        names: [label].
        targets: [text], the label of each row.

    Example:
        >>> class_weights("balanced", ["a", "b"], np.array([0, 0, 0, 1])).round(2).tolist()
        [0.67, 2.0]
        >>> class_weights({"b": 3}, ["a", "b"], np.array([0, 0, 0, 1])).tolist()
        [1.0, 3.0]
    """
    if given is None:
        return None
    if isinstance(given, str):
        counts = np.bincount(targets, minlength=len(names))
        return len(targets) / (max((counts > 0).sum(), 1) * np.maximum(counts, 1))
    return np.array([given.get(name, 1.0) for name in names], dtype=np.float64)


def cycle(count: int, *, seed: int) -> Iterator[int]:
    """Yield 0 to count - 1 endlessly, each round in a new order."""
    turn = 0
    while True:
        order = list(range(count))
        random.Random(child_seed(seed, "turn", turn)).shuffle(order)
        yield from order
        turn += 1
