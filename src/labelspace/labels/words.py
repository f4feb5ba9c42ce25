"""The words of a text: runs of letters, their marks (as Hindi and Thai write vowels) and digits.

Chinese, Japanese, Thai, Lao, Burmese and Khmer put no spaces between words. There a word is a letter, or two.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import pairwise
from operator import add

# All marks are above it, and most texts in Latin letters below.
_HIGH = re.compile("[\u0300-\U0010ffff]")
_SELECTORS = range(0xFE00, 0xFE10)  # they choose the looks of an emoji or a digit

UNSPACED = (
    "\u0e00-\u0eff"  # Thai, Lao
    "\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    "\u1780-\u17ff"  # Khmer
    "\u3005-\u3007\u3040-\u30ff\u31f0-\u31ff\uff66-\uff9f"  # Japanese
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Chinese characters
)
"""Characters of scripts that put no spaces between words, as in a class of a regular expression."""

_UNSPACED = re.compile(f"[{UNSPACED}]")
# Most words in Chinese and Japanese, which are parted twice as fast without looking for marks.
_WITHOUT_MARKS = re.compile("[\u3041-\u3096\u30a1-\u30fe\u3400-\u4dbf\u4e00-\u9fff]+")


def in_lower_case(text: str) -> str:
    r"""Return a text in lower case, in which a word is the same however it is typed.

    Python makes two characters of the Turkish capital i with a dot; and a soft hyphen or a word joiner, which are not
    seen, would part a word.

    Example:
        >>> in_lower_case("\u0130ade"), in_lower_case("M\u00fcll\u00adabfuhr")
        ('iade', 'müllabfuhr')
    """
    return text.lower().replace("i\u0307", "i").replace("\u00ad", "").replace("\u2060", "")


def words_of(text: str, *, letter: str = r"\w", alone: str = "") -> list[str]:
    r"""Return the words of a text; an accent that is written apart from its letter is joined to it.

    Args:
        text: any text.
        letter: regular expression of one letter or digit.
        alone: letters that are a word each, with their marks, as in a class of a regular expression.

    Example:
        >>> words_of("the cafe\u0301 दुनिया, 24/7"), words_of("東京 is big", letter="[a-z]", alone="東京")
        (['the', 'café', 'दुनिया', '24', '7'], ['東', '京', 'is', 'big'])
    """
    high = _HIGH.search(text) is not None
    return _expression(letter, alone, marks=high).findall(unicodedata.normalize("NFC", text) if high else text)


def is_unspaced(text: str) -> bool:
    """Return whether a text has letters of a script that puts no spaces between words.

    Example:
        >>> is_unspaced("I love 東京"), is_unspaced("I love Tokyo"), is_unspaced("서울")
        (True, False, False)
    """
    return _UNSPACED.search(text) is not None


def with_pairs(words: Sequence[str]) -> list[str]:
    """Return the words, but for a run of letters without spaces each letter and each two neighbours.

    Example:
        >>> with_pairs(["in", "東京都", "2024年"])
        ['in', '東', '京', '都', '東京', '京都', '2024', '年']
    """
    return [part for word in words for part in (_parts(word) if is_unspaced(word) else (word,))]


def _parts(word: str) -> Iterator[str]:
    """Yield runs of other letters, and of a run of unspaced letters each letter and each pair."""
    if _WITHOUT_MARKS.fullmatch(word):
        yield from word
        yield from map(add, word, word[1:])
        return
    run: list[str] = []
    for part in [*_expression(rf"[^\W{UNSPACED}]", UNSPACED, marks=True).findall(word), ""]:
        if is_unspaced(part):
            run.append(part)
            continue
        yield from run
        yield from map("".join, pairwise(run))
        run = []
        if part:
            yield part


@cache
def _expression(letter: str, alone: str, *, marks: bool) -> re.Pattern[str]:
    word, then = f"{letter}+", ""
    if marks:
        every = (chr(code) for code in range(0x300, 0x1F000) if code not in _SELECTORS)
        found = [each for each in every if unicodedata.category(each) in ("Mn", "Mc")] + ["\u200c", "\u200d"]
        low, high = ("".join(each for each in found if (each > "\uffff") is above) for above in (False, True))
        # `re` has a table for a class of low characters; of high ones it tries each, so they are asked for their range.
        mark = f"(?:[{low}]|(?=[\U00010000-\U0001efff])[{high}])"
        word += f"(?:{mark}+{letter}*)*"
        then = f"{mark}*"
    return re.compile(rf"(?=\w)[{alone}]{then}|{word}" if alone else word)
