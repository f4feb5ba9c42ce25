"""How far to trust the descriptions beside labelled rows.

With no labelled row they are all there is; with hundreds of each label they have little left to say; and where the
rows contradict them, it is the rows that are right.
"""

import random
from dataclasses import asdict, dataclass
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.config import LaConConfig
from labelspace.encoders import Encoder
from labelspace.labels import LabelSpace
from labelspace.seeds import child_seed
from labelspace.training.features import answers, plain_vectors
from labelspace.training.rows import Rows, Targets, tokenize
from labelspace.training.sweep import sweep_texts

# Labelled rows per label that weigh as much as the descriptions.
HALF = 8
# A prior that weighs less than this is not worth the time of its texts.
LEAST = 0.05
# Rows that agreement is measured on, and how often their labels are shuffled for what chance would give.
ROWS = 1000
SHUFFLES = 100


@final
@dataclass(frozen=True, kw_only=True)
class Agreement:
    """How well the untrained descriptions name the labels of the labelled rows."""

    macro_f1: float
    """Of the nearest description vector."""

    chance: float
    """Mean of the same with the labels shuffled."""

    spread: float
    """Standard deviation of that."""

    @property
    def contradicted(self) -> bool:
        """True where agreement is below chance by more than luck: by two standard deviations of the shuffles."""
        # Where every answer is the same label all shuffles agree, but for the last bits of their mean.
        return self.macro_f1 < self.chance - max(2 * self.spread, 1e-9)


@final
@dataclass(frozen=True, kw_only=True)
class Prior:
    """The weight of the descriptions in training, and why."""

    weight: float
    """Share of their loss, 0 to 1; 0: they are left out."""

    reason: str
    """`"given"`, `"rows per label"`, `"many rows"`, `"contradicted"` or `"no meaning"` (labels known from y alone)."""

    rate: float
    """Share of the learning rates that is used. AdamW's steps are as long however little the rows weigh in the loss, so
    few rows would move the encoder as far as many; the rows' own share makes the steps shorter."""

    rows_per_label: float
    """Labelled rows per label, in the mean."""

    agreement: Agreement | None
    """What decided about a contradiction; None where it was not asked."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON."""
        return asdict(self)


def prior_weight(rows_per_label: float) -> float:
    """Return 8 / (8 + rows per label), and 0 where that is too small to matter.

    Example:
        >>> [round(prior_weight(rows), 2) for rows in (0, 8, 24, 1000)]
        [1.0, 0.5, 0.25, 0]
    """
    weight = HALF / (HALF + rows_per_label)
    return weight if weight >= LEAST else 0


def label_vectors(encoder: Encoder, space: LabelSpace, *, words: bool) -> np.ndarray:
    """Return for each label the mean vector of its descriptions, unit length, [label dim].

    Args:
        encoder: as it stands.
        space: a label without a description is stood for by its verbalizer.
        words: True for means of word states, False for the encoder's own vectors.
    """
    texts, targets = sweep_texts(space)
    width = encoder.backbone.hidden_size if words else encoder.dimension
    vectors = answers(encoder, tokenize(encoder, texts), plain_vectors, words=words, width=width)
    means = np.stack([vectors[np.array(targets) == label].mean(axis=0) for label in range(len(space))])
    return means / np.maximum(np.linalg.norm(means, axis=1, keepdims=True), 1e-12)


def place_labels(anchors: NDArray[np.float32], vectors: NDArray[np.float32], targets: Targets) -> NDArray[np.float32]:
    """Return where label embeddings start: between their descriptions and their rows, the descriptions counting as 8.

    Args:
        anchors: [label dim], unit vectors of the descriptions.
        vectors: [text dim], unit vectors of the labelled rows.
        targets: [text], the label of each row; a label without one stays at its descriptions.

    Returns:
        [label dim], unit length.

    Example:
        >>> anchors, rows = np.eye(2), np.array([[0.0, 1.0]] * 8)
        >>> place_labels(anchors, rows, np.zeros(8, dtype=np.intp)).round(2).tolist()
        [[0.71, 0.71], [0.0, 1.0]]
    """
    sums = HALF * anchors
    np.add.at(sums, targets, vectors)
    return sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)


def measure_agreement(
    encoder: Encoder, anchors: np.ndarray, rows: Rows, targets: Targets, *, words: bool, seed: int
) -> Agreement:
    """Compare the labels of rows with the nearest anchor, and that with shuffled labels.

    Nothing is fitted, so no fold has to be kept apart: all rows count, and shuffling says what chance is.

    Args:
        encoder: untrained.
        anchors: [label dim], from `label_vectors`.
        rows: the labelled rows; at most 1,000 of them are drawn.
        targets: [text], the label of each.
        words: as in `label_vectors`.
        seed: of the draw and the shuffles.
    """
    draw = random.Random(child_seed(seed, "agreement"))
    chosen = sorted(draw.sample(range(len(rows)), min(ROWS, len(rows))))
    vectors = answers(encoder, rows.take(chosen), plain_vectors, words=words, width=anchors.shape[1])
    found, own = (vectors @ anchors.T).argmax(axis=1), targets[chosen]
    shuffled = []
    for _ in range(SHUFFLES):
        order = list(range(len(own)))
        draw.shuffle(order)
        shuffled.append(macro_f1(own[order], found))
    return Agreement(macro_f1=macro_f1(own, found), chance=float(np.mean(shuffled)), spread=float(np.std(shuffled)))


def choose_prior(config: LaConConfig, agreement: Agreement | None, rows_per_label: float) -> Prior:
    """Decide the weight of the descriptions.

    Args:
        config: `description_weight`, a number or `"auto"`.
        agreement: of descriptions and rows; None where the labels say nothing.
        rows_per_label: labelled rows per label, in the mean.
    """
    if agreement is None:
        weight, reason = 0.0, "no meaning"
    elif not isinstance(config.description_weight, str):
        weight, reason = float(config.description_weight), "given"
    elif agreement.contradicted:
        weight, reason = 0.0, "contradicted"
    else:
        weight = float(prior_weight(rows_per_label))
        reason = "rows per label" if weight else "many rows"
    rate = 1 - weight if reason == "rows per label" else 1.0
    return Prior(weight=weight, reason=reason, rate=rate, rows_per_label=rows_per_label, agreement=agreement)


def macro_f1(targets: Targets, predicted: Targets) -> float:
    """Return the mean F1 of the labels that occur among the targets or the predictions.

    Example:
        >>> round(macro_f1(np.array([0, 0, 1, 1]), np.array([0, 0, 0, 1])), 4)
        0.7333
    """
    scores = []
    for label in np.union1d(targets, predicted):
        hits = np.sum((targets == label) & (predicted == label))
        scores.append(2 * hits / (np.sum(targets == label) + np.sum(predicted == label)))
    return float(np.mean(scores))
