"""The limit below which a document fits none of the labels, chosen on unlabelled documents.

A document's closeness is the score of its likeliest label, standardised over a pool: how many standard deviations it
lies above what documents of other labels have with that label. Two ways choose the limit:

    left out   each document's own label is hidden; half of the documents are then below the limit, which moves to
               the middle of the gap between the two documents beside it
    coverage   the surest documents, a stated share of the pool, are labelled
"""

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.standard import Standard
from labelspace.errors import InputError, warn
from labelspace.labels import LabelSpace
from labelspace.notebook import Shown
from labelspace.training.abstention import coverage_limit, least_answers

HARDLY = 0.005
"""Share of documents without a label below which a limit does nothing."""

HIDDEN = 0.5
"""Share of documents that are below the limit once their label is hidden."""

FEWEST = 50
"""Fewest documents of the pool."""

OUTDATED = (
    "the limit for 'none of these' was set for other labels, names or texts, and is not used; set it again with "
    "documents"
)
"""What is said when the labels have changed since."""

REMOVED = "that was before a label was removed, and more may get none since"
"""What is said of the share once a label is gone."""

Closeness = NDArray[np.float64]
Columns = NDArray[np.intp]
Refused = NDArray[np.bool_]


@final
@dataclass(frozen=True, kw_only=True)
class NoneLimit(Shown):
    """Lowest closeness at which a document gets a label, and how it was chosen."""

    value: float
    """Documents of a lower closeness get no label."""

    way: str
    """How it was chosen: `"coverage"` or `"left-out"`."""

    share: float
    """Share of the pool without a label, for this or for another reason."""

    documents: int
    """Documents of the pool."""

    standard: Standard
    """What closeness is relative to."""

    texts: str
    """Fingerprint of the labels' texts, so that a change of them is noticed."""

    note: str = ""
    """What the choice could not tell."""

    def closeness(self, labels: tuple[str, ...], scores: NDArray[np.float32], column: Columns) -> Closeness:
        """Return the closeness of documents to a label each, [text].

        Args:
            labels: [label] names.
            scores: [text label].
            column: [text] the label that each is compared with.
        """
        return self.standard.apply(labels, scores)[np.arange(len(scores)), column]

    def as_score(self, label: str) -> float:
        """Return the lowest score at which a document gets this label."""
        mean, deviation = self.standard.of_labels[label]
        return mean + self.value * deviation

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]], space: LabelSpace) -> "NoneLimit":
        """Return the limit after a label was renamed or removed."""
        note = REMOVED if len(space) < len(self.standard.of_labels) else self.note
        return replace(self, standard=self.standard.edited(change), texts=fingerprint(space), note=note)

    def holds_for(self, space: LabelSpace) -> bool:
        """Return whether it was set for labels of these names and texts."""
        return self.texts == fingerprint(space) and set(self.standard.of_labels) == set(space.names)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return {**asdict(self), "standard": self.standard.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "NoneLimit":
        """Return the limit of `to_dict`."""
        standard = Standard.from_dict(values["standard"])
        return cls(**{**values, "value": float(values["value"]), "standard": standard})

    def __str__(self) -> str:
        how = f"{self.way}, closeness below {self.value:.2f}"
        told = f"{self.share:.1%} of {self.documents:,} documents get no label ({how})"
        return f"{told}; {self.note}" if self.note else told


def coverage_of(
    coverage: float, near: NDArray[np.float32], best: Columns, space: LabelSpace, refused: Refused | None = None
) -> NoneLimit:
    """Return the limit at which a share of documents gets a label, the closest ones of those that may have one.

    Args:
        coverage: the share, above 0 and below 1.
        near: [text label] how near the documents of the pool are to the labels.
        best: [text] column of the likeliest label.
        space: the labels.
        refused: [text] whether a document gets no label anyway; None: each may have one.

    Raises:
        InputError: every document is refused anyway.
    """
    standard, own, _ = _measured(near, best, space)
    refused = np.zeros(len(own), dtype=bool) if refused is None else refused
    free = own[~refused]
    if not len(free):
        raise InputError(
            "every document gets no label anyway, because of a threshold, a limit of doubt or what the labels put "
            "outside; loosen it, or pass documents that fit the labels."
        )
    value = -coverage_limit(-free, min(1.0, least_answers(coverage, len(own)) / len(free)))
    limit = _limit(value, "coverage", own, standard, space, refused)
    if limit.share <= 1 - coverage + 1 / len(own):
        return limit
    why = f"{refused.mean():.1%} get none anyway, because of a threshold, a limit of doubt or what lies outside"
    return replace(limit, note=why)


def left_out(near: NDArray[np.float32], best: Columns, space: LabelSpace, refused: Refused | None = None) -> NoneLimit:
    """Return the limit below which about half of the documents are once their own label is hidden.

    Args:
        near: [text label] how near the documents of the pool are to the labels.
        best: [text] column of the likeliest label.
        space: the labels.
        refused: [text] whether a document gets no label anyway, so that it counts in `share`; None: each may have one.

    Raises:
        InputError: there are fewer than 50 documents.
    """
    if len(near) < FEWEST:
        raise InputError(
            f"a limit for 'none of these' needs {FEWEST} different documents or more. Got {len(near)}; give more, or "
            "state a coverage."
        )
    standard, own, hidden = _measured(near, best, space)
    limit = _limit(float(np.quantile(hidden, HIDDEN)), "left-out", own, standard, space, refused)
    if limit.share >= HARDLY:
        return limit
    return replace(limit, note="hardly any document is below it, so if some fit no label, state a coverage")


def still_holding(limit: NoneLimit | None, space: LabelSpace) -> NoneLimit | None:
    """Return a limit if it was set for labels of these names and texts, else None.

    Warns:
        LabelSpaceWarning: it was set for others.
    """
    if limit is None or limit.holds_for(space):
        return limit
    warn(f"{OUTDATED}, or change labels by rename_label and remove_label, which keep it.")
    return None


def fingerprint(space: LabelSpace) -> str:
    """Return a fingerprint of the labels' texts; their order and names do not count.

    Example:
        >>> one, other = LabelSpace.from_names(["a", "b"]), LabelSpace.from_names(["b", "a"], name="more")
        >>> fingerprint(one) == fingerprint(other)
        True
    """
    texts = [
        [verbalizer, label.descriptions, label.excludes]
        for label, verbalizer in zip(space.labels, space.verbalizers, strict=True)
    ]
    whole = json.dumps([sorted(texts), space.outside])
    return hashlib.sha256(whole.encode()).hexdigest()[:16]


def _measured(near: NDArray[np.float32], best: Columns, space: LabelSpace) -> tuple[Standard, Closeness, Closeness]:
    """Return the standard, each document's closeness, and that with its own label hidden."""
    standard = Standard.of(space.names, near, best)
    apart, rows = standard.apply(space.names, near), np.arange(len(near))
    others = near.copy()
    others[rows, best] = -np.inf
    return standard, apart[rows, best], apart[rows, others.argmax(axis=1)]


def _limit(
    value: float, way: str, own: Closeness, standard: Standard, space: LabelSpace, refused: Refused | None
) -> NoneLimit:
    below, above = own[own < value], own[own >= value]
    if len(below) and len(above):
        # Halfway between two documents: at one of them, the last bit of a vector would decide.
        value = float(below.max() + above.min()) / 2
    return NoneLimit(
        value=value,
        way=way,
        share=float((own < value if refused is None else (own < value) | refused).mean()),
        documents=len(own),
        standard=standard,
        texts=fingerprint(space),
    )
