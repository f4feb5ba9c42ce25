"""How far to trust the descriptions beside labelled rows, label by label.

Without labelled rows the descriptions are the only evidence; with hundreds of rows for a label they add little; and
where rows contradict them, the rows are right.
"""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray
from scipy.stats import binom

from labelspace.config import LaConConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.notebook import Plain
from labelspace.seeds import child_seed
from labelspace.training.description.sweep import sweep_texts
from labelspace.training.features import plain_vectors, width_of
from labelspace.training.rows import Rows, Targets, tokenize

# Number of a label's rows that weigh as much as its descriptions.
HALF = 8
# A smaller prior weight is not worth the time of its texts.
LEAST = 0.05
# Rows used to measure agreement, in all; each label gets at least `rows_to_tell`.
ROWS = 1000
# Rows scored or pooled at once, so that [rows label] or [rows dim] of all rows is never in memory.
BLOCK = 4096
# Labels with fewer rows are not judged: with two rows, the mean of the others is a single text.
TELLING = 4
# Significance level: chance of finding a contradiction where there is none.
DOUBT = 0.01


@final
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Whether the labelled rows contradict the untrained descriptions."""

    rows: int
    """Number of rows judged: those of labels with four or more rows."""

    by_descriptions: float | None
    """Mean recall of these labels by the nearest description vector; None if nothing could be judged."""

    by_rows: float | None
    """Mean recall by the nearest mean of the other rows, with leave-one-out cross-validation."""

    contradicted: tuple[str, ...] | None
    """Labels whose descriptions are contradicted, all labels if the descriptions are as a whole; None if there are too
    few rows to judge."""


@final
@dataclass(frozen=True, kw_only=True)
class Prior(Plain):
    """The weight of the descriptions in training, and its reason."""

    weight: float
    """Share of their loss, 0 to 1, the mean of `by_label`; 0 leaves the descriptions out."""

    by_label: tuple[float, ...]
    """[label], in the order of sorted names: weight of each label's descriptions, which are drawn in proportion."""

    reason: str
    """`"given"`, `"rows per label"`, `"many rows"`, `"contradicted"` or `"no meaning"` (codes, names of pairs,
    or labels that only `y` names)."""

    rate: float
    """Factor of the head's learning rate; the encoder's factor is its square. AdamW's steps do not shrink with the
    weight of the rows in the loss, so few rows would move a model as far as many; this factor, the rows' share of the
    loss, makes the steps shorter."""

    rows_per_label: float
    """Mean number of different labelled rows per label."""

    agreement: Agreement | None
    """Evidence for or against a contradiction; None if it was not measured."""


def prior_weights(counts: NDArray[np.integer]) -> NDArray[np.float64]:
    """Return 8 / (8 + rows) per label, [label], with 0 for values too small to matter.

    Example:
        >>> prior_weights(np.array([0, 8, 24, 1000])).tolist()
        [1.0, 0.5, 0.25, 0.0]
    """
    weights = HALF / (HALF + counts)
    return np.where(weights >= LEAST, weights, 0.0)


def short_of_rows(counts: NDArray[np.integer]) -> NDArray[np.bool_]:
    """Return which labels have fewer than 8 rows where another has 8 or more, and eight times as many.

    Args:
        counts: [label], number of rows.

    Returns:
        [label].

    Example:
        >>> short_of_rows(np.array([0, 7, 8, 56])).tolist(), short_of_rows(np.array([0, 7])).tolist()
        ([True, True, False, False], [False, False])
    """
    most = counts.max()
    return (counts < HALF) & (most >= HALF * np.maximum(counts, 1))


def label_vectors(encoder: Encoder, space: LabelSpace, *, words: bool) -> np.ndarray:
    """Return the mean description vector of each label, unit length, [label dim].

    Args:
        encoder: used with its current weights.
        space: a label without a description is represented by its verbalizer.
        words: True for means of token states, False for the encoder's own vectors.
    """
    texts, targets = sweep_texts(space)
    vectors = plain_vectors(encoder, tokenize(encoder, texts), words=words)
    return _unit(_sums(vectors, np.array(targets, dtype=np.intp), len(space))).astype(np.float32)


def sums_of_rows(encoder: Encoder, rows: Rows, targets: Targets, labels: int, *, words: bool) -> NDArray[np.float64]:
    """Return the sum of the unit vectors of each label's rows, [label dim], computed in blocks of rows.

    Args:
        encoder: used with its current weights.
        rows: the labelled rows.
        targets: [text], the label of each row.
        labels: number of labels.
        words: as in `label_vectors`.
    """
    sums = np.zeros((labels, width_of(encoder, words=words)))
    for start in range(0, len(rows), BLOCK):
        some = range(start, min(start + BLOCK, len(rows)))
        np.add.at(sums, targets[some.start : some.stop], plain_vectors(encoder, rows.take(some), words=words))
    return sums


