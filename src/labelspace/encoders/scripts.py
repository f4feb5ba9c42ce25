"""Whether an encoder knows the language of some texts: an English one reads Thai as one unknown word."""

import re
import unicodedata
from collections.abc import Callable, Sequence

# Letters from Greek on, without those of Latin that come later.
_OTHER = re.compile(
    "[\u0370-\u1cff\u1f00-\u1fff\u2d00-\ua6ff\ua800-\uaaff\uabc0-\ud7ff\uf900-\ufaff\ufb1d-\ufdff\ufe70-\ufefe"
    "\uff66-\uffdc\U00010000-\U0001bfff\U00020000-\U0003ffff]"
)

# Vowels of Hebrew and Arabic, which are mostly not written; no vocabulary has many words with them.
_POINTS = re.compile("[\u0591-\u05c7\u0610-\u061a\u064b-\u065f\u0670]")

UNKNOWN = 0.05
"""A vocabulary that knows a script has hardly an unknown token in it."""

PIECES, PIECES_OF_WIDE = 0.55, 1.2
"""Most tokens a character, and most a wide one, such as Chinese. multilingual-e5-small needs up to .49 and 1, and
all-MiniLM-L6-v2 .57 and more where it knows the letters (37 texts in 26 languages)."""

LOOKED_AT, SEEN = 256, 200
"""Some texts of a call are looked at, spread over all, and this many characters of each."""

SOME = 0.05
"""Share of texts in such a script from which a word about them is worth it."""

FEWEST = 20
"""Characters that are enough to tell."""

# The commonest words of languages in Latin letters, but for those that are common in English too.
_ENGLISH = "the of and to in is that for it was with on as are this be by have"
_COMMON = {
    "Czech": "se na je že ale jako jsem jsou pro ve za od",
    "Danish or Norwegian": "og det er på jeg ikke til av af som har vi med den",
    "Dutch": "het een van dat niet met voor zijn op te aan ook er bij",
    "Finnish": "ja ei että se oli mutta kun hän olen ovat myös",
    "French": "le la les des et est une pour dans que pas du sur avec vous",
    "German": "der die und das ist nicht ein eine mit auf für von den dem sich",
    "Hungarian": "az és hogy nem egy meg ez volt csak",
    "Indonesian": "yang dan di ini itu dengan untuk tidak dari ke",
    "Italian": "di il che la una per non è del della sono gli con le",
    "Polish": "się nie na jest że jak ale od dla przez",
    "Portuguese": "de que não uma com para os um da em na por",
    "Romanian": "și în la cu pe nu este că mai sunt",
    "Spanish": "de la el que en los las una por con para es del se",
    "Swedish": "och det att som en är på jag inte med för ett av",
    "Turkish": "bir ve bu da için çok ile ne ama gibi daha olarak",
    "Vietnamese": "và của là không có được cho một các người",
}
_LANGUAGES = {language: frozenset(words.split()) for language, words in {"English": _ENGLISH, **_COMMON}.items()}

ENOUGH, OFTEN, SEVERAL = 20, 0.15, 5
"""Words that are enough to tell a language, the share of them that are among its commonest, and how many of these must
differ: names and codes repeat one or two, such as "la" in addresses of New Orleans."""


def unread_text(
    texts: Sequence[str], tokenize: Callable[[list[str]], Sequence[Sequence[int]]], unknown_id: int | None
) -> str | None:
    """Return a text whose words a vocabulary does not know, if it knows those of enough texts too little.

    Args:
        texts: the texts.
        tokenize: returns the tokens of each text, with special tokens.
        unknown_id: the token of what the vocabulary lacks. None: it lacks nothing, such as one of bytes, so nothing
            can be told.

    Example:
        >>> def letters(texts):
        ...     return [[1, *map(ord, text), 2] for text in texts]
        >>> unread_text(["a match"] * 9 + ["Команда выиграла матч"], letters, 0)
        'Команда выиграла матч'
    """
    if unknown_id is None:
        return None
    # An odd step, because texts of two languages often alternate.
    looked_at = [text[:SEEN] for text in texts[:: len(texts) // LOOKED_AT | 1]]
    others = [text for text in looked_at if is_other(text)]
    if not others or len(others) < SOME * len(looked_at):
        return None
    words = [_words(text) for text in others]
    blank, *found = tokenize(["", *words])
    tokens = sum(map(len, found)) - len(blank) * len(found)
    unknown = sum(ids.count(unknown_id) for ids in found)
    return others[0] if is_unread(words, tokens=tokens, unknown=unknown) else None


def language_of(texts: Sequence[str]) -> str | None:
    """Return the language of texts in Latin letters by their commonest words, if they tell one that is not English.

    Example:
        >>> language_of(["Der Bus kommt nicht, und die Bahn ist auch zu spät."] * 3)
        'German'
        >>> language_of(["The bus does not come, and the train is late too."] * 3) is None
        True
    """
    looked_at = [unicodedata.normalize("NFC", text[:SEEN]) for text in texts[:: len(texts) // LOOKED_AT | 1]]
    words = [word for text in looked_at for word in _words(text).split()]
    if len(words) < ENOUGH:
        return None
    counts = {language: sum(map(common.__contains__, words)) for language, common in _LANGUAGES.items()}
    likeliest = max(counts, key=lambda language: counts[language])
    sure = counts[likeliest] >= OFTEN * len(words) and counts[likeliest] > 2 * counts["English"]
    return likeliest if sure and len(_LANGUAGES[likeliest].intersection(words)) >= SEVERAL else None


def is_other(text: str) -> bool:
    """Return whether a text is mostly in other letters than Latin ones.

    Example:
        >>> [is_other(text) for text in ("a café in Paris", "кафе в Париже", "the word кафе", "巴黎的咖啡馆")]
        [False, True, False, True]
    """
    return not text.isascii() and 2 * len(_OTHER.findall(text)) > len(text) - text.count(" ")


def _words(text: str) -> str:
    """Return the words of a text in small letters; a vocabulary may know a language, but no emoji and no signs."""
    text = _POINTS.sub("", text.lower())
    return " ".join("".join(each if unicodedata.category(each)[0] in "LM" else " " for each in text).split())


def is_unread(texts: Sequence[str], *, tokens: int, unknown: int) -> bool:
    """Return whether a vocabulary knows the words of some texts too little: it has single letters for them, or nothing.

    Args:
        texts: words that are mostly in other letters than Latin ones.
        tokens: number of their tokens, without special tokens.
        unknown: how many of these are unknown to the vocabulary.

    Example:
        >>> is_unread(["команда выиграла матч вчера"], tokens=6, unknown=0)
        False
        >>> is_unread(["команда выиграла матч вчера"], tokens=25, unknown=0)  # a token for every letter
        True
    """
    characters = "".join(texts)
    if len(characters) < FEWEST or not tokens:
        return False
    wide = sum(unicodedata.east_asian_width(each) in "WFH" for each in characters)
    most = PIECES_OF_WIDE * wide + PIECES * (len(characters) - wide)
    return unknown > UNKNOWN * tokens or tokens > most
