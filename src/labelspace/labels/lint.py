"""Lint: problems of a label space that will likely cost accuracy, found before training, each with its cure."""

import os
from collections.abc import Iterator
from typing import Any

from labelspace.checks import check_number
from labelspace.errors import ConfigError
from labelspace.labels import lint_meaning, lint_words
from labelspace.labels.finding import SEVERITIES, Finding, TextMeasures
from labelspace.labels.label import quoted
from labelspace.labels.lint_codes import finding
from labelspace.labels.lint_words import Place
from labelspace.labels.space import LabelSpace

__all__ = ["Finding", "TextMeasures", "lint"]


def lint(
    labels: Any,
    encoder: TextMeasures | None = None,
    *,
    few: int = 3,
    short: int = 4,
    uneven: float = 3.0,
    near_duplicate_words: float = 0.8,
    near_duplicate: float = 0.95,
    margin: float = 0.05,
    overlap: float = 0.9,
) -> list[Finding]:
    """Return the problems of a label space.

    `labelspace.labels.lint_codes.CODES` lists the codes; the page on label files says what each means, and which need
    an encoder.

    Args:
        labels: a LabelSpace, or what one is made of: a mapping, a list of names, or the path of a label file.
        encoder: anything that measures texts, such as an `Encoder`, see `TextMeasures`; None skips the checks that need
            it. They compare every two descriptions, in blocks, so time grows with the square of their number and memory
            does not. With more than 1,000 labels, each is said to overlap with one other at most.
        few: report a label that has descriptions, but fewer than this. One or two describe documents, not a label.
        short: report a description with fewer words than this; a short sentence has about four.
        uneven: report when the largest count of descriptions is at least this many times the smallest. Each
            description weighs the same in the row loss, so at 3 one label weighs three times as much as another.
        near_duplicate_words: report two descriptions whose sets of words overlap at least this much (Jaccard). At 0.8
            one word in ten differs.
        near_duplicate: report two descriptions with at least this cosine. At the default, different sentences about
            one narrow subject stay below it; encoders whose cosines are all high need more.
        margin: report a description whose cosine to another label is higher by more than this. Smaller differences
            come and go with single words. On the shipped file of 77 close labels, all-MiniLM-L6-v2 reports
            63 of 385 descriptions at 0.05 and 103 at 0.02.
        overlap: report two labels when the mean cosine between their descriptions is at least this share of the mean
            within them, both less that of texts with nothing in common. At 1 the two sets are indistinguishable. At 0.9
            all-MiniLM-L6-v2 reports 14 of the 2926 pairs of that file, each on one subject.

    Returns:
        The findings: errors, then warnings, then infos, each in the order of the labels.

    Raises:
        ConfigError: a threshold is out of its range, or `encoder` measures no texts.
        LabelFileError: `labels` cannot be used.

    Example:
        >>> space = LabelSpace.from_dict({"sports": ["Results of a match.", "results of a match."], "world": []})
        >>> for finding in lint(space):
        ...     print(finding.severity, finding.code, finding.labels)
        error duplicate-description ('sports',)
        warning no-descriptions ('world',)
        info few-descriptions ('sports',)
    """
    check_number("few", few, least=0, whole=True)
    check_number("short", short, least=0, whole=True)
    check_number("uneven", uneven, above=1)
    check_number("near_duplicate_words", near_duplicate_words, above=0, most=1)
    check_number("near_duplicate", near_duplicate, above=0, most=1)
    check_number("margin", margin, least=0)
    check_number("overlap", overlap, above=0)
    if encoder is not None and not hasattr(encoder, "count_tokens"):
        raise ConfigError(f"encoder must be an Encoder. Got {encoder!r}; pass labelspace.Encoder(name).")
    space = labels
    if not isinstance(space, LabelSpace):
        of_file = isinstance(labels, str | os.PathLike)
        space = LabelSpace.from_file(labels) if of_file else LabelSpace.from_dict(labels)
    findings = [
        *lint_words.duplicate_verbalizers(space),
        *lint_words.duplicate_descriptions(space),
        *lint_words.names_by_case(space),
        *lint_words.missing_descriptions(space),
        *lint_words.few_descriptions(space, few=few),
        *lint_words.uneven_counts(space, uneven=uneven),
        *lint_words.short_descriptions(space, short=short),
        *lint_words.raw_names(space),
        *lint_words.names_in_descriptions(space),
    ]
    near_words = lint_words.near_by_words(space, share=near_duplicate_words)
    near_meaning: dict[tuple[Place, Place], float] = {}
    if encoder is not None:
        meanings = lint_meaning.Meanings.of(space, encoder)
        near_meaning = lint_meaning.near_by_meaning(meanings, cosine=near_duplicate)
        findings += lint_meaning.alike_verbalizers(space, encoder)
        findings += lint_meaning.nearer_to_other(meanings, margin=margin)
        findings += lint_meaning.overlapping(meanings, overlap=overlap)
        findings += lint_meaning.too_long(space, encoder)
    findings += _near_duplicates(space, near_words, near_meaning)

    def place(found: Finding) -> tuple[int, int]:
        return SEVERITIES.index(found.severity), space.index(found.labels[0]) if found.labels else len(space)

    return sorted(findings, key=place)


def _near_duplicates(
    space: LabelSpace, by_words: dict[tuple[Place, Place], float], by_meaning: dict[tuple[Place, Place], float]
) -> Iterator[Finding]:
    """near-duplicate-description: one finding per pair, by words or by meaning; exact duplicates are left out."""
    for pair in sorted({*by_words, *by_meaning}):
        (i, j), (k, m) = pair
        one, other = space.descriptions[i][j], space.descriptions[k][m]
        if lint_words.same_text(one, other):
            continue
        if pair in by_meaning:
            how = f"cosine {by_meaning[pair]:.2f}"
        else:
            how = f"{by_words[pair]:.0%} of their words in common"
        names = tuple(dict.fromkeys((space.names[i], space.names[k])))
        if len(names) == 1:
            where, cure = f"label {quoted(names[0])}", "Keep one, or let the other cover another side of the label."
        else:
            where = f"labels {quoted(names[0])} and {quoted(names[1])}"
            cure = "Keep the one that fits its label, or say what sets the labels apart."
        yield finding(
            "near-duplicate-description",
            names,
            f"{where}: the descriptions {quoted(one)} and {quoted(other)} say nearly the same ({how}).",
            cure,
            (one, other),
        )
