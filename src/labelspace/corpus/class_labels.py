"""Labels that are numbers in a column of `datasets.ClassLabel`: their names stand in the table's metadata.

Parquet files of the Hugging Face hub hold labels so.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa

from labelspace.errors import InputError

_KEY = b"huggingface"


def class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of labels by column, from the metadata that `datasets` leaves; damaged metadata says nothing.

    Example:
        >>> features = {"label": {"names": ["sports", "money"], "_type": "ClassLabel"}}
        >>> metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        >>> class_names(pa.schema([("label", pa.int64())], metadata))
        {'label': ['sports', 'money']}
    """
    try:
        features = json.loads((schema.metadata or {}).get(_KEY, b"{}"))["info"]["features"]
        found = {name: feature["names"] for name, feature in features.items() if feature.get("_type") == "ClassLabel"}
    except (ValueError, KeyError, TypeError, AttributeError):
        return {}
    return {
        name: names
        for name, names in found.items()
        if name in schema.names and pa.types.is_integer(schema.field(name).type) and _are_names(names)
    }


def _are_names(names: Any) -> bool:
    return isinstance(names, list) and bool(names) and all(isinstance(name, str) for name in names)


def with_names(
    batch: pa.RecordBatch, column: str, names: list[str], place: Callable[[int], str], first: int
) -> pa.RecordBatch:
    """Return a batch with the names of labels in place of their numbers; -1 becomes null, as `datasets` means it.

    Args:
        batch: some rows.
        column: the column of numbers.
        names: [label] names.
        place: name of a row, for a message.
        first: number of the batch's first row.

    Raises:
        InputError: a number that has no name.
    """
    numbers = batch.column(column).fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    unnamed = np.flatnonzero((numbers < -1) | (numbers >= len(names)))
    if len(unnamed):
        raise InputError(
            f"{place(first + int(unnamed[0]))}: column {column!r} is {numbers[unnamed[0]]}, and the metadata names "
            f"0 to {len(names) - 1}; correct the number, or write names into the column."
        )
    found = pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))
    return batch.set_column(batch.schema.names.index(column), column, found)
