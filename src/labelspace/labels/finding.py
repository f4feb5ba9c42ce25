"""`Finding`, one result of lint, and `TextMeasures`, the part of an encoder that lint uses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, final

from labelspace.notebook import Shown

Severity = Literal["error", "warning", "info"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "info")


@final
@dataclass(frozen=True)
class Finding(Shown):
    """A problem that lint found in a label space, with its cure.

    Example:
        >>> finding = Finding("info", "few-descriptions", ("sports",), "label 'sports' has 1.", "Write some more.")
        >>> print(finding)
        info few-descriptions: label 'sports' has 1. Write some more.
    """

    severity: Severity
    """"error": certainly wrong; "warning": likely to cost accuracy; "info": worth knowing"""
    code: str
    """the kind of finding, in kebab-case, such as "duplicate-description" """
    labels: tuple[str, ...]
    """names of the labels concerned; none if it is about `outside`"""
    message: str
    """the problem, as a sentence"""
    cure: str
    """the cure, as a sentence"""
    texts: tuple[str, ...] = ()
    """the texts concerned, in full"""

    def __str__(self) -> str:
        return f"{self.severity} {self.code}: {self.message} {self.cure}"


class TextMeasures(Protocol):
    """The part of an encoder that lint uses."""

    @property
    def max_tokens(self) -> int:
        """The number of tokens of a text that the encoder reads, special tokens included."""
        ...

    def count_tokens(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the number of tokens of each text before truncation, special tokens included."""
        ...

    def tokenize(self, texts: Sequence[str]) -> Sequence[Sequence[int]]:
        """Return the tokens of each text that the encoder reads."""
        ...

    def encode(self, texts: Sequence[str]) -> Any:
        """Return the vectors of texts, [text dim]: an array as numpy's, with rows of unit length."""
        ...
