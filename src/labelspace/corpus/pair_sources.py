"""Anchor-positive pairs from tables of any kind, one by one (REZE, appendix C.1).

    open_pairs            a table with an anchor and a positive column    retrieval, reranking, summarization, bitext
    open_labelled_pairs   a table with a text and a label column          classification, clustering
    open_scored_pairs     a table with two texts and a score or 0/1       pair classification, STS

As in the paper, only positives become pairs: a row without a label or with a score below `min_score` is left out,
and an empty half is an error. A query with a list of positives gives one pair per positive; an empty list is left
out and counted. For clustering, the paper uses a set of texts as one anchor without giving its size or how texts
are joined; here each text is an anchor, as in classification. See `readers` for reading and overlong texts, and
`pairs` for the draw.
"""

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, final

import pyarrow as pa

from labelspace.checks import check_number, did_you_mean
from labelspace.corpus.policy import DocumentPolicy, is_missing
from labelspace.corpus.readers import DocumentTable, open_table
from labelspace.corpus.wording import missing_column
from labelspace.errors import InputError, warn
from labelspace.seeds import child_seed


class Pair(NamedTuple):
    """An anchor, its positive, and their source."""

    anchor: str
    positive: str
    source: str


@final
class PairSource:
    """A stream of pairs; made by `open_pairs`, `open_labelled_pairs` or `open_scored_pairs`.

    Each iteration reads the table again, in constant memory.

    Args:
        table: the rows.
        name: name of the source; None if each row names its own.
        read: turns a batch and the number of its first row into pairs, with None for each row whose list of
            positives is empty.
        nothing: the end of the error message if no row becomes a pair.
        source_column: the column that names the source of each row, if any.
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
        """Yield the pairs in row order.

        Raises:
            InputError: a damaged file, a row without a required text, or no pair at all.

        Warns:
            LabelSpaceWarning: some rows have an empty list of positives; counted at the end.
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
        if not count:
            where = _where(self.table)
            nothing = "the list of positives of every row is empty; fill one in" if without else self._nothing
            raise InputError(f"{where}: has no positive pair; {nothing.format(rows=rows)}, or leave it out.")
        if without:
            have = "has" if without == 1 else "have"
            told = f"{without:,} of {rows:,} rows {have} an empty list of positives; they give no pairs."
            warn(f"{_where(self.table)}: {told}")


