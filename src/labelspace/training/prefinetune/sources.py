"""The pairs of a pre-finetuning: drawn, checked before any long work, some held aside."""

import random
from collections.abc import Iterable
from pathlib import Path

from labelspace.config import PrefinetuneConfig
from labelspace.corpus import Pairs, PairSource, draw_pairs, open_pairs
from labelspace.corpus.in_memory import is_table
from labelspace.errors import ConfigError, InputError, warn
from labelspace.seeds import child_seed
from labelspace.text_table import some_of

# As in labelspace.geometry.reze, which imports torch; a test compares the two.
FEWEST_PAIRS = 5

MOST_HELD_ASIDE = 500
"""Largest number of pairs held aside, enough to measure on."""

PairsLike = Pairs | PairSource | str | Path | Iterable[PairSource | str | Path]
"""Pairs already drawn, a source of pairs, a file of pairs, or several sources and files."""


def gather_pairs(pairs: PairsLike, *, per_source: int | None = None, seed: int = 0) -> Pairs:
    """Return pairs in memory, drawing them if necessary.

    Args:
        pairs: `Pairs`, sources of pairs, or files with the columns anchor and positive (and source).
        per_source: most pairs per source.
        seed: seed of the draw.

    Returns:
        The pairs, all in memory.

    Raises:
        ConfigError: pairs already drawn have more of a source than `per_source`.
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
    if any(isinstance(one, (tuple, list)) for one in given):
        raise InputError(
            "pairs must be sources or files. Got pairs of texts; put them into a table, and open that with "
            "open_pairs(table, name=...)."
        )
    sources = [one if isinstance(one, PairSource) else open_pairs(one) for one in given]
    return draw_pairs(sources, per_source=per_source, seed=seed)


def check_pairs(pairs: Pairs, config: PrefinetuneConfig) -> bool:
    """Refuse unusable pairs before any long work.

    Args:
        pairs: all pairs drawn.
        config: options of the run.

    Returns:
        Whether it is already certain that REZE will shrink nothing.

    Raises:
        InputError: a source with too few pairs, or fewer than two pairs in all.

    Warns:
        LabelSpaceWarning: there are too few sources to tell any from the median; the message says what REZE still does.
    """
    counts = pairs.counts()
    if len(pairs) < 2:
        raise InputError(
            "pre-finetuning contrasts pairs with one another and needs at least two. "
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
            f"each source needs at least {FEWEST_PAIRS} pairs, repetitions not counted, for its mean to be meaningful. "
            f"Got fewer in {some_of(few)}; {cure}.{_named_by(pairs)}"
        )
    # With one source, or with two at this width of the band, none lies farther from the median than the band.
    hopeless = config.eta > 0 and (len(counts) == 1 or (len(counts) == 2 and config.gamma >= 1))
    if hopeless:
        warn(
            f"REZE needs three sources to tell which one differs. Got only {', '.join(counts)}: it shrinks nothing, "
            "and only keeps the encoder close to its original geometry, which still limits drift."
        )
    return hopeless


def _of(count: int, seen: int) -> str:
    return f"{count} of {seen:,}" if seen > count else str(count)


def _named_by(pairs: Pairs) -> str:
    """Return a sentence about the column that names sources which are too small; it may mean something else."""
    named = zip(pairs.counts().values(), pairs.source_columns, strict=False)
    columns = sorted({repr(column) for count, column in named if column and count < FEWEST_PAIRS})
    if not columns:
        return ""
    which = " and ".join(columns)
    return f" Names come from the column {which}; if it means something else: source_column=None, --source-column ''."


def hold_aside(pairs: Pairs, *, seed: int, share: float = PrefinetuneConfig.validation) -> tuple[list[int], list[int]]:
    """Choose pairs to measure on, which are never trained on.

    Args:
        pairs: all pairs drawn.
        seed: seed of the draw.
        share: share of each source, 0 to 1; rounded down, and limited so that REZE has enough pairs of the source left.

    Returns:
        Training rows and held-aside rows, both ascending. All sources have the same share and the same limit.

    Example:
        >>> rows = [f"text {number}" for number in range(25)]
        >>> pairs = Pairs(
        ...     anchors=tuple(rows), positives=tuple(rows), source_ids=(0,) * 20 + (1,) * 5, sources=("a", "b"),
        ...     seen=(20, 5),
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