def place_labels(
    anchors: NDArray[np.float32],
    sums: NDArray[np.floating],
    counts: NDArray[np.integer],
    contradicted: Sequence[int] = (),
) -> NDArray[np.float32]:
    """Return initial label embeddings: between descriptions and rows, with the descriptions counting as 8 rows.

    A mean of rows attracts every text, and a description does not: rows share a style, and normalizing their short
    mean amplifies it. A label with fewer rows than the others would lose its texts to them. Its missing rows are
    filled up with the mean predicted from its descriptions, by a line through the labels that have rows (one slope,
    least squares). If all labels have equally many rows, nothing is added.

    Args:
        anchors: [label dim], unit vectors of the descriptions.
        sums: [label dim], the sum of the unit vectors of each label's rows.
        counts: [label], number of rows of each label.
        contradicted: labels that start at the mean of their rows alone; without rows, at their descriptions.

    Returns:
        [label dim], unit length.

    Example:
        >>> anchors, sums, counts = np.eye(2), np.array([[0.0, 8.0], [8.0, 0.0]]), np.array([8, 8])
        >>> place_labels(anchors, sums, counts).round(2).tolist()
        [[0.71, 0.71], [0.71, 0.71]]
        >>> place_labels(anchors, sums, counts, contradicted=[0, 1]).round(2).tolist()
        [[0.0, 1.0], [1.0, 0.0]]
    """
    seen = counts > 0
    trusted = np.ones(len(anchors), dtype=bool)
    trusted[list(contradicted)] = False
    trusted |= ~seen
    means = sums[seen] / counts[seen, None]
    rise, run = means - means.mean(axis=0), anchors[seen] - anchors[seen].mean(axis=0)
    slope = np.clip((rise * run).sum() / max((run * run).sum(), 1e-12), 0, 1)
    expected = means.mean(axis=0) + slope * (anchors - anchors[seen].mean(axis=0))
    missing = np.where(trusted, counts.max() - counts, 0)
    described = np.where(trusted, HALF, 0)
    return _unit(described[:, None] * anchors + sums + missing[:, None] * expected).astype(anchors.dtype)


