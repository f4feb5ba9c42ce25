"""The most uncertain documents of a file of any length, in one pass: the documents to label next."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelspace.checks import check_number
from labelspace.classify.answers import Answers, gathered
from labelspace.classify.decision import MeasuresDoubt
from labelspace.classify.fitted import Fitted, answerer, check_fitted
from labelspace.classify.long_texts import tell_cost
from labelspace.classify.tables.columns import answer_values, as_columns, output_schema
from labelspace.classify.tables.stream import CHUNK_ROWS, Predicted, estimated_rows, model_fingerprint
from labelspace.corpus import Documents, ResumableWriter, open_table
from labelspace.corpus.documents import check_kind
from labelspace.errors import InputError
from labelspace.progress import progress_bar


def most_uncertain_rows(
    model: Any,
    blocks: Iterable[tuple[pa.RecordBatch, Documents]],
    schema: pa.Schema,
    top: int,
    *,
    all_scores: bool = False,
    prefix: str = "predicted_",
) -> pa.Table:
    """Return the most uncertain rows with their predictions, the most uncertain first; ties keep the input order.

    Of a repeated document, the first row counts. The order is that of the model's `most_uncertain`. Only `top` rows and
    one block are held in memory.

    Args:
        model: a fitted classifier.
        blocks: rows, with their documents.
        schema: columns of the rows.
        top: maximum number of rows.
        all_scores: True adds one score column per label.
        prefix: prefix of the added columns, which are those of `predict_file`.

    Raises:
        ConfigError: `top` is not a whole number from 1 on.
    """
    model = answerer(model)
    _check(model, top)
    schema = output_schema(schema, model, prefix, all_scores)
    kept = schema.empty_table()
    doubt, documents = np.empty(0), list[Any]()

    def take(answers: Answers) -> list[NDArray[Any]]:
        return [_doubt(model, answers), *answer_values(answers, all_scores)]

    for batch, texts in blocks:
        own, *values = gathered(model.answer_blocks(texts), take)
        fresh = pa.table([*batch.columns, *as_columns(values, schema)], schema=schema)
        # A repeated document is to be labelled once.
        known = set(documents)
        rows = [row for row in texts.first_of_each() if texts.rows[row] not in known]
        if not rows:
            continue
        both = np.concatenate([doubt, own[rows]])
        documents += [texts.rows[row] for row in rows]
        order = np.argsort(-both, kind="stable")[:top]
        kept, doubt = pa.concat_tables([kept, fresh.take(rows)]).take(order), both[order]
        documents = [documents[row] for row in order]
    return kept


def most_uncertain_file(
    model: Any,
    source: Any,
    target: str | Path,
    top: int,
    *,
    text_column: str = "text",
    pair_column: str | None = None,
    overwrite: bool = False,
    all_scores: bool = False,
    prefix: str = "predicted_",
    delimiter: str = "auto",
    encoding: str = "auto",
    verbose: bool = False,
) -> Predicted:
    """Write the most uncertain rows of a table, with their predictions in added columns.

    The file appears in one step, after all rows are read; an interrupted run leaves nothing.

    Args:
        model: a fitted classifier.
        source: as for `predict_file`.
        target: as for `predict_file`.
        top: maximum number of rows.
        text_column: column with the documents.
        pair_column: column with the second texts, for a model fitted on pairs.
        overwrite: replace the target.
        all_scores: True adds one score column per label.
        prefix: prefix of the added columns.
        delimiter: delimiter in CSV and TSV files, as for `open_table`.
        encoding: encoding of CSV and TSV files, as for `open_table`.
        verbose: True shows rows done and an ETA.

    Returns:
        The path of the file and its number of rows.

    Raises:
        ConfigError: `top` is not a whole number from 1 on.
        ColumnError: no such column.
        InputError: unreadable input, or the output exists or is the input.
        OutputError: the output cannot be written.
    """
    model = answerer(model)
    _check(model, top)
    table = open_table(
        source,
        text_column=text_column,
        pair_column=pair_column,
        batch_rows=CHUNK_ROWS,
        delimiter=delimiter,
        encoding=encoding,
    )
    check_kind(table.kind, model.reads_)
    fingerprint = {"input": table.fingerprint(), "model": model_fingerprint(model), "options": {"most uncertain": top}}
    schema = output_schema(table.schema, model, prefix, all_scores)
    out = ResumableWriter(target, schema=schema, fingerprint=fingerprint, overwrite=overwrite)
    out.check_place()
    if table.reads(out.path):
        raise InputError(f"{out.place}: its other rows would be lost; write the most uncertain ones to another file.")
    table.check_documents(lambda rows, _: out.check_rows(rows, 0))
    with (
        out as writer,
        progress_bar("predicting", verbose=verbose) as report,
    ):
        done = 0

        def blocks() -> Iterable[tuple[pa.RecordBatch, Documents]]:
            nonlocal done
            for batch in table.batches():
                documents = table.documents(batch)
                if not done:
                    tell_cost(model, documents, more=len(documents) == table.batch_rows)
                yield batch, documents
                done += batch.num_rows
                report(done, table.rows or estimated_rows(table, done))

        found = most_uncertain_rows(model, blocks(), table.schema, top, all_scores=all_scores, prefix=prefix)
        for batch in found.to_batches():
            writer.write(batch)
        writer.finish()
    abstained = found[f"{prefix}label"].null_count
    return Predicted(path=out.place, rows=found.num_rows, resumed_at=0, abstained=abstained)


def _check(model: Any, top: int) -> None:
    check_fitted(model)
    check_number("top", top, least=1, whole=True)


def _doubt(model: Fitted, answers: Answers) -> NDArray[np.float64]:
    return model.doubt(answers) if isinstance(model, MeasuresDoubt) else answers.least_confidence
