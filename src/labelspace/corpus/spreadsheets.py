"""The first sheet of an .xlsx file as a stream of rows of strings.

    excel_schema(path)    the columns named in the first non-empty row
    excel_pieces(path)    the non-empty rows below it, in pieces
    sheet_numbers(path)   the numbers that the spreadsheet shows for these rows

An empty cell is an empty string, as in CSV. Numbers are written as Python writes them, whole numbers without a
fraction; dates as 2026-01-31, with the time if there is one; booleans as TRUE or FALSE. A formula gives the value saved
with it. A value in a column without a name, and a formula without a saved value, are errors, so nothing is dropped
silently.
"""

import datetime
import warnings
import zipfile
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing, contextmanager
from itertools import count, islice
from typing import Any

import pyarrow as pa

from labelspace.checks import import_optional
from labelspace.corpus.files_to_rows import Piece
from labelspace.corpus.stores import Place
from labelspace.corpus.wording import one_line, shown
from labelspace.errors import InputError, LabelSpaceError, LabelSpaceWarning

Row = list[str | None]


def excel_schema(path: Place) -> pa.Schema:
    """Return the columns of the first sheet.

    Raises:
        InputError: not a workbook, or an empty sheet.

    Warns:
        LabelSpaceWarning: there are other sheets, which are not read.
    """
    with _workbook(path) as book:
        names = [sheet.title for sheet in book.worksheets]
    if not names:
        raise InputError(f"{path}: has no sheet with cells; save the table as the first one.")
    header = next((row for _, row in _rows(path)), None)
    if header is None:
        raise InputError(f"{path}: the sheet {names[0]!r} is empty; its first row must name the columns.")
    if len(names) > 1:
        others = ", ".join(repr(name) for name in names[1:6]) + (", ..." if len(names) > 6 else "")
        warnings.warn(
            f"{path}: only the first sheet, {names[0]!r}, is read, not {others}; save another as a separate file.",
            LabelSpaceWarning,
            stacklevel=6,
        )
    return pa.schema([pa.field(name, pa.string()) for name in header if name is not None])


def excel_pieces(path: Place, schema: pa.Schema, ahead: int, size: int) -> Iterator[Piece]:
    """Read `size` rows at a time, starting at row `ahead`.

    Raises:
        InputError: a damaged file, a value in a column without a name, or a formula without a saved value.
    """
    file_bytes = path.stat().st_size
    with _workbook(path) as book:
        expected = max(1, (book.worksheets[0].max_row or 1) - 1)
    with closing(_rows(path)) as rows:
        _, header = next(rows)
        places = [header.index(name) for name in schema.names]
        first = sum(1 for _ in islice(rows, ahead))
        yield Piece(first, pa.RecordBatch.from_pylist([], schema=schema), 0)
        while chunk := list(islice(rows, size)):
            for number, row in chunk:
                for place, value in enumerate(row):
                    if value is not None and (place >= len(header) or header[place] is None):
                        raise InputError(
                            f"{path}: row {number} has {shown(value)} in column {place + 1}, which has no "
                            "name; write one in the first row, or empty the column."
                        )
            columns = [pa.array([(p < len(row) and row[p]) or "" for _, row in chunk], pa.string()) for p in places]
            first += len(chunk)
            yield Piece(
                first - len(chunk), pa.record_batch(columns, schema=schema), int(file_bytes * min(1, first / expected))
            )


def sheet_numbers(path: Place) -> list[int]:
    """Return the number that the spreadsheet shows for each row below the header."""
    return [number for number, _ in _rows(path)][1:]


def _rows(path: Place) -> Generator[tuple[int, Row]]:
    """Yield the non-empty rows of the first sheet, with their numbers there."""
    with _workbook(path) as values, _workbook(path, formulas=True) as formulas:
        sheets = [book.worksheets[0] for book in (values, formulas)]
        for sheet in sheets:
            sheet.reset_dimensions()  # some programs write wrong dimensions, which would hide cells
        pairs = zip(*(sheet.iter_rows() for sheet in sheets), strict=True)
        for number in count(1):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about styles and validation, which do not affect text
                cells = next(pairs, None)
            if cells is None:
                return
            for value, formula in zip(*cells, strict=True):
                if value.value is None and formula.data_type == "f":
                    raise InputError(
                        f"{path}: the cell {formula.coordinate} has a formula, and no value was saved with it; open "
                        "the file in a spreadsheet and save it."
                    )
            row = [_text(cell.value) for cell in cells[0]]
            if any(cell is not None for cell in row):
                yield number, row


# What openpyxl raises at files that are no workbook, or half of one.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, AttributeError, ValueError, TypeError, SyntaxError)


@contextmanager
def _workbook(path: Place, *, formulas: bool = False) -> Iterator[Any]:
    openpyxl = import_optional("openpyxl", package="openpyxl", extra="excel", purpose="reading .xlsx files")
    try:
        with path.open("rb") as file:  # openpyxl itself leaves a damaged file open
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                book = openpyxl.load_workbook(file, read_only=True, data_only=not formulas)
            with closing(book):
                yield book
    except LabelSpaceError:
        raise
    except (OSError, *_DAMAGED) as error:
        raise InputError(
            f"{path}: cannot be read as .xlsx, it may be damaged, locked by a password or an old .xls "
            f"({one_line(error, 120)}); save it again."
        ) from error


def _text(value: object) -> str | None:
    """Return the text of a cell.

    Example:
        >>> [_text(value) for value in ("007", 7.0, 1.5, True, datetime.datetime(2026, 1, 31), None, "")]
        ['007', '7', '1.5', 'TRUE', '2026-01-31', None, None]
    """
    if value is None or value == "":
        return None
    if isinstance(value, bool):
        return str(value).upper()
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(value, datetime.datetime):
        return value.date().isoformat() if value.time() == datetime.time() else value.isoformat(sep=" ")
    text = str(value)
    if "_x" not in text:
        return text
    from openpyxl.utils.escape import unescape

    return unescape(text)  # Excel writes a carriage return as _x000D_
