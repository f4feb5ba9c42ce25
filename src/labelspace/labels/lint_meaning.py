"""The checks of a label space that need an encoder: texts too near one another, and texts too long to be read."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, final

from labelspace.labels.finding import Finding, TextMeasures
from labelspace.labels.label import quoted
from labelspace.labels.lint_codes import finding
from labelspace.labels.lint_words import Place, groups, some
from labelspace.labels.space import LabelSpace

CELLS = 2**22
"""Cosines that are held at once: 16 MiB in float32."""

UNRELATED = (
    "The bread has to rise for an hour.",
    "A goalkeeper saved the penalty.",
    "The court postponed the hearing.",
    "Rain is expected in the north.",
    "My password does not work.",
    "Whales are mammals.",
    "Violins open the second movement.",
    "The train to the airport is late.",
)
"""Texts that have nothing in common: their mean cosine is .05 with MiniLM and .77 with multilingual-e5-small."""

MANY_LABELS = 1000
"""With more labels, only the label that overlaps most with each is named: there can be millions of pairs."""


@final
@dataclass(frozen=True)
class Meanings:
    """The vectors of all verbalizers and descriptions of a space, as arrays of the encoder's kind."""

    space: LabelSpace
    verbalizers: Any
    """[label dim]"""
    descriptions: Any
    """[desc dim], in label order"""
    means: Any
    """[label dim], the mean of each label's descriptions; 0 without"""
    at: tuple[range, ...]
    """the rows of each label's descriptions"""
    unrelated: float
    """mean cosine of texts that have nothing in common"""

    @classmethod
    def of(cls, space: LabelSpace, encoder: TextMeasures) -> "Meanings":
        """Compute the vectors with one call of the encoder."""
        vectors = encoder.encode([*all_texts(space), *UNRELATED])
        vectors, others = vectors[: -len(UNRELATED)], vectors[-len(UNRELATED) :]
        verbalizers, descriptions = vectors[: len(space)], vectors[len(space) :]
        means, at, start = verbalizers * 0, [], 0
        for i, label in enumerate(space):
            at.append(range(start, start := start + len(label.descriptions)))
            if label.descriptions:
                means[i] = descriptions[at[i].start : start].mean(axis=0)
        return cls(space, verbalizers, descriptions, means, tuple(at), float(_mean_cosine(others)))


def unrelated_cosine(encoder: TextMeasures) -> float:
    """Return the mean cosine of texts that have nothing in common."""
    return float(_mean_cosine(encoder.encode(UNRELATED)))


def _mean_cosine(vectors: Any) -> Any:
    """Return the mean cosine of every two vectors."""
    total, count = vectors.sum(axis=0), len(vectors)
    return (total @ total - (vectors * vectors).sum()) / (count * (count - 1))


