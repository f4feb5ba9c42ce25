"""Several labels a text: the cut of each one, from a pool, from a stated mean number of labels, or from rows.

A label is predicted where its score, in standard deviations above its mean over the documents, reaches its cut. As
scores the cuts differ, because means and deviations do; labelled rows also move them apart on this scale.
"""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, final

import numpy as np
from numpy.typing import NDArray

from labelspace.classify.standard import Standard
from labelspace.errors import own_filters
from labelspace.notebook import Shown

WIDTH = 0.5
"""Standard deviations over which a probability rises from 0.50 to 0.73: the best calibrated of six widths, from 0.2 to
1.5, on the train rows of two sets, see docs/several-labels.md."""

CLEARLY = 3.0
"""Distance of two Gaussians' means, in their root mean squared deviation, from which they are clearly apart. Two parts
fitted to mere noise are 2 to 3 apart."""

ALIKE = 0.5
"""Correlation from which the upper parts of two labels are the same documents."""

LEAST_SHARED = 1.64
"""Least shared cut where other labels have a cut of their own: a label without one is rare or never occurs, and a
twentieth of normal scores lie above this."""

WEIGHT_OF_SHARED = 10
"""Rows with a label at which its own best cut weighs as much as the cut that all labels share."""

Truth = NDArray[np.bool_]


