"""Documents that the user labelled by a click, in a CSV file beside the label file."""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.corpus.dialects import Dialect
from labelspace.corpus.files_to_rows import csv_pieces, csv_schema, readable
from labelspace.errors import InputError
from labelspace.folders import write_atomically
from labelspace.seeds import child_seed

COLUMNS = ("text", "label", "source")
SOURCES = ("random", "doubt", "chosen")
"""Why a document was labelled: drawn at random, proposed because the answer is in doubt, or picked by the user."""


@final
class Clicks:
    """Rows of text, label and source, one for each text; the file is written with each click.

    Args:
        path: a CSV file; it is made with the first click.

    Raises:
        InputError: the file cannot be read, lacks the columns text and label, or has two different rows of a text.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.rows: dict[str, dict[str, str]] = {}
        self._read()

    def label(self, text: str, label: str | None, source: str) -> None:
        """Set the label of a text, or take it away with None, and write the file."""
        if source not in SOURCES:
            raise InputError(f"source must be one of {', '.join(SOURCES)}. Got {source!r} instead; reload the page.")
        self._read()
        if label is None:
            self.rows.pop(text, None)
        else:
            before = self.rows.get(text, {})
            self.rows[text] = {**before, "text": text, "label": label, "source": before.get("source") or source}
        self._write()

    def called(self, label: str) -> frozenset[str]:
        """Return the texts that have this label."""
        self._read()
        return frozenset(text for text, row in self.rows.items() if row["label"] == label)

    def rename(self, old: str, new: str, *, keep: Collection[str] = ()) -> None:
        """Give a label another name in the rows of all texts but those to keep."""
        texts = self.called(old).difference(keep)
        if texts:
            self.rows = {text: {**row, "label": new} if text in texts else row for text, row in self.rows.items()}
            self._write()

    def labels(self, texts: Sequence[str], names: Sequence[str], *, drawn: bool = False) -> list[str | None]:
        """Return the label of each text, None where it has none of these names.

        Args:
            texts: documents.
            names: names of labels.
            drawn: True: only documents that were drawn at random, which an estimate may count.
        """
        known = {
            text: row["label"]
            for text, row in self.rows.items()
            if row["label"] in names and (not drawn or row["source"] == "random")
        }
        return [known.get(text) for text in texts]

    def to_dict(self) -> dict[str, Any]:
        """Return the rows, ready for JSON."""
        return {"file": self.path.name, "rows": [{key: row[key] for key in COLUMNS} for row in self.rows.values()]}

    def _read(self) -> None:
        if not self.path.exists():
            return
        dialect = Dialect(",", "utf-8")
        try:
            with readable(self.path):
                schema = csv_schema(self.path, dialect)
                rows = [row for piece in csv_pieces(self.path, schema, dialect) for row in piece.rows.to_pylist()]
        except InputError as error:
            raise InputError(f"{error} Mend this file, or move it away.") from error
        if not {"text", "label"} <= set(schema.names):
            raise InputError(f"{self.path}: the columns text and label are missing; mend it, or move it away.")
        self.rows = {}
        for row in rows:
            own = {**row, "source": row.get("source") or "chosen"}
            if self.rows.setdefault(row["text"], own) != own:
                raise InputError(
                    f"{self.path}: two rows are of the text {row['text']!r:.60}, and a click would leave one; mend "
                    "it, or move it away."
                )

    def _write(self) -> None:
        more = dict.fromkeys(key for row in self.rows.values() for key in row if key not in COLUMNS)
        columns = [*COLUMNS, *more]
        rows = ([row.get(column, "") for column in columns] for row in self.rows.values())
        write_atomically(self.path, as_csv([columns, *rows]))


def as_csv(rows: Iterable[Sequence[str]]) -> str:
    """Return rows as CSV; a row with a carriage return is quoted, which `csv` does for line feeds alone."""
    out = io.StringIO(newline="")
    for row in rows:
        quoting = csv.QUOTE_ALL if any("\r" in cell for cell in row) else csv.QUOTE_MINIMAL
        csv.writer(out, lineterminator="\n", quoting=quoting).writerow(row)
    return out.getvalue()


def proposals(
    texts: Sequence[str],
    labelled: Mapping[str, Mapping[str, str]],
    doubtful: NDArray[np.intp],
    disagree: NDArray[np.bool_] | None,
    *,
    most: int,
) -> list[dict[str, Any]]:
    """Return documents to label: by turns one drawn at random, and one of those that teach most.

    An estimate counts only those drawn at random. Those that teach most are where the encoder doubts most, and, once
    words have learnt the answers, disagrees with them.

    Args:
        texts: the documents.
        labelled: the rows of texts that have a label.
        doubtful: rows, the most doubtful first.
        disagree: [text] whether words answer otherwise; None: not known yet.
        most: number of documents.
    """
    draw = np.random.default_rng(child_seed(0, "studio")).permutation(len(texts)).tolist()
    teaching = doubtful.tolist()
    if disagree is not None:
        teaching.sort(key=lambda row: not disagree[row])  # stable: by doubt within each part
    sources = [row["source"] for row in labelled.values()]
    turn = int(sources.count("random") > sources.count("doubt"))
    ways = {"random": iter(draw), "doubt": iter(teaching)}
    found: dict[int, str] = {}
    while len(found) < most:
        way = ("random", "doubt")[(len(found) + turn) % 2]
        row = next((row for row in ways[way] if texts[row] not in labelled and row not in found), None)
        if row is None:
            break
        found[row] = way
    return [{"row": row, "source": source} for row, source in found.items()]
