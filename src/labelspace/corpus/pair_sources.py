"""Tables of any kind as anchor-positive pairs, one by one (REZE, appendix C.1).

    open_pairs            a table with an anchor and a positive column    retrieval, reranking, summarization, bitext
    open_labelled_pairs   a table with a text and a label column          classification, clustering
    open_scored_pairs     a table with two texts and a score or 0/1       pair classification, STS

As in the paper, only positives become pairs: a row without a label, or below `min_score`, is left out, and a pair
with an empty half is an error. A query with a list of positives becomes a pair with each, and one with an empty list
is left out and counted. Of clustering the paper takes a set of texts as one anchor and does not say how large or how
joined; here each text is an anchor, as in classification. How tables are read, and what becomes of overlong texts, is
told in `readers`; what becomes of the pairs, in `pairs`.
"""

import hashlib
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, final

import pyarrow as pa

from labelspace.checks import check_number, did_you_mean
from labelspace.corpus.policy import DocumentPolicy, is_missing
from labelspace.corpus.readers import DocumentTable, open_table
from labelspace.corpus.wording import missing_column
from labelspace.errors import InputError, LabelSpaceWarning
from labelspace.seeds import child_seed


class Pair(NamedTuple):
    """An anchor with its positive, and where they come from."""

    anchor: str
    positive: str
    source: str
    task_type: str


@final
class PairSource:
    """Pairs that are read as a stream; made by `open_pairs`, `open_labelled_pairs` or `open_scored_pairs`.

    Iterating reads the table anew, in constant memory.

    Args:
        table: the rows.
        name: of the source; None where each row names its own.
        read: turns a batch of rows, the first of which has the number given, into pairs, and None for each row whose
            list of positives is empty.
        nothing: what to say where no row becomes a pair, as the end of a sentence.
        source_column: the column that names the source of each row, if one does.
    """

    def __init__(
        self,
        table: DocumentTable,
        *,
        name: str | None,
        read: Callable[[pa.RecordBatch, int], Iterator[Pair | None]],
        nothing: str,
        source_column: str | None = None,
    ) -> None:
        self.table = table
        self.name = name
        self.source_column = source_column
        self._read = read
        self._nothing = nothing

    def __iter__(self) -> Iterator[Pair]:
        """Yield the pairs in the order of the rows.

        Raises:
            InputError: a damaged file, a row without a text where one belongs, or no pair at all.

        Warns:
            LabelSpaceWarning: at the end, how many rows have an empty list of positives.
        """
        rows = count = without = 0
        for batch in self.table.batches():
            for pair in self._read(batch, rows):
                if pair is None:
                    without += 1
                    continue
                count += 1
                yield pair
            rows += batch.num_rows
        where = _where(self.table)
        if not count:
            nothing = "the list of positives of every row is empty; fill one in" if without else self._nothing
            raise InputError(f"{where}: has no positive pair; {nothing.format(rows=rows)}, or leave it out.")
        if without:
            have = "has" if without == 1 else "have"
            said = f"{where}: {without:,} of {rows:,} rows {have} an empty list of positives; no pair is made of them."
            warnings.warn(said, LabelSpaceWarning, stacklevel=2)


