"""Pairs of premise and hypothesis: read, checked, drawn and balanced.

A file is Parquet with the columns `premise`, `hypothesis`, `label` (0 entailment, 1 neutral, 2 contradiction) and
`source`.
"""

import hashlib
import random
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, final

from labelspace.checks import did_you_mean
from labelspace.errors import ColumnError, InputError
from labelspace.seeds import child_seed

if TYPE_CHECKING:
    import pyarrow as pa

LABELS = ("entailment", "neutral", "contradiction")
COLUMNS = ("premise", "hypothesis", "label", "source")
DEV_SOURCES = (
    "mnli_matched_dev",
    "mnli_mismatched_dev_tok",
    "anli_r1_dev",
    "anli_r2_dev",
    "anli_r3_dev",
    "lingnli_val",
    "climate_fever_dev",
)
"""The paper's dev sets, as far as available; Climate-FEVER replaces FEVER-NLI, and WANLI has no replacement."""


@final
@dataclass(frozen=True, kw_only=True)
class Pairs:
    """Pairs in memory, row by row."""

    premises: tuple[str, ...]
    """The premises."""

    hypotheses: tuple[str, ...]
    """The hypothesis of each premise."""

    labels: tuple[int, ...]
    """0 entailment, 1 neutral, 2 contradiction."""

    sources: tuple[str, ...]
    """Source of each row."""

    def __len__(self) -> int:
        return len(self.labels)

    def take(self, rows: Sequence[int]) -> "Pairs":
        """Return some rows, in the order given."""
        return Pairs(
            premises=tuple(self.premises[row] for row in rows),
            hypotheses=tuple(self.hypotheses[row] for row in rows),
            labels=tuple(self.labels[row] for row in rows),
            sources=tuple(self.sources[row] for row in rows),
        )

    def counts(self) -> dict[str, int]:
        """Return the number of rows of each source, by name."""
        return dict(sorted(Counter(self.sources).items()))

    def fingerprint(self) -> str:
        """Return a hash of all rows in order."""
        digest = hashlib.sha256()
        for row in zip(self.premises, self.hypotheses, self.labels, self.sources, strict=True):
            digest.update(repr(row).encode())
        return digest.hexdigest()


def read_pairs(path: str | Path, *, leave_out: Iterable[str] = (), limit: int | None = None, seed: int = 0) -> Pairs:
    """Read a Parquet file of pairs.

    Args:
        path: the file.
        leave_out: sources whose rows are dropped; unknown names are ignored.
        limit: at most so many rows, drawn without replacement; None: all.
        seed: seed of that draw.

    Returns:
        The rows in file order.

    Raises:
        InputError: no such file, not Parquet, an empty text, a label out of range, or no row left.
        ColumnError: a column is missing.

    Example:
        >>> read_pairs("no-such.parquet")
        Traceback (most recent call last):
        labelspace.errors.InputError: there is no file no-such.parquet; give a Parquet file of NLI pairs.
    """
    path = Path(path)
    table = _read_table(path)
    if not table.num_rows:
        raise InputError(f"{path} holds no row; give a Parquet file of NLI pairs.")
    _check_table(path, table)
    left_out = set(leave_out)
    columns = {name: table.column(name).to_pylist() for name in COLUMNS}
    rows = [row for row, source in enumerate(columns["source"]) if source not in left_out]
    if not rows:
        raise InputError(f"{path} holds no row when {', '.join(sorted(left_out))} are left out; leave out fewer.")
    if limit is not None and limit < len(rows):
        rows = sorted(random.Random(child_seed(seed, "max_pairs")).sample(rows, limit))
    return Pairs(
        premises=tuple(columns["premise"]),
        hypotheses=tuple(columns["hypothesis"]),
        labels=tuple(columns["label"]),
        sources=tuple(columns["source"]),
    ).take(rows)


def sources_of(path: str | Path) -> set[str]:
    """Return the names of the sources of a file.

    Raises:
        InputError: no such file, or not Parquet.
        ColumnError: a column is missing.
    """
    return set(_read_table(Path(path)).column("source").unique().to_pylist()) - {None}


def check_sources(leave_out: Iterable[str], known: Iterable[str]) -> None:
    """Refuse unknown names of sources, so that a typo does not keep rows whose licence forbids their use.

    Raises:
        InputError: an unknown name, with the closest known one.
    """
    known = sorted(set(known))
    for name in leave_out:
        if name not in known:
            raise InputError(f"there is no source {name!r}.{did_you_mean(name, known)} There are: {', '.join(known)}.")


