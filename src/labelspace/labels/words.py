"""The words of a text: runs of letters, their marks (as Hindi and Thai write vowels) and digits."""

import re
import unicodedata
from functools import cache

# All marks are above it, and most texts in Latin letters below.
_HIGH = re.compile("[\u0300-\U0010ffff]")
_SELECTORS = range(0xFE00, 0xFE10)  # they choose the looks of an emoji or a digit


def words_of(text: str, *, letter: str = r"\w", alone: str = "") -> list[str]:
    r"""Return the words of a text; an accent that is written apart from its letter is joined to it.

    Args:
        text: any text.
        letter: regular expression of one letter or digit.
        alone: characters that are a word each, as in a class of a regular expression.

    Example:
        >>> words_of("the cafe\u0301 दुनिया, 24/7"), words_of("東京 is big", letter="[a-z]", alone="東京")
        (['the', 'café', 'दुनिया', '24', '7'], ['東', '京', 'is', 'big'])
    """
    high = _HIGH.search(text) is not None
    return _expression(letter, alone, marks=high).findall(unicodedata.normalize("NFC", text) if high else text)


@cache
def _expression(letter: str, alone: str, *, marks: bool) -> re.Pattern[str]:
    word = f"{letter}+"
    if marks:
        every = (chr(code) for code in range(0x300, 0x1F000) if code not in _SELECTORS)
        found = [each for each in every if unicodedata.category(each) in ("Mn", "Mc")] + ["\u200c", "\u200d"]
        low, high = ("".join(each for each in found if (each > "\uffff") is above) for above in (False, True))
        # `re` has a table for a class of low characters; of high ones it tries each, so they are asked for their range.
        word += f"(?:(?:[{low}]|(?=[\U00010000-\U0001efff])[{high}])+{letter}*)*"
    return re.compile(f"[{alone}]|{word}" if alone else word)
