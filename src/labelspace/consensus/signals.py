r"""What two signals say about accuracy and macro-F1, without a label.

Two signals need no label. Both are agreements beyond chance:

    words        Cohen's kappa of the answers with a linear model of words, which learnt them on other documents
    neighbours   how often a document has the answer of its 15 nearest documents, in the encoder's space

Answers that follow neither words nor neighbours are mostly wrong (agreement as a measure of accuracy: Platanios, Blum
and Mitchell, 2014, "Estimating accuracy from unlabeled data"). How much they say was measured on sets with labels
(`signals.json`, made by benchmarks/views/calibrate.py): on the scale of log-odds, accuracy beyond chance is linear in
them, with a normal error. Words learn less from few documents, and few have near ones, so how few there are, in all and
for each label, counts too. Labelled documents, if there are some, are counted as draws of that accuracy, and Bayes'
rule gives a narrower range.
"""

import functools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any, NamedTuple, final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit
from scipy.stats import norm

from labelspace.config import ConsensusConfig
from labelspace.consensus.agreement import Columns, Values, kappa, near_agreement
from labelspace.consensus.steps import words_across
from labelspace.geometry.neighbours import Graph
from labelspace.labels import LabelSpace
from labelspace.notebook import Shown

NEIGHBOURS = 15
MANY = 3000
"""Number of documents from which on more do not change what an agreement says."""

MANY_PER_LABEL = 100
"""The same for each label, on average."""

STATED = 0.8
"""Probability that a range states."""

MISLED = 0.02
"""Probability that the signals say nothing, so that labelled documents can overrule them."""

ANY = np.linspace(0.005, 0.995, 100)
"""Accuracies that are equally likely then."""


@final
@dataclass(frozen=True)
class Range(Shown):
    """A quantity that is between `low` and `high` with a probability of 0.8."""

    low: float
    """Lower end."""

    expected: float
    """The median."""

    high: float
    """Upper end."""

    def __str__(self) -> str:
        return f"{self.expected:.2f} ({self.low:.2f} to {self.high:.2f})"


class Signals(NamedTuple):
    """What the documents say about the answers."""

    words: float
    neighbours: float | None
    by_words: Columns
    """[text] column of the likeliest label by words."""

    near: Values | None
    """[text] share of the near documents with the same answer."""


def signals(
    answers: Columns, texts: Sequence[str], space: LabelSpace, vectors: NDArray[np.float32] | None, *, seed: int
) -> Signals:
    """Return how far words and neighbours agree with answers.

    Args:
        answers: [text] columns of labels.
        texts: the documents.
        space: the labels.
        vectors: [text dim], the documents in the encoder's space; None: there is no such space.
        seed: seed of the model of words.
    """
    graph = None if vectors is None else Graph(vectors, neighbours=NEIGHBOURS, seed=seed)
    return signals_of_graph(answers, texts, space, graph, seed=seed)


def signals_of_graph(
    answers: Columns, texts: Sequence[str], space: LabelSpace, graph: Graph | None, *, seed: int
) -> Signals:
    """Return the signals of answers whose documents' neighbours are known; the arguments are those of `signals`."""
    labels = len(space)
    across = words_across(list(texts), answers, space, ConsensusConfig(), seed=seed).argmax(axis=1)
    words = kappa(answers, across, labels)
    if graph is None:
        return Signals(words, None, across, None)
    agreement, near = near_agreement(answers, graph, labels)
    return Signals(words, agreement, across, near)


