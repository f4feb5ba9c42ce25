"""Wording shared by messages about files, tables and columns."""

import unicodedata
from collections.abc import Sequence

import pyarrow as pa

from labelspace.checks import did_you_mean
from labelspace.errors import ColumnError


def one_line(message: object, limit: int = 300) -> str:
    """Return another library's message as one line of at most about `limit` characters, without its full stop."""
    line = " ".join(str(message).split())
    return (line if len(line) <= limit else line[:limit] + "...").rstrip(".")


def shown(value: object) -> str:
    """Return the `repr` of a value, cut to 60 characters."""
    return one_line(repr(value), 60)


def listed(schema: pa.Schema) -> str:
    """Return columns and their types as text."""
    return ", ".join(f"{field.name} ({field.type})" for field in schema) or "none"


def missing_column(where: str, name: str, columns: Sequence[str]) -> ColumnError:
    """Return the error for a missing column."""
    listed = ", ".join(columns) or "none"
    same = [column for column in columns if unicodedata.normalize("NFC", column) == unicodedata.normalize("NFC", name)]
    # They look alike: macOS writes an umlaut as two characters.
    hint = " It has one in another form of Unicode; copy the name from it." if same else did_you_mean(name, columns)
    return ColumnError(f"{where} has no column {name!r}.{hint} Its columns: {listed}.")