def open_pairs(
    source: object,
    *,
    name: str | None = None,
    anchor: str = "anchor",
    positive: str = "positive",
    source_column: str | None = "source",
    task_type: str = "",
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of anchor-positive pairs without reading it.

    A column `source` names the source of each row, a column `task_type` its task type; both may be missing. Where
    `source` means something else, such as an address, pass `source_column=None`.

    Args:
        source: a path or glob, a list of paths, a table in memory or a stream, as `open_table` takes it.
        name: of the source where no column tells it; None: that of the file, without its extension.
        anchor: the column of the anchors: queries, questions, long texts.
        positive: the column of the positives: passages, answers, summaries; or of lists of them, a pair for each and
            none for an empty one.
        source_column: the column that names the source of each row; only `"source"` may be missing. None: no column
            does.
        task_type: where no column `task_type` tells it.
        batch_rows: rows read together; changes no result.

    Returns:
        The pairs, read anew each time they are iterated.

    Raises:
        ColumnError: a column that is not there; lists those that are.
        InputError: no such file, or one that cannot be read, or a source without a name.

    Warns:
        LabelSpaceWarning: a column beside the pairs says that some may be negatives.

    Example:
        >>> table = pa.table({"anchor": ["who?"], "positive": ["she"], "source": ["qa"]})
        >>> list(open_pairs(table))
        [Pair(anchor='who?', positive='she', source='qa', task_type='')]
    """
    table = open_table(source, text=anchor, label=positive, batch_rows=batch_rows)
    if source_column not in (None, "source", *table.columns):
        raise missing_column(_where(table), source_column, table.columns)
    named = source_column if source_column in table.columns else None
    own = _name(table, name) if named is None else None
    anchors, positives = _Column(table, anchor), _Column(table, positive)
    names = None if named is None else _Column(table, named)
    for column in ("label", "score"):
        if column in table.columns and column not in (anchor, positive, named):
            warnings.warn(
                f"{_where(table)}: every row is taken for a positive pair, whatever its "
                f"column {column!r} says; where that marks negatives, use open_scored_pairs (--scored, --min-score).",
                LabelSpaceWarning,
                stacklevel=2,
            )

    def read(batch: pa.RecordBatch, first: int) -> Iterator[Pair | None]:
        rows = zip(anchors.texts(batch, first), positives.lists(batch, first), strict=True)
        sources = [own or ""] * batch.num_rows if names is None else names.texts(batch, first)
        types = batch.column("task_type").to_pylist() if "task_type" in table.columns else [task_type] * batch.num_rows
        for (one, others), row_source, kind in zip(rows, sources, types, strict=True):
            if not others:
                yield None
            for other in others:
                yield Pair(one, other, row_source, "" if is_missing(kind) else str(kind))

    nothing = "it has {rows} rows; give it some"
    return PairSource(table, name=own, read=read, nothing=nothing, source_column=named)


def open_labelled_pairs(
    source: object,
    *,
    name: str | None = None,
    text: str = "text",
    label: str = "label",
    descriptions: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    task_type: str = "classification",
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of labelled texts: the positive of a text is its label in words.

    Rows without a label (None, NaN, an empty cell, -1) are left out. The labels are names; numbers are taken where a
    data set of `datasets` says which names they stand for (`ClassLabel`).

    Args:
        source: as in `open_pairs`.
        name: as in `open_pairs`.
        text: the column of the texts.
        label: the column of the label names.
        descriptions: texts by label name, as a label space has them: one of them, drawn by the seed and the text, is
            the positive. A label without any keeps its name. None: the label name itself.
        seed: of the draw among descriptions.
        task_type: for the record.
        batch_rows: as in `open_pairs`.

    Returns:
        The pairs, read anew each time they are iterated.

    Raises:
        ColumnError: a column that is not there.
        InputError: as `open_pairs`, or descriptions that are no lists of texts; on reading, a label that
            `descriptions` does not have.

    Example:
        >>> table = pa.table({"text": ["the cup is theirs", "?"], "label": ["sports", None]})
        >>> [pair.positive for pair in open_labelled_pairs(table, name="news")]
        ['sports']
        >>> [pair.positive for pair in open_labelled_pairs(table, name="news", descriptions={"sports": ["matches"]})]
        ['matches']
    """
    known = None if descriptions is None else {key: _descriptions(key, texts) for key, texts in descriptions.items()}
    numbered = _names_of_numbers(source, label)
    table = open_table(source, text=text, label=label, batch_rows=batch_rows)
    own = _name(table, name)
    anchors, labels = _Column(table, text), _Column(table, label)
    key = child_seed(seed, "pair descriptions").to_bytes(8, "big")
    nothing = {"", "-1"} - (known or {}).keys()

    def positive(anchor: str, value: str, row: int) -> str:
        if known is None:
            return value
        if value not in known:
            listed = ", ".join(list(known)[:20]) + (", ..." if len(known) > 20 else "")
            raise InputError(
                f"{table.place(row)} has the label {value!r}, which has no descriptions."
                f"{did_you_mean(value, known)} There are: {listed}."
            )
        return known[value][ticket(key, anchor) % len(known[value])] if known[value] else value

    def read(batch: pa.RecordBatch, first: int) -> Iterator[Pair]:
        values = [None if value == -1 else value for value in batch.column(label).to_pylist()]
        kept = [
            row
            for row, value in enumerate(values)
            if not (is_missing(value) or (isinstance(value, str) and value.strip() in nothing))
        ]
        texts = anchors.texts(batch, first, kept)
        if numbered is None:
            names = labels.texts(batch, first, kept)
        else:
            names = [numbered[int(value)] for row in kept if (value := values[row]) is not None]
        for row, one, value in zip(kept, texts, names, strict=True):
            yield Pair(one, positive(one, value, first + row), own, task_type)

    return PairSource(table, name=own, read=read, nothing="none of its {rows} rows has a label; give it some that have")


def open_scored_pairs(
    source: object,
    *,
    min_score: float,
    name: str | None = None,
    anchor: str = "anchor",
    positive: str = "positive",
    score: str = "label",
    task_type: str = "pair_classification",
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of scored pairs of texts: those with a score of `min_score` or more are pairs.

    Rows without a score are left out, as all others that nothing says to be positive.

    Args:
        source: as in `open_pairs`.
        min_score: the least score of a positive: 1 for labels 0 and 1, perhaps 4 for similarities from 0 to 5.
        name: as in `open_pairs`.
        anchor: the column of the first texts.
        positive: the column of the second texts.
        score: the column of the scores or labels: numbers, True and False, or a file's texts of numbers.
        task_type: for the record.
        batch_rows: as in `open_pairs`.

    Returns:
        The pairs, read anew each time they are iterated.

    Raises:
        ColumnError: a column that is not there.
        ConfigError: `min_score` is no number.
        InputError: as `open_pairs`; on reading, a score that is no number.

    Example:
        >>> table = pa.table({"anchor": ["a", "b"], "positive": ["A", "C"], "label": [1, 0]})
        >>> [pair.anchor for pair in open_scored_pairs(table, min_score=1, name="duplicates")]
        ['a']
    """
    check_number("min_score", min_score)
    table = open_table(source, text=anchor, label=positive, id=score, batch_rows=batch_rows)
    own = _name(table, name)
    anchors, positives = _Column(table, anchor), _Column(table, positive)

    def read(batch: pa.RecordBatch, first: int) -> Iterator[Pair]:
        scores = [
            _score(value, lambda row=first + row: f"{table.place(row)}, column {score!r},")
            for row, value in enumerate(batch.column(score).to_pylist())
        ]
        kept = [row for row, value in enumerate(scores) if value is not None and value >= min_score]
        for one, other in zip(anchors.texts(batch, first, kept), positives.texts(batch, first, kept), strict=True):
            yield Pair(one, other, own, task_type)

    nothing = f"none of its {{rows}} rows has a {score} of at least {min_score:g}; lower min_score"
    return PairSource(table, name=own, read=read, nothing=nothing)


def ticket(key: bytes, *texts: str) -> int:
    """Return a number of 128 bits that the key and the texts decide, as good as drawn."""
    digest = hashlib.blake2b(digest_size=16, key=key)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return int.from_bytes(digest.digest(), "big")


@final
class _Column:
    """A column of texts, none of them missing or empty."""

    def __init__(self, table: DocumentTable, name: str) -> None:
        self._table, self._name, self._noted = table, name, False
        self._policy = DocumentPolicy(lambda row: f"{table.place(row)}, column {name!r},")

    def texts(self, batch: pa.RecordBatch, first: int, rows: Sequence[int] | None = None) -> list[str]:
        """Return the texts of a batch that begins with row `first`, or those of some of its rows."""
        values = batch.column(self._name).to_pylist()
        texts = [self._text(values[row], first + row) for row in (range(len(values)) if rows is None else rows)]
        self._warn()
        return texts

    def lists(self, batch: pa.RecordBatch, first: int) -> list[list[str]]:
        """Return the texts of each row of a batch: those of a list, or the one that stands there."""
        values = batch.column(self._name).to_pylist()
        texts = [
            [self._text(one, row) for one in (value if isinstance(value, list) else [value])]
            for row, value in enumerate(values, first)
        ]
        self._warn()
        return texts

    def _text(self, value: object, row: int) -> str:
        (text,) = self._policy.clean([value], row)
        if not text or text.isspace():
            raise InputError(f"{self._table.place(row)} has an empty {self._name}; fill it in or remove the row.")
        return text

    def _warn(self) -> None:
        for note in self._policy.notes().values():
            if not self._noted:
                warnings.warn(f"{note} Later ones are not reported.", LabelSpaceWarning, stacklevel=5)
            self._noted = True


def _where(table: DocumentTable) -> str:
    return table.place(0).rpartition(": row ")[0]


def _name(table: DocumentTable, name: str | None) -> str:
    if name is not None:
        return name
    files = table.fingerprint()["files"]
    if files is None or len(files) > 1:
        what = "a table in memory" if files is None else f"{len(files)} files read together"
        raise InputError(f"{what} must be given a name: pass name=..., or a column 'source'.")
    return name_of_file(files[0]["name"])


def name_of_file(file: str) -> str:
    """Return what the source in a file is called: the file without folder and extension.

    Example:
        >>> name_of_file("pairs/news.jsonl.gz")
        'news'
    """
    path = Path(file)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).stem


def _names_of_numbers(source: object, label: str) -> Sequence[str] | None:
    """The names of a `ClassLabel` of `datasets`, which keeps numbers in its rows; None where there is none."""
    features = getattr(source, "features", None)
    return getattr(features.get(label), "names", None) if isinstance(features, Mapping) else None


def _descriptions(label: str, texts: object) -> tuple[str, ...]:
    if isinstance(texts, str) or not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise InputError(f"the descriptions of {label!r} must be a list of texts. Got {texts!r:.60} instead.")
    if any(not text or text.isspace() for text in texts):
        raise InputError(f"the label {label!r} has an empty description; fill it in or remove it.")
    return tuple(texts)


def _score(value: object, place: Callable[[], str]) -> float | None:
    if is_missing(value) or (isinstance(value, str) and not value.strip()):
        return None
    try:
        return float(value)  # pyright: ignore[reportArgumentType] - what it does not take is caught
    except (TypeError, ValueError) as error:
        raise InputError(f"{place()} is not a number but {value!r:.60}; scores must be numbers.") from error
