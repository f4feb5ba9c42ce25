"""Labels that are numbers in a column of `datasets.ClassLabel`: their names stand in the table's metadata.

Parquet files of the Hugging Face hub hold labels so. A cell may be a list of such numbers, too.
"""

import json
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import pyarrow as pa

from labelspace.errors import InputError

_KEY = b"huggingface"
_LISTS = ("List", "LargeList", "Sequence")


def class_labels(schema: pa.Schema) -> dict[bytes, bytes] | None:
    """Return what the metadata that `datasets` leaves says of such columns; None if it says nothing.

    Example:
        >>> features = {"text": {"_type": "Value"}, "label": {"names": ["sports", "money"], "_type": "ClassLabel"}}
        >>> metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        >>> class_labels(pa.schema([("text", pa.string()), ("label", pa.int64())], metadata))[b"huggingface"]
        b'{"info": {"features": {"label": {"names": ["sports", "money"], "_type": "ClassLabel"}}}}'
    """
    kept = _features(schema)
    return {_KEY: json.dumps({"info": {"features": kept}}).encode()} if kept else None


def class_names(schema: pa.Schema) -> dict[str, list[str]]:
    """Return the names of labels by column; damaged metadata says nothing.

    Example:
        >>> features = {"label": {"names": ["sports", "money"], "_type": "ClassLabel"}}
        >>> metadata = {"huggingface": json.dumps({"info": {"features": features}})}
        >>> class_names(pa.schema([("label", pa.int64())], metadata))
        {'label': ['sports', 'money']}
    """
    return {name: names for name, feature in _features(schema).items() if (names := _names(feature))}


def named(values: Iterable[Any], feature: Any) -> Iterable[Any]:
    """Return the values of a column of `datasets`, with the names of labels in place of their numbers.

    Args:
        values: the column's values, in any format.
        feature: its `ClassLabel`, or a list of one; the values of another feature stay as they are.
    """
    inner = feature[0] if isinstance(feature, list) and feature else getattr(feature, "feature", feature)
    names = getattr(inner, "names", None)
    if names is None:
        return values
    # A column in the format of numpy or torch has arrays and tensors.
    plain = (value.tolist() if hasattr(value, "tolist") else value for value in values)
    return [_by_name(value, names) for value in plain]


def with_names(
    batch: pa.RecordBatch, column: str, names: list[str], place: Callable[[int], str], first: int
) -> pa.RecordBatch:
    """Return a batch with the names of labels in place of their numbers; -1 becomes null, as `datasets` means it.

    Args:
        batch: some rows.
        column: the column of numbers, or of lists of numbers.
        names: [label] names.
        place: name of a row, for a message.
        first: number of the batch's first row.

    Raises:
        InputError: a number that has no name.
    """
    own = batch.column(column)
    if pa.types.is_integer(own.type):
        numbers = own.cast(pa.int64(), safe=False).fill_null(-1).to_numpy(zero_copy_only=False)
        odd = np.flatnonzero((numbers < -1) | (numbers >= len(names)))
        found = None if len(odd) else pa.array(names, pa.string()).take(pa.array(numbers, mask=numbers < 0))
    else:
        sets = own.to_pylist()
        odd = [
            row for row, numbers in enumerate(sets) if any(number not in range(len(names)) for number in numbers or ())
        ]
        found = None if odd else pa.array([_by_name(numbers, names) for numbers in sets], pa.list_(pa.string()))
    if found is None:
        row = int(odd[0])
        raise InputError(
            f"{place(first + row)}: column {column!r} is {own[row].as_py()}, and the metadata names 0 to "
            f"{len(names) - 1}; correct the number, or write names into the column."
        )
    return batch.set_column(batch.schema.names.index(column), column, found)


def _by_name(value: Any, names: list[str]) -> Any:
    if isinstance(value, list):
        return [_by_name(one, names) for one in value]
    return names[value] if isinstance(value, int) and 0 <= value < len(names) else value


def _features(schema: pa.Schema) -> dict[str, Any]:
    """Return what the metadata says of the columns of numbers that it has names for."""
    try:
        features = json.loads((schema.metadata or {}).get(_KEY, b"{}"))["info"]["features"]
    except (ValueError, KeyError, TypeError):
        return {}
    numbered = {field.name for field in schema if _holds_numbers(field.type)}
    known = features if isinstance(features, dict) else {}
    return {name: feature for name, feature in known.items() if name in numbered and _names(feature)}


def _names(feature: Any) -> list[str] | None:
    """Return the names that the metadata of a column has for its numbers."""
    if isinstance(feature, list) and feature:  # a list, as older releases of datasets wrote it
        feature = feature[0]
    elif isinstance(feature, dict) and feature.get("_type") in _LISTS:
        feature = feature.get("feature")
    names = feature.get("names") if isinstance(feature, dict) and feature.get("_type") == "ClassLabel" else None
    known = isinstance(names, list) and names and all(isinstance(name, str) for name in names)
    return names if known else None


def _holds_numbers(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        kind = kind.value_type
    return pa.types.is_integer(kind)
