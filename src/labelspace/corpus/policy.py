"""Rules for one document, the same for lists and files.

None, NaN, NA, a number, anything else    InputError that names the position
bytes                                     decoded as UTF-8, or InputError
empty, or only white space                kept, so that rows in and rows out match; one warning
longer than MAX_CHARACTERS                cut there; one warning
lone surrogates                           replaced by U+FFFD, because UTF-8 cannot hold them
"""

import numbers
import re
from collections.abc import Callable, Iterable
from typing import final

import numpy as np

from labelspace.corpus.wording import shown
from labelspace.errors import InputError

MAX_CHARACTERS = 100_000
"""Characters of a document that are read; every encoder in the registry stops far earlier."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@final
class DocumentPolicy:
    """Turns values into documents, refuses other values, and counts odd documents that are kept.

    Args:
        place: names a position in messages, for example `"X[3]"` or `"news.csv: row 4"`.

    Example:
        >>> policy = DocumentPolicy(lambda position: f"X[{position}]")
        >>> policy.clean(["good", b"caf\\xc3\\xa9", " "])
        ['good', 'café', ' ']
        >>> list(policy.notes().values())
        ['1 document is empty or white space (first: X[2]); such documents are kept, but say nothing about a label.']
    """

    def __init__(self, place: Callable[[int], str]) -> None:
        self._place = place
        self._empty: list[int] = [0, -1]
        self._cut: list[int] = [0, -1]

    def clean(self, values: Iterable[object], first: int = 0) -> list[str]:
        """Return one str per value; `first` is the position of the first value.

        Raises:
            InputError: a value is not a document; the message names its position.
        """
        documents = []
        for position, value in enumerate(values, first):
            text = value if type(value) is str else self._to_str(value, position)
            if len(text) > MAX_CHARACTERS:
                text = text[:MAX_CHARACTERS]
                _count(self._cut, position)
            if not text or text.isspace():
                _count(self._empty, position)
            elif not text.isascii():
                text = without_surrogates(text)
            documents.append(text)
        return documents

    def notes(self) -> dict[str, str]:
        """Return one sentence per kind of oddity since the last call; the kinds are `"empty"` and `"long"`."""
        sentences = {}
        for kind, (count, first), what, then in (
            ("empty", self._empty, "empty or white space", "such documents are kept, but say nothing about a label"),
            ("long", self._cut, f"longer than {MAX_CHARACTERS:,} characters", "only the beginning is read"),
        ):
            if count:
                many = "1 document is" if count == 1 else f"{count} documents are"
                sentences[kind] = f"{many} {what} (first: {self._place(first).rstrip(',')}); {then}."
        self._empty, self._cut = [0, -1], [0, -1]
        return sentences

    def _to_str(self, value: object, position: int) -> str:
        if isinstance(value, str):  # numpy.str_ and the like
            return str(value)
        where = self._place(position)
        if isinstance(value, (bytes, bytearray)):
            try:
                return bytes(value).decode("utf-8")
            except UnicodeDecodeError as error:
                raise InputError(
                    f"{where} is bytes that are not valid UTF-8 (byte {error.start}); "
                    "decode it with its own encoding first."
                ) from error
        if is_missing(value):
            raise InputError(f"{where} is missing ({shown(value)}); leave such rows out, or give them a text.")
        raise InputError(f"{where} is not a text but {shown(value)} of type {type(value).__name__}; pass a str.")


def is_missing(value: object) -> bool:
    """Return whether `value` means missing: None, NaN, `pandas.NA`, NaT."""
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    if isinstance(value, (numbers.Real, np.datetime64)):
        return bool(value != value)  # only NaN and NaT differ from themselves
    return False


def without_surrogates(text: str) -> str:
    """Replace each lone surrogate by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)


def _count(counter: list[int], position: int) -> None:
    counter[0] += 1
    if counter[1] < 0:
        counter[1] = position
