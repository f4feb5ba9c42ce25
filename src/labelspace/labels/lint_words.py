"""The checks of a label space by counts, characters and words; they need no encoder.

Words are those of `labels/words.py`, in any case; where a script puts no spaces between words, each letter is one.
"""

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Iterator, Sequence

from labelspace.labels.finding import Finding
from labelspace.labels.label import quoted
from labelspace.labels.lint_codes import finding
from labelspace.labels.space import LabelSpace
from labelspace.labels.words import UNSPACED, in_lower_case, is_unspaced, words_of

SHORTEST_NAME = 3

Place = tuple[int, int]
"""A description: the position of its label, and its position within the label."""


def words(text: str) -> list[str]:
    """Return the words of a text in lower case.

    Example:
        >>> words("Card_arrival: when?")
        ['card', 'arrival', 'when']
    """
    return words_of(in_lower_case(text), letter=rf"[^\W_{UNSPACED}]", alone=UNSPACED)


def missing_descriptions(space: LabelSpace) -> Iterator[Finding]:
    """no-descriptions: the label has only its verbalizer."""
    for label, verbalizer in zip(space, space.verbalizers, strict=True):
        if not label.descriptions:
            yield finding(
                "no-descriptions",
                (label.name,),
                f"label {quoted(label.name)} has no descriptions, only its verbalizer {quoted(verbalizer)}.",
                "Write three to five descriptions of typical documents of the label.",
                (verbalizer,),
            )


def few_descriptions(space: LabelSpace, *, few: int) -> Iterator[Finding]:
    """few-descriptions: at least one, but fewer than `few`."""
    for label in space:
        count = len(label.descriptions)
        if 0 < count < few:
            yield finding(
                "few-descriptions",
                (label.name,),
                f"label {quoted(label.name)} has only {count} description{'' if count == 1 else 's'}.",
                f"Write at least {few - count} more that cover other sides of the label.",
            )


def uneven_counts(space: LabelSpace, *, uneven: float) -> Iterator[Finding]:
    """uneven-counts: the largest count of descriptions is at least `uneven` times the smallest."""
    counts = {label.name: len(label.descriptions) for label in space if label.descriptions}
    if len(counts) < 2:
        return
    least, most = min(counts.values()), max(counts.values())
    if most < uneven * least:
        return
    fewest = tuple(name for name, count in counts.items() if count == least)
    richest = next(name for name, count in counts.items() if count == most)
    yield finding(
        "uneven-counts",
        fewest,
        f"the number of descriptions runs from {least} ({some(fewest)}) to {most} ({quoted(richest)}), "
        "and labels with fewer are often given too seldom.",
        "Write more for the labels that have few, or keep fewer for the others.",
    )


def short_descriptions(space: LabelSpace, *, short: int) -> Iterator[Finding]:
    """very-short-description: fewer than `short` words."""
    for label in space:
        for text in label.descriptions:
            if len(words(text)) < short:
                yield finding(
                    "very-short-description",
                    (label.name,),
                    f"label {quoted(label.name)}: the description {quoted(text)} has fewer than {short} words.",
                    "Write a sentence that a document of the label could contain; a bare word belongs in the phrase.",
                    (text,),
                )


def names_by_case(space: LabelSpace) -> Iterator[Finding]:
    """names-differ-by-case: names that differ only in capital letters or in the form of a letter with an accent."""
    for names in groups([(label.name, in_lower_case(unicodedata.normalize("NFC", label.name))) for label in space]):
        yield finding(
            "names-differ-by-case",
            names,
            f"the names {some(names)} differ only in capital letters, or in how Unicode writes an accent.",
            "Rename or merge them; labelspace treats them as two labels, most readers as one.",
        )


def duplicate_verbalizers(space: LabelSpace) -> Iterator[Finding]:
    """duplicate-verbalizer: labels with one verbalizer, which the encoder cannot tell apart."""
    pairs = [(label.name, " ".join(text.split())) for label, text in zip(space, space.verbalizers, strict=True)]
    for names in groups(pairs):
        text = space[names[0]].verbalize(space.template)
        yield finding(
            "duplicate-verbalizer",
            names,
            f"the labels {some(names)} have the same verbalizer {quoted(text)}.",
            "Give each its own phrase or verbalizer.",
            (text,),
        )


def raw_names(space: LabelSpace) -> Iterator[Finding]:
    """raw-name-in-verbalizer: a name such as `card_arrival` is used as the phrase."""
    for label in space:
        if label.phrase is None and label.verbalizer is None and "_" in label.name:
            text = label.verbalize(space.template)
            spaced = " ".join(label.name.replace("_", " ").split())
            yield finding(
                "raw-name-in-verbalizer",
                (label.name,),
                f"label {quoted(label.name)} has no phrase, so the encoder reads {quoted(text)}.",
                f"Write a phrase in plain words, such as {quoted(spaced)}.",
                (text,),
            )


