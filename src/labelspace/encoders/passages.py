"""Long texts as passages that fit into an encoder, with borders between sentences where there are some."""

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labelspace.encoders.encoder import Encoder


_END = re.compile(r"[.!?…؟۔।]++[\"')\]»”’“‘«›‹]*+(?:\s»)?(?=\s)|[。！？]+[\"”’」』]*|\n+")  # noqa: RUF001
"""The end of a sentence, with the quotes that close it. A wrong one (after "Mr.") only moves a border."""

_GRAINS = 8
"""A sentence longer than a passage is broken, between words if there are some, into pieces of at most this part of
one."""

_LONGEST_WORD = 24
"""Tokens without white space that are more than a word: Chinese, or an address."""

_Piece = tuple[str, int]
"""A part of a text, and its number of tokens."""


def passages(encoder: "Encoder", text: str, *, overlap: float) -> list[str]:
    """Return the passages of a text, in order; a text that fits is its only one.

    A passage is as many whole sentences as fit. The next one repeats the last sentences of it that fit into the
    overlap. The last one reaches back as far as it can, so that no passage is a few words.

    Args:
        encoder: its tokenizer counts, and its limit holds for a passage with prompt and special tokens.
        text: the text.
        overlap: maximum share of a passage that the next one repeats.

    Example:
        >>> from labelspace import Encoder
        >>> encoder = Encoder("tests/data/tiny-bert", max_tokens=12)
        >>> passages(encoder, "The team won. The match was late. The bank closed.", overlap=0)
        ['The team won.', 'The match was late. The bank closed.']
    """
    around = encoder.count_tokens([""])[0]
    room = max(1, encoder.max_tokens - around)
    pieces = [
        part
        for piece, size in _counted(encoder, sentences(text), around)
        for part in ([(piece, size)] if size <= room else _grains(encoder, (piece, size), room, around))
    ]
    while True:
        ranges = spans([size for _, size in pieces], room, int(overlap * room))
        found = ["".join(piece for piece, _ in pieces[start:end]).strip() for start, end in ranges]
        # In some tokenizers pieces have fewer tokens alone than together.
        over = max(encoder.count_tokens(found)) - encoder.max_tokens
        if over <= 0 or over >= room:
            return found
        room -= over


def sentences(text: str) -> list[str]:
    """Return the sentences of a text; white space goes with the sentence after it, as in most tokenizers.

    Example:
        >>> sentences("The team won. The bank closed.")
        ['The team won.', ' The bank closed.']
    """
    last = len(text.rstrip())
    places = [0, *(end for found in _END.finditer(text) if (end := found.end()) < last), len(text)]
    return [text[start:end] for start, end in itertools.pairwise(places)]


def spans(sizes: Sequence[int], room: int, overlap: int) -> list[tuple[int, int]]:
    """Return for each passage its first piece, and the one after its last.

    Args:
        sizes: tokens of each piece.
        room: maximum tokens of a passage; a larger piece is a passage of its own.
        overlap: maximum tokens that a passage repeats of the one before it; the last passage may repeat more.

    Example:
        >>> spans([4, 4, 4, 4, 4], room=12, overlap=4), spans([4, 4, 4, 4, 4, 4], room=12, overlap=0)
        ([(0, 3), (2, 5)], [(0, 3), (3, 6)])
    """
    found: list[tuple[int, int]] = []
    start = 0
    while True:
        end, used = start, 0
        while end < len(sizes) and (end == start or used + sizes[end] <= room):
            used += sizes[end]
            end += 1
        if end == len(sizes):
            while start > 0 and used + sizes[start - 1] <= room:
                start -= 1
                used += sizes[start]
            return [*found, (start, end)]
        found.append((start, end))
        before, start, repeated = start, end, 0
        while start - 1 > before and repeated + sizes[start - 1] <= min(overlap, room - sizes[end]):
            start -= 1
            repeated += sizes[start]


def _counted(encoder: "Encoder", texts: list[str], around: int) -> list[_Piece]:
    """Count the tokens of texts without prompt and special tokens."""
    return [(text, count - around) for text, count in zip(texts, encoder.count_tokens(texts), strict=True)]


def _grains(encoder: "Encoder", piece: _Piece, room: int, around: int) -> list[_Piece]:
    """Halve a piece, at the white space nearest to the middle, until it is grains; a word only if it does not fit."""
    parts = [piece]
    while True:
        halves = [half for text, size in parts for half in ([text] if _is_grain(text, size, room) else _halves(text))]
        if len(halves) == len(parts):
            return parts
        parts = _counted(encoder, halves, around)


def _is_grain(text: str, size: int, room: int) -> bool:
    is_word = " " not in text[1:] and size <= _LONGEST_WORD
    return size <= room and (is_word or size * _GRAINS <= room)


def _halves(text: str) -> list[str]:
    """Return both halves of a text; of one character, the text."""
    middle = len(text) // 2
    spaces = [place for place in (text.rfind(" ", 1, middle + 1), text.find(" ", middle)) if place > 0]
    place = min(spaces, key=lambda each: abs(each - middle), default=middle)
    return [text[:place], text[place:]] if place else [text]
