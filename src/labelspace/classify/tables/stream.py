"""Prediction of whole files in constant memory; a kill loses at most one chunk."""

import hashlib
import json
from collections.abc import Iterator
from concurrent.futures.process import BrokenProcessPool
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa

from labelspace.checks import as_python, check_number
from labelspace.classify.fitted import Fitted, answerer, check_fitted
from labelspace.classify.long_texts import reads_windows, tell_cost
from labelspace.classify.tables.columns import output_schema
from labelspace.classify.tables.workers import answered
from labelspace.corpus import Documents, DocumentTable, ResumableWriter, open_table
from labelspace.corpus.dialects import own_delimiter
from labelspace.corpus.documents import check_kind
from labelspace.corpus.stores import located
from labelspace.errors import InputError, OutputError
from labelspace.progress import progress_bar

CHUNK_ROWS = 2048


@final
@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The result of `predict_file`."""

    path: Path | str
    """Path of the written file, or its address without credentials."""

    rows: int
    """Number of rows in it."""

    resumed_at: int
    """Rows done by an earlier run, all of them if it had finished; 0 for a fresh run."""

    abstained: int
    """Rows without a label: below the threshold, or above a limit; those of an earlier run count too."""


def predict_file(
    model: Fitted,
    source: Any,
    target: str | Path,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    resume: bool = False,
    overwrite: bool = False,
    all_scores: bool = False,
    top: int | None = None,
    prefix: str = "predicted_",
    workers: int = 1,
    chunk_rows: int = CHUNK_ROWS,
    delimiter: str = "auto",
    encoding: str = "auto",
    verbose: bool = False,
) -> Predicted:
    """Predict every row of a table and write the table with the predictions in added columns.

    The columns are `predicted_label` (null below the threshold or above the limit of uncertainty), `predicted_score`
    (the winner's cosine or logit), `predicted_probability` and, if the model measures it, `predicted_uncertainty`.
    Where a text may have several labels, `predicted_label` holds their names joined by `|`, null for none; score and
    probability are those of the likeliest label. The file appears in one step when all rows are done. Until then
    finished chunks are in `<target>.parts`, from where `resume=True` continues; the output has the same bytes as that
    of an uninterrupted run.

    Args:
        model: a fitted classifier.
        source: CSV, TSV, JSONL, Parquet (also .gz), a glob, an address such as `s3://bucket/key`, or a table in memory.
        target: a .parquet, .csv, .tsv, .jsonl (text also .gz) or .xlsx file, or its address.
        text_column: column with the documents.
        pair_column: column with the second texts, for a model fitted on pairs.
        resume: continue an interrupted run with the same input, model and options.
        overwrite: replace the target, and discard an interrupted run.
        all_scores: True adds one column `predicted_score:<label>` per label, and with several labels one column
            `predicted_probability:<label>`; for at most 2,000 labels.
        top: adds the likeliest labels of a row in columns `predicted_label:1`, `predicted_probability:1` and so on,
            also where `predicted_label` is null; all if there are fewer. None: only the prediction.
        prefix: prefix of the added columns.
        workers: processes that answer, each with its share of the threads and a model of its own; a script that asks
            for several needs `if __name__ == "__main__":`. The bytes are those of one process with as many threads as
            a worker has, and an interrupted run may continue with another number.
        chunk_rows: rows read, predicted and saved together.
        delimiter: delimiter in CSV and TSV files, as for `open_table`.
        encoding: encoding of CSV and TSV files, as for `open_table`.
        verbose: True shows rows done and an ETA.

    Returns:
        The path of the file and its number of rows.

    Raises:
        ConfigError: `top` is no number of labels, or stands beside `all_scores`; too many labels for `all_scores`.
        ColumnError: no such column.
        InputError: unreadable input or a row without a text (raised before anything is written), an existing output,
            or parts of another run, or with `resume` a finished file with other columns, other first texts or
            another number of rows.
        OutputError: the output cannot be written, or a worker was killed; finished rows are safe.
        ConfigError: `workers` is not a positive whole number.

    Example:
        >>> import tempfile
        >>> from labelspace import ZeroShotClassifier
        >>> clf = ZeroShotClassifier(["sports", "politics"], encoder="tests/data/tiny-bert").fit()
        >>> documents = pa.table({"id": [7, 8], "text": ["the match", "the vote"]})
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     done = predict_file(clf, documents, f"{folder}/out.csv")
        ...     done.rows, done.path.read_text().splitlines()[0]
        (2, 'id,text,predicted_label,predicted_score,predicted_probability')
    """
    model = answerer(model)
    check_fitted(model)
    check_number("workers", workers, least=1, whole=True)
    table = open_table(
        source,
        text_column=text_column,
        pair_column=pair_column,
        batch_rows=chunk_rows,
        delimiter=delimiter,
        encoding=encoding,
    )
    check_kind(table.kind, model.reads_)
    schema = output_schema(table.schema, model, prefix, all_scores, top)
    options = {"all_scores": all_scores, "prefix": prefix, "chunk_rows": table.batch_rows}
    fingerprint = {
        "input": table.fingerprint(),
        "model": model_fingerprint(model),
        "options": options if top is None else {**options, "top": top},
    }
    label = schema.names[len(table.schema)]
    abstained = 0
    out = ResumableWriter(target, schema=schema, fingerprint=fingerprint, resume=resume, overwrite=overwrite)
    out.check_place()
    if table.reads(out.path) and out.path.name.lower().endswith(".xlsx"):
        raise InputError(f"{out.place}: its other sheets and its formats would be lost; write to another file.")
    if not out.already_done:
        # Check all rows first: a file corrected half-way is a different input, so finished chunks would be lost.
        table.check_documents(out.check_rows)
    with out as writer, progress_bar("predicting", verbose=verbose) as report:
        if writer.already_done:
            rows, abstained = _check_same_rows(target, table, label, schema.names)
            return Predicted(path=writer.place, rows=rows, resumed_at=rows, abstained=abstained)
        resumed_at = read = writer.rows_done

        def chunks() -> Iterator[tuple[pa.RecordBatch, Documents]]:
            nonlocal read
            for batch in table.batches(skip_rows=resumed_at):
                documents = table.documents(batch)
                if read == resumed_at:
                    tell_cost(model, documents, more=len(documents) == table.batch_rows)
                read += batch.num_rows
                yield batch, documents

        try:
            with closing(
                answered(model, chunks(), schema, workers=workers, all_scores=all_scores, top=top)
            ) as rows_answered:
                for batch, columns in rows_answered:
                    writer.write(pa.record_batch([*batch.columns, *columns], schema=schema))
                    abstained += columns[0].null_count
                    report(writer.rows_done, table.rows or estimated_rows(table, read))
        except BrokenProcessPool as error:
            raise _worker_lost(writer, begun=writer.rows_done > resumed_at) from error
        writer.finish()
        if resumed_at:
            abstained = _counts(_finished(target, label))[1]
        return Predicted(path=writer.place, rows=writer.rows_done, resumed_at=resumed_at, abstained=abstained)


def _worker_lost(writer: ResumableWriter, *, begun: bool) -> OutputError:
    why = "killed, or out of memory"
    if not begun:
        why += ', or started by a script without `if __name__ == "__main__":`'
    if writer.rows_done:
        safe = f"{writer.rows_done} rows are safe in {writer.parts.name}/; continue with --resume"
    else:
        safe = "Nothing is lost; run again"
    return OutputError(
        f"{writer.path}: a worker ended before its work was done ({why}). {safe}, or with fewer workers."
    )


def model_fingerprint(model: Fitted) -> str:
    """Hash everything that a prediction depends on: weights, labels, the head, the decision, precision."""
    digest = hashlib.sha256()
    encoder: Any = getattr(model, "encoder_", None)
    for name, tensor in sorted(encoder.weights().items()) if encoder else ():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    for name, values in sorted(model.head_.tensors().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    for member in getattr(model.head_, "members", ()):  # of a consensus
        digest.update(model_fingerprint(member).encode())
    decision = as_python(asdict(model.decision()))
    decision = {key: value for key, value in decision.items() if value is not None or key not in ("cuts", "none")}
    facts = {"space": model.label_space_.to_dict(), "decision": decision}
    if reads_windows(model):
        facts["long_texts"] = "windows"
    if encoder is not None:
        facts["encoder"] = {key: value for key, value in encoder.describe().items() if key not in ("name", "source")}
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return digest.hexdigest()


def _check_same_rows(target: str | Path, table: DocumentTable, label: str, columns: list[str]) -> tuple[int, int]:
    """Return `_counts` of a finished file; it must have the columns and the rows that this run would write.

    Nothing tells the model and the other options of a finished run.
    """
    finished = _finished(target, label, batch_rows=table.batch_rows)
    rows, without = _counts(finished)
    odd = sorted(set(finished.columns) ^ set(columns)) if rows else []  # JSONL without rows names no column
    what = ""
    if odd:
        what = f"only one of the two has the column {odd[0]!r}"
    elif table.countable and rows != (due := _counted(table)):
        what = f"it has {rows:,} rows, the input {due:,}"
    elif table.countable and (row := _first_difference(finished, table)) is not None:
        what = f"row {row + 1} has another text"
    if what:
        raise InputError(
            f"{located(target)}: finished by a run with other input or options ({what}); choose another name, or "
            "replace it with overwrite=True (--overwrite)."
        )
    return rows, without


def _finished(target: str | Path, label: str, **options: Any) -> DocumentTable:
    """Open a file that this library wrote, so its name decides the format and nothing is guessed from the content."""
    dialect: Any = {"delimiter": own_delimiter(located(target)), "encoding": "utf-8"}
    return open_table(target, label_column=label, text_column=label, **dialect, **options)


def _first_difference(finished: DocumentTable, table: DocumentTable) -> int | None:
    """Return the first row of the first batch with another text; a format may change spaces and control characters."""
    batches = [next(each.batches(), None) for each in (finished, table)]
    for column in (table.text_column, table.pair_column):
        if column is None or None in batches:
            continue
        texts = (batch.column(column).to_pylist() for batch in batches if batch is not None)
        for row, pair in enumerate(zip(*texts, strict=True)):
            one, other = ("".join(filter(str.isalnum, text)) if isinstance(text, str) else "" for text in pair)
            if one and other and one != other:
                return row
    return None


def _counts(finished: DocumentTable) -> tuple[int, int]:
    """Return the number of rows of a finished file, and of those without a label."""
    rows = without = 0
    for batch in finished.batches():
        rows += batch.num_rows
        without += sum(name in (None, "") for name in batch.column(finished.text_column).to_pylist())
    return rows, without


def _counted(table: DocumentTable) -> int:
    return sum(batch.num_rows for batch in table.batches()) if table.rows is None else table.rows


def estimated_rows(table: DocumentTable, done: int) -> float | None:
    """Estimate the number of rows of a file from the rows per byte read so far."""
    read = table.bytes_read()
    return max(done, done * table.bytes_total / read) if read and table.bytes_total else None