def open_pairs(
    source: object,
    *,
    name: str | None = None,
    anchor_column: str = "anchor",
    positive_column: str = "positive",
    source_column: str | None = "source",
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of anchor-positive pairs without reading it.

    A column `source`, which is optional, names the source of each row. If it means something else, such as an address,
    pass `source_column=None`.

    Args:
        source: a path or glob, a list of paths, a table in memory or a stream, as for `open_table`.
        name: name of the source if no column gives it; None: the file name without its extension.
        anchor_column: the column of anchors: queries, questions, long texts.
        positive_column: the column of positives: passages, answers, summaries; or of lists of them, one pair for each.
        source_column: the column that names the source of each row; only the default `"source"` may be missing.
            None: no column does.
        batch_rows: rows read together; changes no result.

    Returns:
        The pairs; each iteration reads the table again.

    Raises:
        ColumnError: a column is missing; the message lists the columns.
        InputError: a file is missing or cannot be read, or a source has no name.

    Warns:
        LabelSpaceWarning: another column, `label` or `score`, suggests that some pairs are negatives.

    Example:
        >>> table = pa.table({"anchor": ["who?"], "positive": ["she"], "source": ["qa"]})
        >>> list(open_pairs(table))
        [Pair(anchor='who?', positive='she', source='qa')]
    """
    table = open_table(source, text_column=anchor_column, label_column=positive_column, batch_rows=batch_rows)
    if source_column not in (None, "source", *table.columns):
        raise missing_column(_where(table), source_column, table.columns)
    named = source_column if source_column in table.columns else None
    own = _name(table, name) if named is None else None
    anchors, positives = _Column(table, anchor_column), _Column(table, positive_column)
    names = None if named is None else _Column(table, named)
    for column in ("label", "score"):
        if column in table.columns and column not in (anchor_column, positive_column, named):
            warn(
                f"{_where(table)}: every row is taken for a positive pair, whatever its "
                f"column {column!r} says; if that marks negatives, use open_scored_pairs (--scored, --min-score)."
            )

    def read(batch: pa.RecordBatch, first: int) -> Iterator[Pair | None]:
        rows = zip(anchors.texts(batch, first), positives.lists(batch, first), strict=True)
        sources = [own or ""] * batch.num_rows if names is None else names.texts(batch, first)
        for (one, others), row_source in zip(rows, sources, strict=True):
            if not others:
                yield None
            for other in others:
                yield Pair(one, other, row_source)

    nothing = "it has {rows} rows; give it some"
    return PairSource(table, name=own, read=read, nothing=nothing, source_column=named)


def open_labelled_pairs(
    source: object,
    *,
    name: str | None = None,
    text_column: str = "text",
    label_column: str = "label",
    descriptions: Mapping[str, Sequence[str]] | None = None,
    seed: int = 0,
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of labelled texts: the positive of a text is its label name, or a description of its label.

    Rows without a label (None, NaN, an empty cell, -1) are left out. Labels are names; numbers are accepted if the
    table's metadata names them, see `open_table`.

    Args:
        source: as in `open_pairs`.
        name: as in `open_pairs`.
        text_column: the column of texts.
        label_column: the column of label names.
        descriptions: texts by label name, as in a label space. Seed and text choose one of them as the positive; a
            label with an empty list keeps its name. None: the label name itself.
        seed: seed of the choice among descriptions.
        batch_rows: as in `open_pairs`.

    Returns:
        The pairs; each iteration reads the table again.

    Raises:
        ColumnError: a column is missing.
        InputError: as `open_pairs`, or descriptions that are not lists of texts; on reading, a label that is not in
            `descriptions`.

    Example:
        >>> table = pa.table({"text": ["the cup is theirs", "?"], "label": ["sports", None]})
        >>> [pair.positive for pair in open_labelled_pairs(table, name="news")]
        ['sports']
        >>> [pair.positive for pair in open_labelled_pairs(table, name="news", descriptions={"sports": ["matches"]})]
        ['matches']
    """
    known = (
        None
        if descriptions is None
        else {key.strip(): _descriptions(key, texts) for key, texts in descriptions.items()}
    )
    table = open_table(source, text_column=text_column, label_column=label_column, batch_rows=batch_rows)
    own = _name(table, name)
    anchors, labels = _Column(table, text_column), _Column(table, label_column)
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
        values = [None if value == -1 else value for value in batch.column(label_column).to_pylist()]
        kept = [
            row
            for row, value in enumerate(values)
            if not (is_missing(value) or (isinstance(value, str) and value.strip() in nothing))
        ]
        texts = anchors.texts(batch, first, kept)
        names = [name.strip() for name in labels.texts(batch, first, kept)]
        for row, one, value in zip(kept, texts, names, strict=True):
            yield Pair(one, positive(one, value, first + row), own)

    return PairSource(table, name=own, read=read, nothing="none of its {rows} rows has a label; add labels")


def open_scored_pairs(
    source: object,
    *,
    min_score: float,
    name: str | None = None,
    anchor_column: str = "anchor",
    positive_column: str = "positive",
    score_column: str = "label",
    batch_rows: int = 1024,
) -> PairSource:
    """Open a table of scored pairs of texts: those with a score of at least `min_score` become pairs.

    Rows without a score are left out.

    Args:
        source: as in `open_pairs`.
        min_score: the least score of a positive: 1 for labels 0 and 1, perhaps 4 for similarities from 0 to 5.
        name: as in `open_pairs`.
        anchor_column: the column of first texts.
        positive_column: the column of second texts.
        score_column: the column of scores or labels: numbers, booleans, or numbers as text in a file.
        batch_rows: as in `open_pairs`.

    Returns:
        The pairs; each iteration reads the table again.

    Raises:
        ColumnError: a column is missing.
        ConfigError: `min_score` is not a number.
        InputError: as `open_pairs`; on reading, a score that is not a number.

    Example:
        >>> table = pa.table({"anchor": ["a", "b"], "positive": ["A", "C"], "label": [1, 0]})
        >>> [pair.anchor for pair in open_scored_pairs(table, min_score=1, name="duplicates")]
        ['a']
    """
    check_number("min_score", min_score)
    table = open_table(
        source, text_column=anchor_column, label_column=positive_column, id_column=score_column, batch_rows=batch_rows
    )
    own = _name(table, name)
    anchors, positives = _Column(table, anchor_column), _Column(table, positive_column)

    def read(batch: pa.RecordBatch, first: int) -> Iterator[Pair]:
        scores = [
            _score(value, lambda row=first + row: f"{table.place(row)}, column {score_column!r},")
            for row, value in enumerate(batch.column(score_column).to_pylist())
        ]
        kept = [row for row, value in enumerate(scores) if value is not None and value >= min_score]
        for one, other in zip(anchors.texts(batch, first, kept), positives.texts(batch, first, kept), strict=True):
            yield Pair(one, other, own)

    nothing = f"none of its {{rows}} rows has a {score_column} of at least {min_score:g}; lower min_score"
    return PairSource(table, name=own, read=read, nothing=nothing)


def ticket(key: bytes, *texts: str) -> int:
    """Return a pseudorandom number of 128 bits that depends only on the key and the texts."""
    digest = hashlib.blake2b(digest_size=16, key=key)
    for text in texts:
        encoded = text.encode()
        digest.update(len(encoded).to_bytes(8, "big") + encoded)
    return int.from_bytes(digest.digest(), "big")


@final
class _Column:
    """A text column without missing or empty values."""

    def __init__(self, table: DocumentTable, name: str) -> None:
        self._table, self._name, self._noted = table, name, False
        self._policy = DocumentPolicy(lambda row: f"{table.place(row)}, column {name!r},")

    def texts(self, batch: pa.RecordBatch, first: int, rows: Sequence[int] | None = None) -> list[str]:
        """Return the texts of a batch, or of some of its rows; `first` is the number of its first row."""
        values = batch.column(self._name).to_pylist()
        texts = [self._text(values[row], first + row) for row in (range(len(values)) if rows is None else rows)]
        self._warn()
        return texts

    def lists(self, batch: pa.RecordBatch, first: int) -> list[list[str]]:
        """Return the texts of each row of a batch: all texts of a list, or the single text."""
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
                warn(f"{note} Later ones are not reported.")
            self._noted = True


def _where(table: DocumentTable) -> str:
    return table.place(0).rpartition(": row ")[0]


def _name(table: DocumentTable, name: str | None) -> str:
    if name is not None:
        return name
    files = table.file_names
    if len(files) != 1:
        what = f"{len(files)} files read together" if files else "a table in memory"
        raise InputError(f"{what} must be given a name: pass name=..., or add a column 'source'.")
    return name_of_file(files[0])


def name_of_file(file: str) -> str:
    """Return the default source name of a file: its name without folder and extension.

    Example:
        >>> name_of_file("pairs/news.jsonl.gz")
        'news'
    """
    path = Path(file)
    return (path.with_suffix("") if path.suffix.lower() == ".gz" else path).stem


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
        return float(value)  # pyright: ignore[reportArgumentType] - other types are caught below
    except (TypeError, ValueError) as error:
        raise InputError(f"{place()} is not a number but {value!r:.60}; scores must be numbers.") from error
