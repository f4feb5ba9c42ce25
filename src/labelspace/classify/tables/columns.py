"""The columns that predictions add to rows: of a file, of the most uncertain documents, of another engine."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from labelspace.checks import check_number
from labelspace.classify.answers import Answers, gathered
from labelspace.classify.decision import MeasuresDoubt
from labelspace.classify.fitted import Fitted
from labelspace.corpus import Documents
from labelspace.errors import ConfigError, InputError

MOST_COLUMNS = 2000
"""Most labels whose scores a file may hold, each in a column of its own."""


def output_schema(schema: pa.Schema, model: Fitted, prefix: str, all_scores: bool, top: int | None = None) -> pa.Schema:
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
    return pa.schema([*schema, *added], schema.metadata)


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


def answer_columns(
    model: Fitted, documents: Documents, schema: pa.Schema, *, all_scores: bool, top: int | None = None
) -> list[pa.Array]:
    """Answer documents; return the columns that `output_schema` adds, the label first."""
    values = gathered(model.answer_blocks(documents), lambda block: answer_values(block, all_scores, top))
    return as_columns(values, schema)
