"""The checks of a label space that need an encoder: texts too near one another, and texts too long to be read."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import final

from labelspace.labels.finding import Finding, TextMeasures
from labelspace.labels.label import quoted
from labelspace.labels.lint_words import Place
from labelspace.labels.space import LabelSpace


@final
@dataclass(frozen=True)
class Meanings:
    """The cosines between all verbalizers and descriptions of a space."""

    space: LabelSpace
    rows: list[list[float]]
    """texts by texts: the verbalizers first, then the descriptions, both in label order"""
    at: tuple[tuple[int, ...], ...]
    """the rows of each label's descriptions"""

    @classmethod
    def of(cls, space: LabelSpace, encoder: TextMeasures) -> "Meanings":
        """Compute the cosines with one call of the encoder."""
        texts = all_texts(space)
        matrix = encoder.similarities(texts)
        rows = []
        for i in range(len(texts)):
            row = matrix[i]
            rows.append([float(row[j]) for j in range(len(texts))])
        at, start = [], len(space)
        for label in space:
            at.append(tuple(range(start, start + len(label.descriptions))))
            start += len(label.descriptions)
        return cls(space, rows, tuple(at))

    def mean(self, row: int, columns: Sequence[int]) -> float:
        """Return the mean cosine of one text to several."""
        return sum(self.rows[row][column] for column in columns) / len(columns)


def all_texts(space: LabelSpace) -> list[str]:
    """Return the verbalizers, then the descriptions, both in label order."""
    return [*space.verbalizers, *(text for label in space for text in label.descriptions)]


def too_long(space: LabelSpace, encoder: TextMeasures) -> Iterator[Finding]:
    """text-too-long: the encoder truncates the text."""
    owners = [*space.names, *(label.name for label in space for _ in label.descriptions)]
    texts = all_texts(space)
    for i, (name, text, count) in enumerate(zip(owners, texts, encoder.count_tokens(texts), strict=True)):
        if count > encoder.max_tokens:
            what = "verbalizer" if i < len(space) else "description"
            yield Finding(
                "warning",
                "text-too-long",
                (name,),
                f"label {quoted(name)}: the {what} {quoted(text)} has {count} tokens, "
                f"the encoder reads the first {encoder.max_tokens}.",
                "Shorten it or split it in two; the rest is never read.",
                (text,),
            )


def near_by_meaning(meanings: Meanings, *, cosine: float) -> dict[tuple[Place, Place], float]:
    """Return the pairs of descriptions whose cosine is at least `cosine`."""
    places = [(row, (i, j)) for i, rows in enumerate(meanings.at) for j, row in enumerate(rows)]
    return {
        (one, other): meanings.rows[row][column]
        for n, (row, one) in enumerate(places)
        for column, other in places[n + 1 :]
        if meanings.rows[row][column] >= cosine
    }


def nearer_to_other(meanings: Meanings, *, margin: float) -> Iterator[Finding]:
    """nearer-to-other-label: a description that lies nearer to another label than to its own, by either of two rules.

    Verbalizers: its cosine to its own label's verbalizer, against the highest to another label's.
    Descriptions: its mean cosine to its own label's *other* descriptions, against the highest mean to those of another
    label. Its cosine of 1 with itself is left out, or the means would not be comparable. A label's only description is
    judged by the verbalizer alone.
    """
    for own, rows in enumerate(meanings.at):
        for j, row in enumerate(rows):
            by_verbalizer = {i: meanings.rows[row][i] for i in range(len(meanings.at))}
            by_descriptions = {i: meanings.mean(row, others) for i, others in enumerate(meanings.at) if others}
            rest = [other for other in rows if other != row]
            if rest:
                by_descriptions[own] = meanings.mean(row, rest)
            else:
                del by_descriptions[own]
            found = {
                kind: best
                for kind, scores in (("verbalizer", by_verbalizer), ("descriptions", by_descriptions))
                if (best := _beaten(scores, own, margin)) is not None
            }
            if found:
                yield _nearer(meanings.space, own, j, found)


def _beaten(scores: dict[int, float], own: int, margin: float) -> tuple[int, float, float] | None:
    """Return the best label that beats the own one by more than `margin`, its score and the own score."""
    others = {i: score for i, score in scores.items() if i != own}
    if own not in scores or not others:
        return None
    best = max(others, key=lambda i: others[i])
    return (best, others[best], scores[own]) if others[best] > scores[own] + margin else None


def _nearer(space: LabelSpace, own: int, j: int, found: dict[str, tuple[int, float, float]]) -> Finding:
    name, text = space.names[own], space.descriptions[own][j]
    parts = [
        f"the {kind} of {quoted(space.names[best])} (cosine {score:.2f}, to its own {mine:.2f})"
        for kind, (best, score, mine) in found.items()
    ]
    others = dict.fromkeys(space.names[best] for best, _, _ in found.values())
    return Finding(
        "warning",
        "nearer-to-other-label",
        (name, *others),
        f"label {quoted(name)}: the description {quoted(text)} is nearer to {' and to '.join(parts)}.",
        "Say what sets the label apart, or move the description to the label that it describes.",
        (text,),
    )


def overlapping(meanings: Meanings, *, overlap: float) -> Iterator[Finding]:
    """overlapping-labels: two labels whose descriptions are nearly as close to each other as among themselves.

    Compares the mean cosine between the two labels with the mean of their means within. Labels with one description
    are left out.
    """
    at, space = meanings.at, meanings.space
    within = {
        i: sum(meanings.mean(row, [other for other in rows if other != row]) for row in rows) / len(rows)
        for i, rows in enumerate(at)
        if len(rows) > 1
    }
    for one in within:
        for other in within:
            if other <= one:
                continue
            between = sum(meanings.mean(row, at[other]) for row in at[one]) / len(at[one])
            inside = (within[one] + within[other]) / 2
            if between >= inside - (1 - overlap) * abs(inside):
                names = (space.names[one], space.names[other])
                yield Finding(
                    "warning",
                    "overlapping-labels",
                    names,
                    f"the descriptions of {quoted(names[0])} and {quoted(names[1])} overlap: their mean cosine is "
                    f"{between:.2f} between the labels and {inside:.2f} within them.",
                    "Say in each what sets it apart from the other, or merge the labels.",
                )