@final
@dataclass(frozen=True, kw_only=True)
class Cuts(Shown):
    """The cut of each label, and where the cuts come from.

    Example:
        >>> scores = np.array([[0.9, 0.1], [0.1, 0.2], [0.1, 0.8], [0.1, 0.1]], dtype=np.float32)
        >>> cuts = cuts_of_pool(("sports", "money"), scores)
        >>> cuts.chosen(cuts.margins(("sports", "money"), scores)).tolist()
        [[True, False], [False, False], [False, True], [False, False]]
    """

    standard: Standard
    """Mean and standard deviation of each label's score."""

    of_labels: Mapping[str, float]
    """Cut by label name, in standard deviations above the mean."""

    source: str
    """`"pool"`, `"labels_per_text"` or `"rows"`."""

    documents: int
    """Number of documents that they were set on."""

    per_text: float
    """Mean number of labels that they give these documents."""

    made_for: str = ""
    """Digest of the labels' texts and of what represents a label; the cuts hold for no other."""

    def margins(self, labels: Sequence[str], scores: NDArray[np.float32]) -> NDArray[np.float64]:
        """Return how far each score is above the cut of its label, in widths of the sigmoid, [text label]."""
        cuts = np.array([self.of_labels[name] for name in labels])
        return (self.standard.apply(labels, scores) - cuts) / WIDTH

    def chosen(self, margins: NDArray[np.float64]) -> Truth:
        """Return which labels are predicted, [text label]."""
        return margins >= 0

    def probabilities(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sigmoid of the margins, [text label]; 0.5 or more exactly where a label is predicted."""
        from scipy.special import expit

        found = expit(margins)
        return np.where(margins < 0, np.minimum(found, np.nextafter(0.5, 0)), found)

    def as_score(self, label: str) -> float:
        """Return the cut of a label as a score."""
        mean, deviation = self.standard.of_labels[label]
        return mean + self.of_labels[label] * deviation

    def edited(self, change: Callable[[dict[str, Any]], dict[str, Any]], made_for: str) -> "Cuts":
        """Return the cuts with a label renamed or removed."""
        return replace(
            self, standard=self.standard.edited(change), of_labels=change(dict(self.of_labels)), made_for=made_for
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, ready for JSON; `from_dict` is the inverse."""
        return {**asdict(self), "standard": self.standard.to_dict()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> "Cuts":
        """Return the cuts that `to_dict` was called on."""
        return cls(**{**values, "standard": Standard.from_dict(values["standard"])})

    def __str__(self) -> str:
        where = {"pool": "unlabelled documents", "labels_per_text": "documents, from labels_per_text"}
        documents = f"{self.documents} {where.get(self.source, 'labelled rows')}"
        return f"set on {documents}; {self.per_text:.2f} labels a text there"


def cuts_of_pool(labels: Sequence[str], scores: NDArray[np.float32]) -> Cuts:
    """Return a cut of its own for each label whose scores have two clear parts; the others share one, in deviations.

    The shared cut is Otsu's cut of the best standardised score of each document: documents with a label and documents
    with none differ in it, and a pool has many of both, while it has few documents of a rare label. Labels whose upper
    parts are the same documents are about one topic, whose parts tell nothing about each label: they share too.

    Args:
        labels: [label] names.
        scores: [text label] scores of the documents.
    """
    standard, apart = _standardised(labels, scores)
    own = np.array([clear_cut(column) for column in apart.T])
    own[_alike(apart >= own)] = np.inf
    shared = otsu(apart.max(axis=1))
    if np.isfinite(own).any():
        shared = max(shared, LEAST_SHARED)
    return _cuts(labels, standard, apart, np.where(np.isfinite(own), own, shared), "pool")


def cuts_of_mean(labels: Sequence[str], scores: NDArray[np.float32], per_text: float) -> Cuts:
    """Return one cut for all labels, in deviations, that gives documents this many labels on average.

    Args:
        labels: [label] names.
        scores: [text label] scores of the documents.
        per_text: mean number of labels of a text, above 0 and below the number of labels.
    """
    standard, apart = _standardised(labels, scores)
    given = max(1, round(per_text * len(scores)))
    ordered = np.sort(apart, axis=None)[::-1]
    cut = between(ordered[given - 1], ordered[min(given, len(ordered) - 1)])
    return _cuts(labels, standard, apart, np.full(len(labels), cut), "labels_per_text")


def cuts_of_rows(labels: Sequence[str], scores: NDArray[np.float32], truth: Truth, known: Truth) -> Cuts:
    """Return the cut of best F1 for each label, drawn towards the cut of best micro-F1 where rows are few.

    Args:
        labels: [label] names.
        scores: [text label] scores of all documents; they set means and deviations.
        truth: [text label] whether a document has a label.
        known: [text] whether the labels of a document are known.
    """
    standard, apart = _standardised(labels, scores)
    shared = best_f1_cut(apart[known].ravel(), truth[known].ravel())
    found = np.full(len(labels), shared)
    for column in np.flatnonzero(truth[known].any(axis=0)):
        own = best_f1_cut(apart[known, column], truth[known, column])
        rows = truth[known, column].sum()
        found[column] = (rows * own + WEIGHT_OF_SHARED * shared) / (rows + WEIGHT_OF_SHARED)
    return _cuts(labels, standard, apart, found, "rows")


def clear_cut(values: NDArray[np.float64], *, clearly: float = CLEARLY) -> float:
    """Return where the upper of two Gaussians becomes likelier; infinity if nowhere, or if they are not clearly apart.

    Args:
        values: [text] standardised scores of a label.
        clearly: how far apart they must stand, in their root mean squared deviation.

    Example:
        >>> noise = np.random.default_rng(0).normal(size=300)
        >>> 2 < clear_cut(np.concatenate([noise, noise + 8])) < 6, clear_cut(noise)
        (True, inf)
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.mixture import GaussianMixture

    start = np.array([np.quantile(values, 0.15), np.quantile(values, 0.98)])[:, None]
    with own_filters():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the best fit so far is good enough to say so
        mixture = GaussianMixture(2, means_init=start, random_state=0).fit(values[:, None])
    fitted: Any = mixture
    means, spreads = fitted.means_.ravel(), np.sqrt(fitted.covariances_.ravel())
    upper = int(means.argmax())
    if means.max() - means.min() < clearly * np.sqrt((spreads**2).mean()):
        return float(np.inf)
    grid = np.linspace(means.min(), means.max(), 400)
    likelier = grid[mixture.predict_proba(grid[:, None])[:, upper] >= 0.5]  # none, if it shrank to a point
    return float(likelier[0]) if len(likelier) else float(np.inf)


def _alike(parts: Truth) -> Truth:
    """Return which labels' upper parts are nearly those of another label, [label]; empty parts are like none."""
    centred = parts - parts.mean(axis=0)
    lengths = np.sqrt((centred**2).sum(axis=0))
    correlation = centred.T @ centred / np.maximum(np.outer(lengths, lengths), 1e-12)
    np.fill_diagonal(correlation, 0)
    return (correlation > ALIKE).any(axis=0)


def otsu(values: NDArray[np.float64]) -> float:
    """Return Otsu's cut: the two parts differ most in their means, each difference weighed by the sizes of the parts.

    Example:
        >>> float(otsu(np.array([0.0, 0.1, 0.2, 5.0, 5.2])))
        2.6

    Reference:
        N. Otsu, "A threshold selection method from gray-level histograms", 1979, eq. 14.
    """
    ordered = np.sort(values)
    below = np.arange(1, len(ordered))
    sums = np.cumsum(ordered)
    gap = (sums[-1] - sums[:-1]) / (len(ordered) - below) - sums[:-1] / below
    place = int((below * (len(ordered) - below) * gap**2).argmax())
    return between(ordered[place + 1], ordered[place])


def best_f1_cut(values: NDArray[np.float64], truth: Truth) -> float:
    """Return the cut of highest F1, half-way between two values; of equal ones the highest.

    Example:
        >>> best_f1_cut(np.array([3.0, 2.0, 1.0, 0.0]), np.array([True, False, True, False]))
        0.5
    """
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    f1 = 2 * np.cumsum(truth[order]) / (np.arange(1, len(values) + 1) + truth.sum())
    # Equal values fall on the same side of a cut.
    f1[:-1][ordered[:-1] == ordered[1:]] = -1
    place = int(f1.argmax())
    return between(ordered[place], ordered[min(place + 1, len(ordered) - 1)])


def between(upper: float, lower: float) -> float:
    """Return a cut that the upper value reaches and the lower one does not, if they differ."""
    middle = float(upper + lower) / 2
    return middle if middle > lower else float(upper)


def _standardised(labels: Sequence[str], scores: NDArray[np.float32]) -> tuple[Standard, NDArray[np.float64]]:
    standard = Standard.of(labels, scores)
    return standard, standard.apply(labels, scores)


def _cuts(
    labels: Sequence[str], standard: Standard, apart: NDArray[np.float64], cuts: NDArray[np.float64], source: str
) -> Cuts:
    per_text = float((apart >= cuts).sum(axis=1).mean())
    of_labels = dict(zip(labels, cuts.tolist(), strict=True))
    return Cuts(standard=standard, of_labels=of_labels, source=source, documents=len(apart), per_text=per_text)
