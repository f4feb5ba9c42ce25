"""The pairs of a pre-finetuning: drawn, refused before any long work where they will not do, some held aside."""

import random
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs, PairSource, draw_pairs, open_pairs
from labelspace.corpus.in_memory import is_table
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.seeds import child_seed

# As in labelspace.geometry.reze, which brings torch; a test compares them.
FEWEST_PAIRS = 5

# Sources that a message names; a column that is no source has one for every row.
MOST_NAMED = 10

MOST_HELD_ASIDE = 500
"""Pairs that are held aside at most: enough to measure by."""

PairsLike = Pairs | PairSource | str | Path | Iterable[PairSource | str | Path]
"""Pairs that are drawn already, a source of pairs, a file of them, or several sources and files."""


def gather_pairs(pairs: PairsLike, *, per_source: int | None = None, seed: int = 0) -> Pairs:
    """Return pairs in memory, drawn where they are not yet.

    Args:
        pairs: `Pairs`, sources of pairs, or files with the columns anchor and positive (and source).
        per_source: the most pairs of a source.
        seed: of the draw.

    Returns:
        The pairs, all in memory.

    Raises:
        ConfigError: pairs that are drawn already have more of a source than `per_source`.
        InputError: as `draw_pairs`.

    Example:
        >>> import pyarrow as pa
        >>> rows = pa.table({"anchor": list("abc"), "positive": list("ABC")})
        >>> gather_pairs([open_pairs(rows, name="one"), open_pairs(rows, name="two")], per_source=2).counts()
        {'one': 2, 'two': 2}
    """
    if isinstance(pairs, Pairs):
        for name, count in pairs.counts().items():
            if per_source is not None and count > per_source:
                raise ConfigError(
                    f"the pairs are drawn already, {count} of {name!r}, and per_source is {per_source}; "
                    "draw fewer with draw_pairs, or leave per_source out."
                )
        return pairs
    if is_table(pairs):
        raise InputError("pairs must be sources. Got a table instead; open it with open_pairs(table, name=...).")
    if not isinstance(pairs, (str, Path, PairSource)) and not isinstance(pairs, Iterable):
        raise InputError(f"pairs must be sources or files. Got {type(pairs).__name__} instead; see open_pairs.")
    given = [pairs] if isinstance(pairs, (str, Path, PairSource)) else list(pairs)
    sources = [one if isinstance(one, PairSource) else open_pairs(one) for one in given]
    return draw_pairs(sources, per_source=per_source, seed=seed)


def check_pairs(pairs: Pairs, config: PrefinetuneConfig) -> bool:
    """Refuse pairs that no run can do anything with, before any long work.

    Args:
        pairs: all that were drawn.
        config: of the run.

    Returns:
        Whether it is known already that REZE will shrink nothing.

    Raises:
        InputError: a source without pairs enough, or a single pair in all.

    Warns:
        LabelSpaceWarning: sources too few to tell any of them from the median; says what is left of REZE.
    """
    counts = pairs.counts()
    if len(pairs) < 2:
        raise InputError(
            "pre-finetuning contrasts pairs with one another and needs two at least. "
            f"Got {_of(len(pairs), sum(pairs.seen))}, repetitions not counted."
        )
    if not config.regularizer_weight:
        return False
    seen = zip(counts.items(), pairs.seen, strict=True)
    few = [f"'{name:.60}' ({_of(count, there)})" for (name, count), there in seen if count < FEWEST_PAIRS]
    if few:
        capped = config.per_source is not None and config.per_source < FEWEST_PAIRS
        cure = (
            f"let per_source be {FEWEST_PAIRS} or more, it is {config.per_source}"
            if capped
            else "leave these sources out, or join them with others of their kind"
        )
        raise InputError(
            f"each source needs {FEWEST_PAIRS} pairs at least, repetitions not counted, or its mean says nothing of "
            f"it. Got fewer in {some_of(few)}; {cure}.{_named_by(pairs)}"
        )
    # Of one, and at this width of band of two, none lies farther from their median than the band.
    hopeless = config.eta > 0 and (len(counts) == 1 or (len(counts) == 2 and config.gamma >= 1))
    if hopeless:
        warnings.warn(
            f"REZE needs three sources to tell which one is apart. Got {', '.join(counts)} alone: it shrinks nothing, "
            "and what is left of it keeps the encoder near to where it was, which still limits drift.",
            LabelSpaceWarning,
            stacklevel=2,
        )
    return hopeless


def some_of(names: Sequence[str]) -> str:
    """Return names with commas, ten at most, and how many more there are.

    Example:
        >>> some_of(["a", "b"]), some_of([str(number) for number in range(12)])
        ('a, b', '0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more')
    """
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    return ", ".join(names[:MOST_NAMED]) + more


def _of(count: int, seen: int) -> str:
    return f"{count} of {seen:,}" if seen > count else str(count)


def _named_by(pairs: Pairs) -> str:
    """Say which column names sources that are too small, if one does; perhaps it means something else."""
    named = zip(pairs.counts().values(), pairs.source_columns, strict=False)
    columns = sorted({repr(column) for count, column in named if column and count < FEWEST_PAIRS})
    if not columns:
        return ""
    which = " and ".join(columns)
    return f" Names come from the column {which}; if it means something else: source_column=None, --source-column ''."


def hold_aside(pairs: Pairs, *, seed: int, share: float = PrefinetuneConfig.held_aside) -> tuple[list[int], list[int]]:
    """Choose pairs that are measured and never trained on.

    Args:
        pairs: all that were drawn.
        seed: of the draw.
        share: of each source, 0 to 1; rounded down, and never so many that REZE lacks pairs of it.

    Returns:
        Rows to train on, and rows held aside: of every source the same share, and as many at most. Both ascending.

    Example:
        >>> rows = [f"text {number}" for number in range(25)]
        >>> pairs = Pairs(
        ...     anchors=tuple(rows), positives=tuple(rows), source_ids=(0,) * 20 + (1,) * 5, sources=("a", "b"),
        ...     task_types=("", ""), seen=(20, 5),
        ... )
        >>> train, aside = hold_aside(pairs, seed=0)
        >>> len(train), len(aside), max(aside) < 20
        (23, 2, True)
    """
    most = max(1, MOST_HELD_ASIDE // len(pairs.sources))
    rows: list[list[int]] = [[] for _ in pairs.sources]
    for row, source in enumerate(pairs.source_ids):
        rows[source].append(row)
    aside: set[int] = set()
    for name, own in zip(pairs.sources, rows, strict=True):
        draw = random.Random(child_seed(seed, "held aside", name))
        aside.update(draw.sample(own, min(int(share * len(own)), most, max(0, len(own) - FEWEST_PAIRS))))
    return [row for row in range(len(pairs)) if row not in aside], sorted(aside)
