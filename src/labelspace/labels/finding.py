"""What lint says about a label space, and what it asks of an encoder."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@final
@dataclass(frozen=True)
class Finding:
    """One thing that lint found, and what to do about it.

    Example:
        >>> finding = Finding("info", "few-descriptions", ("sports",), "label 'sports' has 1.", "Write some more.")
        >>> print(finding)
        info few-descriptions: label 'sports' has 1. Write some more.
    """

    severity: Severity
    """"error": it cannot be right; "warning": it likely costs accuracy; "info": worth knowing"""
    code: str
    """the kind of finding, in kebab-case, such as "duplicate-description" """
    labels: tuple[str, ...]
    """names of the labels it is about"""
    message: str
    """what was found, as a sentence"""
    cure: str
    """what to do, as a sentence"""
    texts: tuple[str, ...] = ()
    """the texts it is about, in full"""

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.message} {self.cure}"


class TextMeasures(Protocol):
    """What lint needs of an encoder; anything with these three will do."""

    @property
    def max_tokens(self) -> int:
        """How many tokens of a text are read, special tokens included."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text, special tokens included and nothing cut off."""
        ...

    def similarities(self, texts: Sequence[str]) -> Any:
        """Return the cosine of each text to each: a matrix `m` whose `m[i][j]` is a number."""
        ...