def ranges(
    found: Signals,
    labels: int,
    documents: int,
    *,
    consensus: bool,
    labelled: int = 0,
    right: int = 0,
    measured_f1: tuple[float, float] | None = None,
    most_f1: float = 1.0,
    lines: Mapping[str, Any] | None = None,
) -> tuple[Range, Range]:
    """Return the ranges of accuracy and macro-F1.

    Args:
        found: the signals.
        labels: number of labels.
        documents: number of documents that the signals are of.
        consensus: whether the model learnt from unlabelled documents, whose words and neighbours it then follows.
        labelled: number of labelled documents, drawn at random.
        right: how many of them the model answers rightly.
        measured_f1: macro-F1 on them and its standard error, if they are enough for one.
        most_f1: what macro-F1 cannot be above.
        lines: what the signals say; None: as measured.
    """
    line = (measured() if lines is None else lines)[which(found.neighbours is not None, consensus=consensus)]
    at = features(found.words, found.neighbours, *fewness(documents, labels))
    one, other = line["accuracy"], line["macro_f1"]
    # Accuracies in equal steps of their log-odds beyond chance; and, as signals can mislead, a few of any size.
    steps = np.linspace(-4, 4, 801)
    values = np.concatenate([beyond(at @ np.array(one["weights"]) + one["deviation"] * steps, labels), ANY])
    mass = np.concatenate([(1 - MISLED) * _shares(steps), np.full(len(ANY), MISLED / len(ANY))])
    before = mass
    mass = before * np.exp(_log_likelihood(values, labelled, right))
    # The error of macro-F1: a share of accuracy's, and one of its own.
    error = _log_odds(values, labels) - at @ np.array(one["weights"])
    middle = at @ np.array(other["weights"]) + other["slope"] * error
    macro_f1 = beyond(middle[:, None] + other["own_deviation"] * steps[None, :], labels)
    # Labels count once: by how many are right, or by their own macro-F1.
    of_accuracy = mass if measured_f1 is None else before
    f1, f1_mass = macro_f1.ravel(), (of_accuracy[:, None] * _shares(steps)[None, :]).ravel()
    if measured_f1 is not None:
        f1 = np.concatenate([f1, ANY])
        f1_mass = np.concatenate([(1 - MISLED) * f1_mass / f1_mass.sum(), np.full(len(ANY), MISLED / len(ANY))])
        told = norm.logpdf(f1, *measured_f1)
        f1_mass *= np.exp(told - told.max())
    return _range(values, mass), _range(np.minimum(f1, most_f1), f1_mass)


def features(words: float, neighbours: float | None, few: float, few_per_label: float) -> Values:
    """Return what the estimate is linear in: 1, the log-odds of the signals, and `fewness`.

    Example:
        >>> features(0.5, None, 0.0, 0.5).tolist()
        [1.0, 0.0, 0.0, 0.5]
    """
    given = [words] if neighbours is None else [words, neighbours]
    return np.array([1.0, *logit(np.clip(given, 0.02, 0.98)).tolist(), few, few_per_label])


def fewness(documents: int, labels: int) -> tuple[float, float]:
    """Return how few documents there are, in all and for each label: logarithms, 0 if there are many.

    Example:
        >>> fewness(3000, 10), fewness(300, 3)
        ((0.0, 0.0), (2.302585092994046, 0.0))
    """
    return max(0.0, math.log(MANY / documents)), max(0.0, math.log(MANY_PER_LABEL * labels / documents))


def of_many(agreement: float, labels: int, documents: int, *, neighbours: bool, consensus: bool) -> float:
    """Return what an agreement of few documents would be likely to be if there were many.

    Args:
        agreement: beyond chance, 0 to 1.
        labels: number of labels.
        documents: number of documents.
        neighbours: whether it is one of near documents as well as of words.
        consensus: as for `ranges`.
    """
    weights = np.array(measured()[which(neighbours, consensus=consensus)]["accuracy"]["weights"])
    rise = float(weights[-2:] @ np.array(fewness(documents, labels)) / weights[1:-2].sum())
    return float(expit(logit(np.clip(agreement, 0.02, 0.98)) + rise)) if rise else agreement


def beyond(log_odds: Values, labels: int) -> Values:
    """Return accuracies or macro-F1 from the log-odds of what they are beyond chance.

    Example:
        >>> beyond(np.array([0.0]), 2).tolist()
        [0.75]
    """
    return 1 / labels + (1 - 1 / labels) * expit(log_odds)


def _log_odds(values: Values, labels: int) -> Values:
    """Return the log-odds of what accuracies are beyond chance."""
    return logit(np.clip((values - 1 / labels) / (1 - 1 / labels), 0.02, 0.98))


def _shares(steps: Values) -> Values:
    return norm.pdf(steps) / norm.pdf(steps).sum()


def which(neighbours: bool, *, consensus: bool) -> str:
    """Return the name of the measured line for a kind of model."""
    return f"{'consensus' if consensus else 'alone'}, {'words and neighbours' if neighbours else 'words'}"


def _log_likelihood(accuracy: Values, labelled: int, right: int) -> Values:
    """Return the logarithm of the binomial probability, up to a constant, with 0 as its maximum."""
    kept = np.clip(accuracy, 1e-9, 1 - 1e-9)
    found = right * np.log(kept) + (labelled - right) * np.log1p(-kept)
    return found - found.max()


def _range(values: Values, mass: Values) -> Range:
    order = np.argsort(values, kind="stable")
    summed = np.cumsum(mass[order]) / mass.sum()
    at = [(1 - STATED) / 2, 0.5, (1 + STATED) / 2]
    low, middle, high = (float(values[order][np.searchsorted(summed, each)]) for each in at)
    return Range(low, middle, high)


@functools.cache
def measured() -> Mapping[str, Any]:
    """Return what was measured on sets with labels."""
    return json.loads(files("labelspace.consensus").joinpath("signals.json").read_text(encoding="utf-8"))