def _blocks(rows: int, columns: int) -> Iterator[slice]:
    """Yield slices of so many rows that a block has at most `CELLS` cosines."""
    size = max(1, CELLS // max(1, columns))
    return (slice(start, min(start + size, rows)) for start in range(0, rows, size))


def all_texts(space: LabelSpace) -> list[str]:
    """Return the verbalizers, then the descriptions, both in label order."""
    return [*space.verbalizers, *(text for label in space for text in label.descriptions)]


def too_long(space: LabelSpace, encoder: TextMeasures) -> Iterator[Finding]:
    """text-too-long: the encoder truncates the text."""
    owned = [(name, "verbalizer", text) for name, text in zip(space.names, space.verbalizers, strict=True)]
    owned += [(label.name, "description", text) for label in space for text in label.descriptions]
    owned += [(label.name, "'not'", text) for label in space for text in label.excludes]
    owned += [("", "'outside'", text) for text in space.outside]
    for (name, what, text), count in zip(owned, encoder.count_tokens([text for *_, text in owned]), strict=True):
        if count > encoder.max_tokens:
            whose = f"label {quoted(name)}: " if name else ""
            yield finding(
                "text-too-long",
                (name,) if name else (),
                f"{whose}the {what} {quoted(text)} has {count} tokens, "
                f"the encoder reads the first {encoder.max_tokens}.",
                "Shorten it or split it in two; the rest is never read.",
                (text,),
            )


def read_alike(encoder: TextMeasures, texts: Mapping[str, str]) -> Iterator[tuple[str, ...]]:
    """Yield the names of texts of which an encoder reads the same tokens, often for letters that it does not know.

    Args:
        encoder: the encoder.
        texts: name -> text.
    """
    return groups(zip(texts, map(tuple, encoder.tokenize(list(texts.values()))), strict=True))


def alike_verbalizers(space: LabelSpace, encoder: TextMeasures) -> Iterator[Finding]:
    """duplicate-verbalizer: different verbalizers that the encoder reads alike."""
    verbalizers = dict(zip(space.names, space.verbalizers, strict=True))
    for names in read_alike(encoder, verbalizers):
        texts = tuple(dict.fromkeys(verbalizers[name] for name in names))
        if len(texts) > 1:
            yield finding(
                "duplicate-verbalizer",
                names,
                f"the encoder reads the verbalizers of {some(names)} alike, such as {quoted(texts[0])}.",
                "Give each a phrase or verbalizer in words that the encoder knows, or take an encoder of the language.",
                texts,
            )


def near_by_meaning(meanings: Meanings, *, cosine: float) -> dict[tuple[Place, Place], float]:
    """Return the pairs of descriptions whose cosine is at least `cosine`."""
    places = [(i, j) for i, rows in enumerate(meanings.at) for j in range(len(rows))]
    pairs: dict[tuple[Place, Place], float] = {}
    for block in _blocks(len(places), len(places)):
        cosines = meanings.descriptions[block] @ meanings.descriptions[block.start :].T
        for row, column in zip(*(found.tolist() for found in (cosines >= cosine).nonzero()), strict=True):
            if column > row:
                pairs[places[block.start + row], places[block.start + column]] = float(cosines[row, column])
    return pairs


def nearer_to_other(meanings: Meanings, *, margin: float) -> Iterator[Finding]:
    """nearer-to-other-label: a description that lies nearer to another label than to its own, by either of two rules.

    Verbalizers: its cosine to its own label's verbalizer, against the highest to another label's.
    Descriptions: its mean cosine to its own label's *other* descriptions, against the highest mean to those of another
    label. Its cosine of 1 with itself is left out, or the means would not be comparable. A label's only description is
    judged by the verbalizer alone.
    """
    at = meanings.at
    places = [(i, j) for i, rows in enumerate(at) for j in range(len(rows))]
    bare = [i for i, rows in enumerate(at) if not rows]
    for block in _blocks(len(places), len(at)):
        texts, here = meanings.descriptions[block], places[block]
        by_verbalizer = _own_and_best(texts @ meanings.verbalizers.T, here)
        to_means = texts @ meanings.means.T
        to_means[:, bare] = -math.inf
        by_descriptions = _own_and_best(to_means, here)
        itself = (texts * texts).sum(axis=1).tolist()
        for row, (own, j) in enumerate(here):
            found = {"verbalizer": by_verbalizer[row]}
            others = len(at[own]) - 1
            if others:
                best, score, mine = by_descriptions[row]
                found["descriptions"] = best, score, ((others + 1) * mine - itself[row]) / others
            beaten = {kind: each for kind, each in found.items() if each[1] > each[2] + margin}
            if beaten:
                yield _nearer(meanings.space, own, j, beaten)


def _own_and_best(scores: Any, places: Sequence[Place]) -> list[tuple[int, float, float]]:
    """Return, for each row, the best of the other labels, its score and the own label's; changes `scores`."""
    rows, own = range(len(places)), [i for i, _ in places]
    mine = scores[rows, own].tolist()
    scores[rows, own] = -math.inf
    best = scores.argmax(axis=1).tolist()
    return list(zip(best, scores[rows, best].tolist(), mine, strict=True))


def _nearer(space: LabelSpace, own: int, j: int, found: dict[str, tuple[int, float, float]]) -> Finding:
    name, text = space.names[own], space.descriptions[own][j]
    parts = [
        f"the {kind} of {quoted(space.names[best])} (cosine {score:.2f}, to its own {mine:.2f})"
        for kind, (best, score, mine) in found.items()
    ]
    others = dict.fromkeys(space.names[best] for best, _, _ in found.values())
    return finding(
        "nearer-to-other-label",
        (name, *others),
        f"label {quoted(name)}: the description {quoted(text)} is nearer to {' and to '.join(parts)}.",
        "Say what sets the label apart, or move the description to the label that it describes.",
        (text,),
    )


def overlapping(meanings: Meanings, *, overlap: float) -> Iterator[Finding]:
    """overlapping-labels: two labels whose descriptions are nearly as close to each other as among themselves.

    Compares the mean cosine between the two labels with the mean of their means within, both less that of texts that
    have nothing in common. Labels with one description are left out. With more than `MANY_LABELS` labels, each is named
    with the one that it overlaps most.
    """
    space, some = meanings.space, [i for i, rows in enumerate(meanings.at) if len(rows) > 1]
    means, within = meanings.means[some], meanings.means[some].sum(axis=1)
    for n, i in enumerate(some):
        rows = meanings.at[i]
        within[n] = _mean_cosine(meanings.descriptions[rows.start : rows.stop])
    found: dict[tuple[int, int], tuple[float, float]] = {}
    for block in _blocks(len(some), len(some)):
        between = means[block] @ means.T
        inside = (within[block, None] + within) / 2
        above = between - (inside - (1 - overlap) * abs(inside - meanings.unrelated))
        rows = range(len(above))
        above[rows, range(block.start, block.stop)] = -math.inf
        if len(some) > MANY_LABELS:
            pairs = [(row, best) for row, best in zip(rows, above.argmax(axis=1).tolist(), strict=True)]
            pairs = [pair for pair in pairs if above[pair] >= 0]
        else:
            pairs = zip(*(each.tolist() for each in (above >= 0).nonzero()), strict=True)
        for row, column in pairs:
            pair = some[block.start + row], some[column]
            found[min(pair), max(pair)] = float(between[row, column]), float(inside[row, column])
    for (one, other), (between, inside) in sorted(found.items()):
        names = (space.names[one], space.names[other])
        yield finding(
            "overlapping-labels",
            names,
            f"the descriptions of {quoted(names[0])} and {quoted(names[1])} overlap: their mean cosine is "
            f"{between:.2f} between the labels and {inside:.2f} within them.",
            "Say in each what sets it apart from the other, or merge the labels.",
        )
