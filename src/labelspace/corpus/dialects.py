"""The dialect of a CSV or TSV file: its delimiter and its encoding, given or detected.

    dialect_of(path, delimiter, encoding, wanted)  ->  Dialect

With `"auto"` only the first SAMPLE_BYTES of the file decide, so a resumed run detects the same dialect:

    encoding    a byte-order mark; valid UTF-8; UTF-16, by the position of its zero bytes; Windows-1252, if the decoded
                words look like words
    delimiter   what a first line such as `sep=;` names; else whichever of , ; tab and | splits the header and every row
                of the sample into equally many cells

`Dialect.told` reports any difference from plain CSV (comma, UTF-8). An ambiguous sample is an `InputError` that names
the option to set.
"""

import codecs
import contextlib
import csv
import io
import re
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from labelspace.corpus.stores import Place, unpacked
from labelspace.corpus.wording import one_line
from labelspace.errors import ConfigError, InputError

AUTO = "auto"
SAMPLE_BYTES = 1024 * 1024

_DELIMITERS = (",", ";", "\t", "|")
_SAMPLE_ROWS = 200
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32"),  # before UTF-16, whose mark is its prefix
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ELSEWHERE = [
    letter
    for byte in range(128, 256)
    for page in ("cp1250", "cp1254", "cp1257")
    if (letter := bytes([byte]).decode("cp1252", "ignore")).isalpha()
    and (other := bytes([byte]).decode(page, "ignore")).isalpha()
    and other != letter
]
"""Letters of Windows-1252, each as often as other encodings of Europe have another letter at its byte."""
SEPARATOR_LINE = re.compile(r"sep=([^\w\"\r\n\0])\r?\n")
"""A line above the header by which Excel knows the delimiter; it is no row."""
_INSIDE_WORDS = "\u2019\u00ad\u2013\u2014"  # apostrophe, soft hyphen, dashes
_SPELLED = {"tab": "\t", "\\t": "\t"}  # a tab is hard to type in a shell


class Dialect(NamedTuple):
    """Delimiter and encoding of one file."""

    delimiter: str
    encoding: str
    """Python's name of the encoding."""

    told: str = ""
    """One sentence for the user if the detected dialect is not plain CSV, else empty."""


def check_dialect(delimiter: str, encoding: str) -> tuple[str, str]:
    """Validate both options and return them in normalized spelling.

    Raises:
        ConfigError: the delimiter is not one ASCII character, or Python does not know the encoding.

    Example:
        >>> check_dialect("tab", "Latin-1")
        ('\\t', 'iso8859-1')
    """
    delimiter = _SPELLED.get(delimiter, delimiter)
    if delimiter != AUTO and (len(delimiter) != 1 or not delimiter.isascii() or delimiter in '"\r\n\0'):
        raise ConfigError(f"delimiter must be auto, tab, or one character such as ';'. Got {delimiter!r} instead.")
    if encoding != AUTO:
        try:
            "a".encode(encoding)
            encoding = codecs.lookup(encoding).name
        except (LookupError, ValueError) as error:
            raise ConfigError(
                f"encoding must be auto, or one that Python knows, such as cp1252. Got {encoding!r} instead."
            ) from error
    return delimiter, encoding.removesuffix("-sig")


def own_delimiter(path: Place) -> str:
    """Return the delimiter implied by the name of a CSV or TSV file.

    Example:
        >>> own_delimiter(Path("news.tsv.gz"))
        '\\t'
    """
    return "\t" if Path(path.name.lower().removesuffix(".gz")).suffix == ".tsv" else ","


def dialect_of(path: Place, delimiter: str, encoding: str, wanted: Sequence[str]) -> Dialect:
    """Return the delimiter and encoding of a file.

    Args:
        path: a CSV or TSV file, also .gz.
        delimiter: as `check_dialect` returns it.
        encoding: as `check_dialect` returns it.
        wanted: columns that the file should have; they decide between several possible delimiters.

    Raises:
        InputError: the dialect is ambiguous, or is not the one given.
    """
    with unpacked(path) as file:
        sample = file.read(SAMPLE_BYTES)
        whole = not file.read(1)
    found = _encoding(path, sample, encoding, whole=whole)
    text = _decoded(path, sample, found, whole=whole)
    own = own_delimiter(path)
    if delimiter == AUTO:
        named_above = SEPARATOR_LINE.match(text)
        split = named_above[1] if named_above else _delimiter(path, text, own, wanted, whole=whole)
    else:
        split = delimiter
    if (split == own or delimiter != AUTO) and (found == "utf-8" or encoding != AUTO):
        return Dialect(split, found)
    words = "" if found == "utf-8" else ", ".join(repr(one_line(word)) for word in _telling_words(text))
    shown = f" (it has {words})" if words else ""
    told = (
        f"{path}: read with the delimiter {split!r} and the encoding {found}{shown}; "
        "name others with delimiter and encoding (--delimiter, --encoding)."
    )
    return Dialect(split, found, told)


def _telling_words(text: str) -> list[str]:
    """Return up to three words by whose letters a reader sees whether Windows-1252 is the encoding."""
    words = dict.fromkeys(re.findall(r"\w{0,12}[^\x00-\x7f]\w{0,12}", text))
    return sorted(words, key=lambda word: -max(map(_ELSEWHERE.count, word)))[:3]


