"""Whether an encoder's vocabulary knows the script of some texts: an English one reads Thai as one unknown word."""

import re
import unicodedata
from collections.abc import Sequence

# Letters from Greek on, without those of Latin that come later.
_OTHER = re.compile(
    "[\u0370-\u1cff\u1f00-\u1fff\u2d00-\ua6ff\ua800-\uaaff\uabc0-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefe"
    "\uff66-\uffdc\U00010000-\U0001bfff\U00020000-\U0003ffff]"
)

UNKNOWN = 0.1
"""A vocabulary that knows a script has hardly an unknown token in it."""

PIECES, PIECES_OF_WIDE = 0.5, 1.2
"""Most tokens a character, and most a wide one, such as Chinese. A multilingual vocabulary was seen to need up to .36
and .6 (one that has each Chinese character needs 1), an English one .47 and more, where it had tokens at all."""

LOOKED_AT = 256
"""Texts of a call that are looked at, at least, spread over all."""

SOME = 0.05
"""Share of texts in such a script from which a word about them is worth it."""

FEWEST = 20
"""Characters that are enough to tell."""


def unread_text(
    texts: Sequence[str], token_ids: Sequence[Sequence[int]], blank: Sequence[int], unknown_id: int | None
) -> str | None:
    """Return a text whose words a vocabulary does not know, if it knows those of enough texts too little.

    Args:
        texts: the texts.
        token_ids: their tokens, with prompt and special tokens.
        blank: the tokens of an empty text: prompt and special tokens alone.
        unknown_id: the token of what the vocabulary lacks, if it has one.

    Example:
        >>> unread_text(["a match"] * 9 + ["Команда выиграла матч"], [[1, 7, 2]] * 9 + [[1, *range(21), 2]], [1, 2], 0)
        'Команда выиграла матч'
    """
    step = max(1, len(texts) // LOOKED_AT)
    texts, token_ids = texts[::step], token_ids[::step]
    others = in_other_scripts(texts)
    if not others or len(others) < SOME * len(texts):
        return None
    tokens = sum(len(token_ids[position]) - len(blank) for position in others)
    unknown = 0
    if unknown_id is not None:
        unknown = sum(token_ids[position].count(unknown_id) - blank.count(unknown_id) for position in others)
    unread = is_unread([texts[position] for position in others], tokens=tokens, unknown=unknown)
    return texts[others[0]] if unread else None


def in_other_scripts(texts: Sequence[str]) -> list[int]:
    """Return the positions of the texts that are mostly in other letters than Latin ones.

    Example:
        >>> in_other_scripts(["a café in Paris", "кафе в Париже", "the word кафе", "巴黎的咖啡馆"])
        [1, 3]
    """
    return [
        position
        for position, text in enumerate(texts)
        if not text.isascii() and 2 * len(_OTHER.findall(text)) > len(text) - text.count(" ")
    ]


def is_unread(texts: Sequence[str], *, tokens: int, unknown: int) -> bool:
    """Return whether a vocabulary knows the words of some texts too little: it has single letters for them, or nothing.

    Args:
        texts: texts that are mostly in other letters than Latin ones.
        tokens: number of their tokens, without prompt and special tokens.
        unknown: how many of these are unknown to the vocabulary.

    Example:
        >>> is_unread(["Команда выиграла матч вчера"], tokens=6, unknown=0)
        False
        >>> is_unread(["Команда выиграла матч вчера"], tokens=25, unknown=0)  # a token for every letter
        True
    """
    characters = "".join(texts)
    if len(characters) < FEWEST or not tokens:
        return False
    wide = sum(unicodedata.east_asian_width(each) in "WFH" for each in characters)
    most = PIECES_OF_WIDE * wide + PIECES * (len(characters) - wide)
    return unknown > UNKNOWN * tokens or tokens > most
