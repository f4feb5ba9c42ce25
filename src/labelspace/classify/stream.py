"""Prediction of whole files in constant memory; a kill loses at most one chunk."""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from labelspace.checks import check_number, plain
from labelspace.classify.answers import Answers, gathered
from labelspace.classify.base import Classifier
from labelspace.classify.decision import MeasuresDoubt
from labelspace.classify.long_texts import reads_windows, tell_cost
from labelspace.corpus import DocumentTable, ResumableWriter, open_table
from labelspace.corpus.dialects import own_delimiter
from labelspace.corpus.documents import check_kind
from labelspace.errors import ConfigError, InputError
from labelspace.progress import progress_bar

CHUNK_ROWS = 2048

MOST_COLUMNS = 2000
"""Most labels whose scores a file may hold, each in a column of its own."""


@final
@dataclass(frozen=True, kw_only=True)
class Predicted:
    """The result of `predict_file`."""

    path: Path
    """Path of the written file."""

    rows: int
    """Number of rows in it."""

    resumed_at: int
    """Rows done by an earlier run, all of them if it had finished; 0 for a fresh run."""

    abstained: int
    """Rows of this run without a label: below the threshold, or above the limit of uncertainty."""


def predict_file(
    model: Classifier,
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
        source: CSV, TSV, JSONL, Parquet (also .gz), a glob, or a table in memory.
        target: a .parquet, .csv, .tsv or .jsonl file (text also .gz).
        text_column: column with the documents.
        pair_column: column with the second texts, for a model fitted on pairs.
        resume: continue an interrupted run with the same input, model and options.
        overwrite: replace the target, and discard an interrupted run.
        all_scores: True adds one column `predicted_score:<label>` per label, and with several labels one column
            `predicted_probability:<label>`; for at most 2,000 labels.
        top: adds the likeliest labels of a row in columns `predicted_label:1`, `predicted_probability:1` and so on,
            also where `predicted_label` is null; all if there are fewer. None: only the prediction.
        prefix: prefix of the added columns.
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
            or parts of another run.
        OutputError: the output cannot be written; finished rows are safe.

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
    check_is_fitted(model)
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
    abstained = 0
    out = ResumableWriter(target, schema=schema, fingerprint=fingerprint, resume=resume, overwrite=overwrite)
    out.check_place()
    if not out.already_done:
        # Check all rows first: a file corrected half-way is a different input, so finished chunks would be lost.
        table.check_documents()
    with out as writer, progress_bar("predicting", verbose=verbose) as report:
        if writer.already_done:
            rows = _rows_of(Path(target), label=schema.names[len(table.schema)])
            return Predicted(path=Path(target), rows=rows, resumed_at=rows, abstained=0)
        resumed_at = writer.rows_done
        for batch in table.batches(skip_rows=resumed_at):
            documents = table.documents(batch)
            if writer.rows_done == resumed_at:
                tell_cost(model, documents, more=len(documents) == table.batch_rows)
            blocks = model.answer_blocks(documents)
            values = gathered(blocks, lambda block: answer_values(block, all_scores, top))
            columns = as_columns(values, schema)
            writer.write(pa.record_batch([*batch.columns, *columns], schema=schema))
            abstained += columns[0].null_count
            report(writer.rows_done, table.rows or estimated_rows(table, writer.rows_done))
        writer.finish()
        return Predicted(path=Path(target), rows=writer.rows_done, resumed_at=resumed_at, abstained=abstained)


def model_fingerprint(model: Classifier) -> str:
    """Hash everything that a prediction depends on: weights, labels, the head, the decision, precision."""
    digest = hashlib.sha256()
    encoder: Any = getattr(model, "encoder_", None)
    for name, tensor in sorted(encoder.backbone.model.state_dict().items()) if encoder else ():
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(tensor.detach().cpu().numpy()).tobytes())
    for name, values in sorted(model.head_.tensors().items()):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(values).tobytes())
    decision = plain(asdict(model.decision()))
    decision = {key: value for key, value in decision.items() if value is not None or key not in ("cuts", "none")}
    facts = {"space": model.label_space_.to_dict(), "decision": decision}
    if reads_windows(model):
        facts["long_texts"] = "windows"
    if encoder is not None:
        facts["encoder"] = {key: value for key, value in encoder.describe().items() if key not in ("name", "source")}
    digest.update(json.dumps(facts, sort_keys=True).encode())
    return digest.hexdigest()