def balanced_dev(pairs: Pairs, *, sources: Sequence[str] | None = None, per_class: int = 60, seed: int = 0) -> Pairs:
    """Draw the same number of pairs from every source and every class.

    Args:
        pairs: the pairs to draw from.
        sources: sources to use; None: those of `DEV_SOURCES` that are present or, failing that, all with three classes.
        per_class: pairs per class and source; if any class has fewer, its size is used for all.
        seed: seed of the draw.

    Returns:
        `len(sources) * 3 * n` pairs, n <= `per_class`, source by source and class by class.

    Raises:
        InputError: a source is missing or lacks a class.

    Example:
        >>> rows = [(f"p{n}", "h", n % 3, "mine") for n in range(12)]
        >>> premises, hypotheses, labels, names = zip(*rows)
        >>> every = Pairs(premises=premises, hypotheses=hypotheses, labels=labels, sources=names)
        >>> balanced_dev(every, per_class=2).labels
        (0, 0, 1, 1, 2, 2)

    Reference:
        BTZSC benchmark, appendix C.1, "Validation signal".
    """
    places: dict[tuple[str, int], list[int]] = {}
    for row, (source, label) in enumerate(zip(pairs.sources, pairs.labels, strict=True)):
        places.setdefault((source, label), []).append(row)
    chosen = _dev_sources(places) if sources is None else list(sources)
    for source in chosen:
        for label, name in enumerate(LABELS):
            if (source, label) not in places:
                raise InputError(f"the dev source {source!r} has no row of class {name}; leave it out.")
    if not chosen:
        raise InputError("no dev source has rows of all three classes; give a dev file that has some.")
    size = min(per_class, *(len(places[source, label]) for source in chosen for label in range(len(LABELS))))
    rows = []
    for source in chosen:
        for label in range(len(LABELS)):
            draw = random.Random(child_seed(seed, "dev", source, label))
            rows += sorted(draw.sample(places[source, label], size))
    return pairs.take(rows)


def smallest_class(pairs: Pairs) -> tuple[str, str, int]:
    """Return source, class and number of rows of the smallest class, which limits a balanced draw."""
    (source, label), count = min(
        Counter(zip(pairs.sources, pairs.labels, strict=True)).items(), key=lambda item: item[1]
    )
    return source, LABELS[label], count


def _read_table(path: Path) -> "pa.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.is_file():
        raise InputError(f"there is no file {path}; give a Parquet file of NLI pairs.")
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in COLUMNS if name not in file.schema_arrow.names]
            if missing:
                held = ", ".join(file.schema_arrow.names)
                raise ColumnError(
                    f"{path} has no column {missing[0]!r}; it has {held}, and needs {', '.join(COLUMNS)}."
                )
            return file.read(columns=list(COLUMNS))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"{path} cannot be read as Parquet ({str(error).splitlines()[0]}); make it again.") from error


def _check_table(path: Path, table: "pa.Table") -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    for name in ("premise", "hypothesis", "source"):
        column = table.column(name)
        if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
            raise InputError(f"{path}: the column {name} must hold texts. Got {column.type} instead.")
        trimmed = pc.utf8_trim_whitespace(column)  # pyright: ignore[reportAttributeAccessIssue]
        empty = pc.fill_null(pc.equal(trimmed, ""), True)  # pyright: ignore[reportAttributeAccessIssue]
        row = empty.index(True).as_py()
        if row >= 0:
            raise InputError(f"{path}: row {row + 1} has an empty {name}; fill it in or remove the row.")
    labels = table.column("label")
    if not pa.types.is_integer(labels.type):
        raise InputError(f"{path}: the column label must hold 0, 1 or 2. Got {labels.type} instead.")
    known = pc.is_in(labels, value_set=pa.array([0, 1, 2], labels.type))  # pyright: ignore[reportAttributeAccessIssue]
    row = known.index(False).as_py()
    if row >= 0:
        got = labels[row].as_py()
        raise InputError(f"{path}: row {row + 1} has label {got}; 0, 1 and 2 are entailment, neutral, contradiction.")


def _dev_sources(places: dict[tuple[str, int], list[int]]) -> list[str]:
    there = {source for source, _ in places}
    papers = [source for source in DEV_SOURCES if source in there]
    whole = [source for source in there if all((source, label) in places for label in range(len(LABELS)))]
    return papers or sorted(whole)
