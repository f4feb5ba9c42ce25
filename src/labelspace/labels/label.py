"""One label: its name, its phrase or verbalizer, and any number of descriptions.

`Label` and the readers of label files share the checks of single texts. Each check takes `where`, the prefix of its
error message: `label 'x'` in one case, a file and line in the other.
"""

import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import final

from labelspace.errors import LabelFileError

KINDS = ((bool, "a truth value"), ((int, float), "a number"), (Mapping, "a mapping"), ((list, tuple), "a list"))
SHOWN = 60
REPEATED = "'not' repeats the description {}; remove it from one of them."


@final
@dataclass(frozen=True)
class NotText:
    """A scalar of a label file that its format does not read as text, such as `no` or `2024` in YAML."""

    source: str
    """the characters in the file"""
    kind: str
    """what the format reads them as, for example "a truth value" """


@final
@dataclass(frozen=True, init=False)
class Label:
    """One label of a label space.

    Args:
        name: what the user sees and `predict` returns; one line, stripped.
        phrase: replaces `{label}` in the template of the label space; None: the name.
        verbalizer: the whole sentence for the label; replaces template and phrase.
        descriptions: any number of texts that describe the label; stripped, stored as a tuple.
        excludes: texts that describe what the label is not, `not` in a label file; a document nearer to one of them
            than to the label counts as much less like the label.

    Raises:
        LabelFileError: a text is empty or not a string, the name has several lines, or `excludes` repeats a
            description.

    Example:
        >>> Label("sports", descriptions=["Results of matches.", "News of players and teams."])
        Label(name='sports', phrase=None, verbalizer=None, descriptions=('Results of matches.', ...
        >>> Label("sports", descriptions=[" "])
        Traceback (most recent call last):
        labelspace.errors.LabelFileError: label 'sports': description 1 is empty; write one or remove it.
    """

    name: str
    phrase: str | None
    verbalizer: str | None
    descriptions: tuple[str, ...]
    excludes: tuple[str, ...]

    def __init__(
        self,
        name: str,
        phrase: str | None = None,
        verbalizer: str | None = None,
        descriptions: Iterable[str] = (),
        excludes: Iterable[str] = (),
    ) -> None:
        name = clean_name(name, "the name", "label: ")
        where = f"label {quoted(name)}: "
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "phrase", None if phrase is None else clean_text(phrase, "the phrase", where))
        object.__setattr__(
            self, "verbalizer", None if verbalizer is None else clean_text(verbalizer, "the verbalizer", where)
        )
        object.__setattr__(self, "descriptions", clean_texts(descriptions, "descriptions", where))
        object.__setattr__(self, "excludes", clean_texts(excludes, "not", where))
        repeated = next((text for text in self.excludes if text in self.descriptions), None)
        if repeated is not None:
            raise LabelFileError(where + REPEATED.format(quoted(repeated)))

    def verbalize(self, template: str) -> str:
        """Return the label's verbalizer, or the template filled with its phrase.

        Args:
            template: a checked template, which contains `{label}`.

        Example:
            >>> Label("sports", phrase="sport and games").verbalize("This text is about {label}.")
            'This text is about sport and games.'
        """
        return self.verbalizer or template.format(label=self.phrase or self.name)


def clean_texts(value: object, key: str, where: str, each: Callable[[int], str] | None = None) -> tuple[str, ...]:
    """Return a list of texts, each stripped; refuse a bare text, which would be split into letters.

    Args:
        value: the list.
        key: its key in a label file.
        where: prefix of a message about the list.
        each: returns the prefix of a message about one of its texts; None: the same.
    """
    if isinstance(value, str | NotText):
        raise LabelFileError(f"{where}{key} must be a list. Got {described(value)}; make it a list of one.")
    # A set has another order each time.
    if isinstance(value, Mapping | set | frozenset) or not isinstance(value, Iterable):
        raise LabelFileError(f"{where}{key} must be a list. Got {described(value)}; write a list of texts.")
    what = "description" if key == "descriptions" else f"'{key}'"
    return tuple(clean_text(text, f"{what} {i + 1}", each(i) if each else where) for i, text in enumerate(value))


def clean_name(value: object, what: str, where: str) -> str:
    """Return a name, stripped; refuse line breaks and control characters."""
    name = clean_text(value, what, where)
    if any(unicodedata.category(char) in ("Cc", "Zl", "Zp") for char in name):
        raise LabelFileError(f"{where}{what} must be one line without tabs. Got {quoted(name)}; write it on one line.")
    return name


def clean_text(value: object, what: str, where: str) -> str:
    """Return a text, stripped; refuse an empty text, a lone surrogate and any other type.

    Args:
        value: the text.
        what: its name in the message, for example `"the phrase"`.
        where: prefix of the message, ending in `": "`.
    """
    if value is None:
        raise LabelFileError(f"{where}{what} is empty; write one or remove it.")
    if not isinstance(value, str):
        raise LabelFileError(f"{where}{what} must be text. Got {described(value)}; {_cure(value)}.")
    text = value.strip()
    if not text:
        raise LabelFileError(f"{where}{what} is empty; write one or remove it.")
    if any("\ud800" <= char <= "\udfff" for char in text):
        raise LabelFileError(f"{where}{what} holds half a character (a lone surrogate): {quoted(text)}; retype it.")
    return text


def described(value: object) -> str:
    """Describe a value for an error message: shortened, with its kind."""
    if isinstance(value, NotText):
        return f"{cut(value.source)}, which is read as {value.kind}"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if value is None:
        return "nothing"
    for types, kind in KINDS:
        if isinstance(value, types):
            return kind if isinstance(value, Mapping | list | tuple) else f"{value!r}, {kind}"
    return f"{cut(repr(value))} ({type(value).__name__})"


def quoted(text: str) -> str:
    """Quote a text on one line, cut to 60 characters."""
    return repr(cut(text))


def cut(text: str, length: int = SHOWN) -> str:
    """Shorten a text to one line of at most `length` characters.

    Example:
        >>> cut("one two\\n three", 9)
        'one tw...'
    """
    line = " ".join(text.split())
    return line if len(line) <= length else line[: length - 3].rstrip() + "..."


def _cure(value: object) -> str:
    if isinstance(value, NotText):
        return f'write it in quotes: "{cut(value.source)}"'
    if isinstance(value, bool | int | float):
        return f'write it in quotes: "{value}"'
    return "put a text that holds ': ' in quotes" if isinstance(value, Mapping) else "write one text"