def names_in_descriptions(space: LabelSpace) -> Iterator[Finding]:
    """name-in-other-description: a description contains the name of another label, as whole words; in a script
    without spaces also within a word.

    `_` and `-` separate words. Names shorter than three characters (two of a script without spaces) are left out,
    because they occur in most texts. So is a name that is part of the own label's name (`card` in `card_arrival`).
    """
    by_words: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for i, name in enumerate(space.names):
        key = tuple(words(name))
        if sum(2 if is_unspaced(word) else len(word) for word in key) >= SHORTEST_NAME:
            by_words[key].append(i)
    lengths = sorted({len(key) for key in by_words})
    for own, label in enumerate(space):
        ours = set(_runs(words(label.name), lengths))
        for text in label.descriptions:
            found = dict.fromkeys(run for run in _runs(words(text), lengths) if run in by_words and run not in ours)
            for other in (i for run in found for i in by_words[run] if i != own):
                name = space.names[other]
                yield finding(
                    "name-in-other-description",
                    (label.name, name),
                    f"label {quoted(label.name)}: the description {quoted(text)} contains the name of {quoted(name)}.",
                    "Say it in other words; the name pulls the description towards the other label.",
                    (text,),
                )


def duplicate_descriptions(space: LabelSpace) -> Iterator[Finding]:
    """duplicate-description: the same text more than once, up to case and white space, in one label or several."""
    places: dict[str, list[Place]] = defaultdict(list)
    for i, texts in enumerate(space.descriptions):
        for j, text in enumerate(texts):
            places[_plain(text)].append((i, j))
    for same in places.values():
        if len(same) < 2:
            continue
        names = tuple(dict.fromkeys(space.names[i] for i, _ in same))
        text = space.descriptions[same[0][0]][same[0][1]]
        if len(names) == 1:
            where, cure = f"label {quoted(names[0])} has", "Keep one of them."
        else:
            where, cure = f"the labels {some(names)} share", "Keep it in one label; it cannot tell labels apart."
        yield finding(
            "duplicate-description",
            names,
            f"{where} the same description {len(same)} times: {quoted(text)}.",
            cure,
            tuple(space.descriptions[i][j] for i, j in same),
        )


def near_by_words(space: LabelSpace, *, share: float) -> dict[tuple[Place, Place], float]:
    """Return the pairs of descriptions whose sets of words overlap by at least `share` (Jaccard).

    Not all pairs are compared. With words sorted from rare to common, two sets that overlap enough share a word among
    the first `size - ceil(share * size) + 1`, so only texts that share one of these are compared.
    """
    texts = [((i, j), set(words(text))) for i, label in enumerate(space) for j, text in enumerate(label.descriptions)]
    common = Counter(word for _, bag in texts for word in bag)
    seen: dict[str, list[int]] = defaultdict(list)
    pairs: dict[tuple[Place, Place], float] = {}
    for n, (place, bag) in enumerate(texts):
        rare_first = sorted(bag, key=lambda word: (common[word], word))
        prefix = rare_first[: len(bag) - math.ceil(share * len(bag) - 1e-9) + 1]
        for m in sorted({m for word in prefix for m in seen[word]}):
            other, other_bag = texts[m]
            jaccard = len(bag & other_bag) / len(bag | other_bag)
            if jaccard >= share:
                pairs[other, place] = jaccard
        for word in prefix:
            seen[word].append(n)
    return pairs


def same_text(one: str, other: str) -> bool:
    """Return whether two texts are equal up to case and white space."""
    return _plain(one) == _plain(other)


def _plain(text: str) -> str:
    return " ".join(text.lower().split())


def groups(pairs: Iterable[tuple[str, Hashable]]) -> Iterator[tuple[str, ...]]:
    """Yield each group of two or more names with the same key."""
    found: dict[Hashable, list[str]] = defaultdict(list)
    for name, key in pairs:
        found[key].append(name)
    yield from (tuple(names) for names in found.values() if len(names) > 1)


def _runs(found: Sequence[str], lengths: Sequence[int]) -> Iterator[tuple[str, ...]]:
    """Yield every run of consecutive words of each length."""
    for start in range(len(found)):
        yield from (tuple(found[start : start + length]) for length in lengths if start + length <= len(found))


def some(names: Sequence[str]) -> str:
    """List the first four names and count the rest."""
    return ", ".join(map(quoted, names[:4])) + (f" and {len(names) - 4} more" if len(names) > 4 else "")