def measure_agreement(
    encoder: Encoder,
    anchors: np.ndarray,
    rows: Rows,
    targets: Targets,
    names: Sequence[str],
    *,
    words: bool,
    seed: int,
) -> Agreement:
    """Measure with the untrained encoder whether labelled rows contradict the descriptions; see `compare`.

    Args:
        encoder: untrained.
        anchors: [label dim], from `label_vectors`.
        rows: the labelled rows; about 1,000 are drawn, equally many per label, and more with many labels, so that
            each label can still be judged by its own rows.
        targets: [text], the label of each row.
        names: the label names.
        words: as in `label_vectors`.
        seed: seed of the draw.
    """
    draw = random.Random(child_seed(seed, "agreement"))
    most = max(ROWS // len(names), rows_to_tell(len(names)))
    chosen: list[int] = []
    for label in np.unique(targets):
        own = np.flatnonzero(targets == label).tolist()
        chosen += draw.sample(own, min(most, len(own)))
    chosen.sort()
    return compare(anchors, plain_vectors(encoder, rows.take(chosen), words=words), targets[chosen], names)


def rows_to_tell(labels: int) -> int:
    """Return the least number of rows to draw per label: enough for a p-value below 0.01 / labels, and 3 spare.

    Each label is tested by its own rows at a level divided by the number of labels, and n rows that all contradict
    the descriptions have a p-value of 2 to the power of -n.

    Example:
        >>> [rows_to_tell(labels) for labels in (2, 77, 10_000)]
        [11, 16, 23]
    """
    return math.floor(math.log2(labels / DOUBT)) + 4


def compare(
    anchors: NDArray[np.floating], vectors: NDArray[np.floating], targets: Targets, names: Sequence[str]
) -> Agreement:
    """Compare what descriptions say about labelled rows with what the other rows say.

    Two classifiers label every row: by the nearest description, and by the nearest mean of the other rows. With many
    rows the second is better even if descriptions are sound, so that alone is no evidence. Descriptions are
    contradicted if they recall rows no better than chance although the rows can be told apart by each other: among the
    rows that only one classifier gets right, significantly many favour the rows (McNemar's test, exact and one-sided).
    The test runs on all labels together, where a few rows of each are enough, and on each label by its own rows, at a
    level divided by the number of labels.

    Cosines with a description are centred over the labels, so a description near to, or far from, everything is not
    counted as wrong for that.

    Args:
        anchors: [label dim], unit vectors of the descriptions.
        vectors: [text dim], unit vectors of the rows.
        targets: [text], the label of each row.
        names: [label]; labels with fewer than four rows are neither judged nor possible answers.

    Example:
        >>> anchors, targets = np.eye(3), np.repeat([0, 1, 2], 4)
        >>> compare(anchors, anchors[targets], targets, ["a", "b", "c"]).contradicted
        ()
        >>> compare(anchors[[1, 2, 0]], anchors[targets], targets, ["a", "b", "c"]).contradicted
        ('a', 'b', 'c')
        >>> compare(anchors, anchors[targets[::2]], targets[::2], ["a", "b", "c"]).contradicted is None
        True
    """
    judged = np.flatnonzero(np.bincount(targets, minlength=len(anchors)) >= TELLING)
    if len(judged) < 2:
        return Agreement(rows=0, by_descriptions=None, by_rows=None, contradicted=None)
    kept = np.isin(targets, judged)
    vectors, own = vectors[kept], np.searchsorted(judged, targets[kept])
    counts = np.bincount(own)
    sums = _sums(vectors, own, len(judged))
    centre, means = (sums / counts[:, None]).mean(axis=0), _unit(sums)
    described = anchors[judged].astype(np.float64)
    right = np.empty((2, len(own)), dtype=bool)  # [way text]
    for start in range(0, len(own), BLOCK):
        some = slice(start, start + BLOCK)
        texts, label = vectors[some].astype(np.float64), own[some]
        right[0, some] = ((texts - centre) @ described.T).argmax(axis=1) == label
        among_rows = texts @ means.T
        # Leave each row out of its own label's mean.
        among_rows[np.arange(len(label)), label] = (texts * _unit(sums[label] - texts)).sum(axis=1)
        right[1, some] = among_rows.argmax(axis=1) == label

    recall = np.stack([np.bincount(own, weights=each) / counts for each in right])  # [way label]
    chance = 1 / len(judged)
    better, worse = right[1] & ~right[0], right[0] & ~right[1]
    against: tuple[str, ...] = ()
    if recall[0].mean() <= chance and _by_luck(better.sum(), worse.sum()) < DOUBT:
        against = tuple(names)
    else:
        gained, lost = np.bincount(own, weights=better), np.bincount(own, weights=worse)
        against = tuple(
            names[label]
            for place, label in enumerate(judged.tolist())
            if recall[0, place] <= chance and _by_luck(gained[place], lost[place]) < DOUBT / len(judged)
        )
    by_descriptions, by_rows = recall.mean(axis=1).tolist()
    return Agreement(rows=len(own), by_descriptions=by_descriptions, by_rows=by_rows, contradicted=against)


def choose_prior(config: LaConConfig, agreement: Agreement | None, counts: Targets, names: Sequence[str]) -> Prior:
    """Choose the weight of each label's descriptions.

    Args:
        config: `description_weight`, a number or `"auto"`.
        agreement: evidence on contradictions; None if the labels carry no meaning.
        counts: [label], number of labelled rows.
        names: [label].
    """
    weights = np.zeros(len(counts))
    if agreement is None:
        reason = "no meaning"
    elif not isinstance(config.description_weight, str):
        weights += float(config.description_weight)
        reason = "given"
    else:
        against = set(agreement.contradicted or ())
        weights = np.where([name in against for name in names], 0.0, prior_weights(counts))
        reason = "rows per label" if weights.any() else "contradicted" if against else "many rows"
    # The mean over labels, not the minimum: one label without rows would otherwise keep the others from learning.
    weight = float(weights.mean())
    return Prior(
        weight=weight,
        by_label=tuple(weights.tolist()),
        reason=reason,
        rate=1 - weight if reason == "rows per label" else 1.0,
        rows_per_label=float(np.mean(counts)),
        agreement=agreement,
    )


def _sums(values: NDArray[np.floating], targets: Targets, labels: int) -> NDArray[np.float64]:
    """Add up the rows of each label, [label dim]."""
    sums = np.zeros((labels, values.shape[1]))
    np.add.at(sums, targets, values)
    return sums


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.floating]:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)


def _by_luck(gained: float, lost: float) -> float:
    """Return the chance that a fair coin gives at least this many heads in all these throws."""
    return float(binom.sf(gained - 1, gained + lost, 0.5))
