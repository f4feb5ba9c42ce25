"""The columns that predictions add to rows: of a file, of the most uncertain documents, of another engine."""

import pyarrow as pa

from labelspace.classify.answers import Answers
from labelspace.classify.decision import MeasuresDoubt
from labelspace.classify.fitted import Fitted
from labelspace.errors import InputError


def output_schema(schema: pa.Schema, model: Fitted, prefix: str, all_scores: bool) -> pa.Schema:
    """Return the columns of a file of predictions: those of the input and those of `answer_columns`.

    Raises:
        InputError: the input already has one of the added columns.
    """
    added = [
        pa.field(f"{prefix}label", pa.string()),
        pa.field(f"{prefix}score", pa.float32()),
        pa.field(f"{prefix}probability", pa.float64()),
    ]
    if isinstance(model, MeasuresDoubt):
        added.append(pa.field(f"{prefix}uncertainty", pa.float32()))
    if all_scores:
        added += [pa.field(f"{prefix}score:{name}", pa.float32()) for name in model.label_space_.names]
    if all_scores and model.label_space_.several:
        added += [pa.field(f"{prefix}probability:{name}", pa.float64()) for name in model.label_space_.names]
    for field in added:
        if field.name in schema.names:
            raise InputError(f"the input has a column {field.name!r} already; choose another prefix than {prefix!r}.")
    return pa.schema([*schema, *added])


def answer_columns(answers: Answers, all_scores: bool) -> list[pa.Array]:
    """Return the added columns of a file of predictions, the label first."""
    columns = [
        pa.array(answers.names.tolist(), pa.string()),
        pa.array(answers.score, pa.float32()),
        pa.array(answers.confidence, pa.float64()),
    ]
    if answers.uncertainty is not None:
        columns.append(pa.array(answers.uncertainty, pa.float32()))
    if all_scores:
        columns += [pa.array(column, pa.float32()) for column in answers.scores.T]
    if all_scores and answers.chosen is not None:
        columns += [pa.array(column, pa.float64()) for column in answers.probabilities.T]
    return columns
