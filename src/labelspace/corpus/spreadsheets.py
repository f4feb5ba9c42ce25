"""The first sheet of an .xlsx file as a stream of rows of strings, and rows as such a file.

    excel_schema(path)    the columns named in the first non-empty row
    excel_pieces(path)    the non-empty rows below it, in pieces
    sheet_numbers(path)   the numbers that the spreadsheet shows for these rows
    check_sheet(...)      refuses rows that a sheet cannot hold
    write_sheet(...)      rows as the only sheet of a new file

An empty cell is an empty string, as in CSV. Numbers are written as Python writes them, whole numbers without a
fraction; dates as 2026-01-31, with the time if there is one; booleans as TRUE or FALSE. A formula gives the value saved
with it. A value in a column without a name, and a formula without a saved value, are errors, so nothing is dropped
silently. Strings are written as text, also those that look like a formula, a link or a number.
"""

import datetime
import itertools
import math
import shutil
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa

from labelspace.checks import import_optional
from labelspace.corpus.files_to_rows import Piece
from labelspace.corpus.stores import Place
from labelspace.corpus.wording import one_line, shown
from labelspace.errors import InputError, LabelSpaceError, own_filters, warn

MOST_ROWS = 2**20 - 1  # below the header
MOST_COLUMNS = 2**14
MOST_CHARACTERS = 2**15 - 1  # in UTF-16
MOST_WHOLE = 10**15 - 1  # Excel keeps 15 digits, which would change the number of a post

Row = list[str | None]
Cell = str | float | bool | None


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
        warn(f"{path}: only the first sheet, {names[0]!r}, is read, not {others}; save another as a separate file.")
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
        first = sum(1 for _ in itertools.islice(rows, ahead))
        yield Piece(first, pa.RecordBatch.from_pylist([], schema=schema), 0)
        while chunk := list(itertools.islice(rows, size)):
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
        for number in itertools.count(1):
            with own_filters():
                warnings.simplefilter("ignore")  # about styles and validation, which do not affect text
                cells = next(pairs, None)
            if cells is None:
                return
            if number > MOST_ROWS + 1:  # a row may have any number, and rows before it are made of nothing
                raise InputError(f"{path}: has more rows than .xlsx holds, {MOST_ROWS:,}; save it as .csv.")
            for value, formula in zip(*cells, strict=True):
                # A formula that found an empty text has the type "str".
                if value.value is None and formula.data_type == "f" and value.data_type != "str":
                    raise InputError(
                        f"{path}: the cell {formula.coordinate} has a formula, and no value was saved with it; open "
                        "the file in a spreadsheet and save it."
                    )
            row = [_text(cell.value) for cell in cells[0]]
            if any(cell is not None for cell in row):
                yield number, row


def check_sheet(path: Place, names: Sequence[str], columns: Iterable[Sequence[Cell]], rows: int) -> None:
    """Refuse what a sheet cannot hold; Excel would call the file damaged, or cut the text.

    Args:
        path: the file, for the message.
        names: the names of all columns.
        columns: the cells to check, by column.
        rows: number of rows up to and with these.
    """
    texts = (cell for cell in itertools.chain(names, *columns) if isinstance(cell, str))
    # A character has at most two units, so that few texts need a second look.
    units = max((len(text.encode("utf-16-le")) // 2 for text in texts if 2 * len(text) > MOST_CHARACTERS), default=0)
    if len(names) > MOST_COLUMNS:
        what = f"{len(names):,} columns, and .xlsx holds {MOST_COLUMNS:,}"
    elif rows > MOST_ROWS:
        what = f"more rows than .xlsx holds, {MOST_ROWS:,}"
    elif units > MOST_CHARACTERS:
        what = f"a text of {units:,} characters, and a cell of .xlsx holds {MOST_CHARACTERS:,}"
    else:
        return
    raise InputError(f"{path}: the table has {what}; name a .csv, .tsv, .jsonl or .parquet file.")


def write_sheet(file: BinaryIO, names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    """Write rows as the only sheet of a new .xlsx file; the same rows give the same bytes."""
    # First whole on this machine's disk: where a store's file takes no step back, the bytes would be others.
    with tempfile.TemporaryDirectory(prefix="labelspace-") as folder:
        whole = Path(folder) / "whole.xlsx"
        _write_sheet(whole, names, rows)
        with whole.open("rb") as written:
            shutil.copyfileobj(written, file)


def _write_sheet(path: Path, names: Sequence[str], rows: Iterable[Sequence[Cell]]) -> None:
    xlsxwriter = sheet_writer()
    as_text = {"strings_to_formulas": False, "strings_to_urls": False}
    options = {"constant_memory": True, "tmpdir": str(path.parent), "use_zip64": True, **as_text}
    book = xlsxwriter.Workbook(path, options)
    book.set_properties({"created": datetime.datetime(1980, 1, 1)})  # else the time of writing
    sheet = book.add_worksheet()
    sheet.freeze_panes(1, 0)
    for number, row in enumerate(itertools.chain([names], rows)):
        for place, value in enumerate(row):
            if isinstance(value, bool):
                sheet.write_boolean(number, place, value)
            elif isinstance(value, int) and abs(value) > MOST_WHOLE:
                sheet.write_string(number, place, str(value))
            elif isinstance(value, str):
                sheet.write_string(number, place, value)
            elif value is not None and math.isfinite(value):
                sheet.write_number(number, place, value)
    try:
        book.close()
    except xlsxwriter.exceptions.FileCreateError as error:  # its wrapper of an OSError, such as a full disk
        raise error.args[0] from error


def sheet_writer() -> Any:
    """Return the package that writes .xlsx files, or say how to install it."""
    return import_optional("xlsxwriter", package="xlsxwriter", extra="excel", purpose="writing .xlsx files")


# What openpyxl raises at files that are no workbook, or half of one.
_DAMAGED = (zipfile.BadZipFile, zlib.error, EOFError, LookupError, AttributeError, ValueError, TypeError, SyntaxError)


@contextmanager
def _workbook(path: Place, *, formulas: bool = False) -> Iterator[Any]:
    openpyxl = import_optional("openpyxl", package="openpyxl", extra="excel", purpose="reading .xlsx files")
    try:
        with path.open("rb") as file:  # openpyxl itself leaves a damaged file open
            with own_filters():
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