def _encoding(path: Place, sample: bytes, asked: str, *, whole: bool) -> str:
    marked = next((name for mark, name in _MARKS if sample.startswith(mark)), None)
    if asked != AUTO:
        if marked and not asked.startswith(marked):
            raise InputError(
                f"{path}: begins with the mark of {marked}, so it is not {asked}; leave encoding (--encoding) out."
            )
        if asked == "utf-16" and not marked:
            return _utf16(sample) or "utf-16-le"
        return marked or asked
    if marked:
        return marked
    by_zeros = _utf16(sample)
    if by_zeros:
        return by_zeros
    try:
        codecs.getincrementaldecoder("utf-8")().decode(sample, final=whole)
    except UnicodeDecodeError as error:
        if _looks_western(sample):
            return "cp1252"
        raise InputError(
            f"{path}: cannot be read, its text is not UTF-8 ({one_line(error)}) and its encoding is uncertain; save it "
            "as UTF-8, which spreadsheets call 'CSV UTF-8', or name its encoding (--encoding), such as cp1250, gb18030."
        ) from error
    return "utf-8"


def _utf16(sample: bytes) -> str | None:
    """Detect UTF-16 without a mark: in Western text nearly every second byte is zero, and hardly any other byte."""
    pairs = max(1, len(sample) // 2)
    high, low = sample[0::2].count(0) / pairs, sample[1::2].count(0) / pairs
    if low > 0.4 and high < 0.05:
        return "utf-16-le"
    return "utf-16-be" if high > 0.4 and low < 0.05 else None


def _looks_western(sample: bytes) -> bool:
    """Return whether the bytes decode to words in Windows-1252; Cyrillic, Greek, Polish and DOS text does not."""
    try:
        text = sample.decode("cp1252")
    except UnicodeDecodeError:
        return False
    foreign = [(at, letter) for at, letter in enumerate(text) if letter > "\x7f"]
    if "\0" in text or 3 * len(foreign) > sum(letter.isalpha() for letter in text):
        return False
    for at, letter in foreign:
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if letter.isalpha() and (letter == "\xff" or (letter.isupper() and before.islower())):
            return False
        if not letter.isalpha() and letter not in _INSIDE_WORDS and before.isalpha() and after.isalpha():
            return False
    return True


def _decoded(path: Place, sample: bytes, encoding: str, *, whole: bool) -> str:
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample, final=whole)
    except UnicodeDecodeError as error:
        raise wrong_encoding(path, encoding, error) from error
    return text.removeprefix("\ufeff")


def wrong_encoding(path: Place, encoding: str, error: object) -> InputError:
    """Return the error for bytes that are invalid in the encoding they were read with."""
    known = "UTF-8" if encoding == "utf-8" else encoding
    return InputError(
        f"{path}: cannot be read, its text is not {known} ({one_line(error)}); save it as UTF-8, which spreadsheets "
        "call 'CSV UTF-8', or name its encoding (--encoding), for example cp1252."
    )


def _delimiter(path: Place, text: str, own: str, wanted: Sequence[str], *, whole: bool) -> str:
    """Return the delimiter that makes the sample a table."""
    tables = {mark: _rows(text, mark, whole=whole) for mark in (own, *(m for m in _DELIMITERS if m != own))}
    whole_heads = {mark: rows[0] if rows else [] for mark, rows in tables.items()}
    heads = {mark: named(head) for mark, head in whole_heads.items()}
    splitting = [mark for mark, head in heads.items() if len(head) > 1]
    if splitting in ([], [own]):
        return own
    even = [mark for mark in splitting if all(_fits(row, whole_heads[mark]) for row in tables[mark])]
    fitting = [mark for mark in even if set(wanted) <= set(heads[mark])]
    if own not in splitting and set(wanted) <= set(heads[own]):
        fitting.append(own)
    if len(fitting) == 1:
        return fitting[0]
    if len(even) == 1 and not fitting:
        return even[0]
    if len(tables[own]) == 1 and own in even:
        return own
    told = " or ".join(repr(mark) for mark in even or splitting)
    likely = (even or splitting)[0]
    why = f"it could be {told}" if even else f"{told} splits the header, but not every row the same way"
    raise InputError(f"{path}: its delimiter is ambiguous, {why}; name it (--delimiter), for example {likely!r}.")


def named(cells: list[str]) -> list[str]:
    """Return a header without the empty cells at its end, which spreadsheets save beside a table.

    Example:
        >>> named(["", "text", "", ""])
        ['', 'text']
    """
    width = max((place for place, cell in enumerate(cells, 1) if cell), default=0)
    return cells[:width]


def _fits(row: list[str], header: list[str]) -> bool:
    width = len(named(header))
    return width <= len(row) <= len(header) and not any(row[width:])


def _rows(text: str, mark: str, *, whole: bool) -> list[list[str]]:
    """Return the first rows that are not blank, without the last row of a partial sample, which may be incomplete."""
    rows: list[list[str]] = []
    # The reader rejects very long cells; the rows before one, perhaps only the header, still count.
    with contextlib.suppress(csv.Error):
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=mark):
            if any(row):
                rows.append(row)
            if len(rows) > _SAMPLE_ROWS:
                return rows[:-1]
        if not whole and len(rows) > 1:
            rows.pop()
    return rows