def _rows_of(target: Path, *, label: str) -> int:
    """Count the rows of a finished file; it must have the label column."""
    # This library wrote the file, so its name decides the format; do not guess from the content.
    finished = open_table(
        target, label_column=label, text_column=label, delimiter=own_delimiter(target), encoding="utf-8"
    )
    return sum(batch.num_rows for batch in finished.batches()) if finished.rows is None else finished.rows


def output_schema(
    schema: pa.Schema, model: Classifier, prefix: str, all_scores: bool, top: int | None = None
) -> pa.Schema:
    """Return the columns of a file of predictions: those of the input and those of `answer_values`.

    Raises:
        ConfigError: `top` is no number of labels, or is asked for beside all scores; too many labels for all scores.
        InputError: the input already has one of the added columns.
    """
    names = model.label_space_.names
    if top is not None:
        check_number("top", top, least=1, whole=True)
        if all_scores:
            raise ConfigError("all scores hold the top labels too; ask for all_scores or for top, not for both.")
    if all_scores and len(names) > MOST_COLUMNS:
        raise ConfigError(
            f"all_scores adds a column for each of {len(names):,} labels, and {MOST_COLUMNS:,} is the most; ask for "
            "the likeliest ones with top."
        )
    added = [
        pa.field(f"{prefix}label", pa.string()),
        pa.field(f"{prefix}score", pa.float32()),
        pa.field(f"{prefix}probability", pa.float64()),
    ]
    if isinstance(model, MeasuresDoubt):
        added.append(pa.field(f"{prefix}uncertainty", pa.float32()))
    if all_scores:
        added += [pa.field(f"{prefix}score:{name}", pa.float32()) for name in names]
    if all_scores and model.label_space_.several:
        added += [pa.field(f"{prefix}probability:{name}", pa.float64()) for name in names]
    for place in range(1, min(top or 0, len(names)) + 1):
        added += [
            pa.field(f"{prefix}label:{place}", pa.string()),
            pa.field(f"{prefix}probability:{place}", pa.float64()),
        ]
    for field in added:
        if field.name in schema.names:
            raise InputError(f"the input has a column {field.name!r} already; choose another prefix than {prefix!r}.")
    return pa.schema([*schema, *added])


def answer_values(answers: Answers, all_scores: bool, top: int | None = None) -> list[NDArray[Any]]:
    """Return the values of the added columns of a file of predictions, each [text], the labels first."""
    values: list[NDArray[Any]] = [answers.names, answers.score, answers.confidence]
    if answers.uncertainty is not None:
        values.append(answers.uncertainty)
    if all_scores:
        values += list(answers.scores.T)
    if all_scores and answers.chosen is not None:
        values += list(answers.probabilities.T)
    if top is not None:
        columns = answers.top(min(top, len(answers.labels)))
        sure = np.take_along_axis(answers.probabilities, columns, axis=1)
        for names, probabilities in zip(np.array(answers.labels, dtype=object)[columns].T, sure.T, strict=True):
            values += [names, probabilities]
    return values


def as_columns(values: Iterable[NDArray[Any]], schema: pa.Schema) -> list[pa.Array]:
    """Return values as the last columns of a schema."""
    values = list(values)
    types = schema.types[len(schema) - len(values) :]
    return [
        pa.array(each.tolist() if each.dtype == object else each, kind)
        for each, kind in zip(values, types, strict=True)
    ]


def estimated_rows(table: DocumentTable, done: int) -> float | None:
    """Estimate the number of rows of a file from the rows per byte read so far."""
    read = table.bytes_read()
    return max(done, done * table.bytes_total / read) if read and table.bytes_total else None
