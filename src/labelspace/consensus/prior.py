r"""The prior of a view: how often it gives each label over the pool, and a shift of its scores that corrects that.

An encoder has labels that attract everything and labels that attract nothing, whatever the documents are. A bias per
label is found such that the mean probabilities over the pool meet a wanted prior (OTTER, Shin et al., 2024, "OTTER:
effortless label distribution adaptation of zero-shot models", https://arxiv.org/abs/2404.08461; with soft answers in
place of its transport plan). A prior that the user gives is met by the answers, not by mean probabilities. The wanted
prior is

    shares ** alpha, normalised    alpha 1: as the view has it; alpha 0: all labels equally often; between: levelled
    a prior given by the user
"""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from labelspace.checks import check_number
from labelspace.errors import ConfigError
from labelspace.labels import LabelSpace

Table = NDArray[np.float64]

ROUNDS = 500
CLOSE = 1e-6
# A label that no document is near gets this share at least, so that its bias stays finite.
LEAST = 1e-6
CORRECTIONS = 3
NEAR = 0.1
"""Part of a label's share by which the answers may differ from a prior, beside half a document."""

SURE = 0.99
"""Mean probability of the likeliest label at which mean probabilities are the shares of answers, nearly."""


def levelled(shares: Table, alpha: float) -> Table:
    """Return shares to the power alpha, normalised, [label].

    Example:
        >>> levelled(np.array([0.9, 0.1]), 0.5).round(2).tolist()
        [0.75, 0.25]
    """
    powered = np.maximum(shares, LEAST) ** alpha
    return powered / powered.sum()


def shift_to(logits: NDArray[np.floating], prior: Table, *, close: float = CLOSE) -> Table:
    """Return the bias of each label that makes the mean probabilities meet a prior, [label], with mean 0.

    Args:
        logits: [text label], scores divided by their temperature.
        prior: [label], above 0, with sum 1.
        close: largest difference from the prior that is left.

    Example:
        >>> logits = np.array([[2.0, 0.0], [1.0, 0.0], [0.5, 0.0]])
        >>> bias = shift_to(logits, np.array([0.5, 0.5]))
        >>> softmax(logits + bias, axis=1).mean(axis=0).round(3).tolist()
        [0.5, 0.5]
    """
    bias = np.zeros(logits.shape[1])
    for _ in range(ROUNDS):
        mean = softmax(logits + bias, axis=1).mean(axis=0)
        if np.abs(mean - prior).max() < close:
            break
        bias += np.log(prior) - np.log(np.maximum(mean, 1e-12))
    return bias - bias.mean()


def shift_answers_to(logits: NDArray[np.floating], prior: Table) -> Table:
    """Return the bias of each label that makes the shares of the answers meet a prior, nearly, [label], with mean 0.

    `shift_to` meets it by mean probabilities. Where a view is unsure of everything, these hardly tell its answers: a
    label of a tenth of the documents would be the answer to none.

    Args:
        logits: [text label], scores divided by their temperature.
        prior: [label], above 0, with sum 1.

    Example:
        >>> logits = np.array([[0.2, 0.0], [0.1, 0.0], [0.05, 0.0], [0.0, 0.1]])
        >>> [(logits + shift(logits, np.array([0.25, 0.75]))).argmax(axis=1).tolist()
        ...  for shift in (shift_to, shift_answers_to)]
        [[1, 1, 1, 1], [0, 1, 1, 1]]
    """
    table = np.asarray(logits, dtype=np.float64)
    # A label that attracts everything would make a view look sure.
    bias, close = -table.mean(axis=0), max(CLOSE, NEAR * float(prior.min()) / 10)
    for _ in range(CORRECTIONS):
        moved = table + bias
        shares = np.bincount(moved.argmax(axis=1), minlength=len(bias)) / len(moved)
        if (np.abs(shares - prior) <= NEAR * prior + 0.5 / len(moved)).all():
            break
        spread = moved - moved.mean(axis=1, keepdims=True)
        sure = as_sure_as(spread, SURE)
        bias += shift_to(sure, prior, close=close) * (np.abs(spread).max() or 1) / (np.abs(sure).max() or 1)
    return bias - bias.mean()


def as_sure_as(logits: Table, confidence: float) -> Table:
    """Return logits divided by the temperature at which their mean confidence is the wanted one, [text label].

    Scores of different kinds, such as cosines and a language model's logits, are made comparable so.

    Args:
        logits: [text label], scores at any temperature.
        confidence: wanted mean probability of the likeliest label, above 1 / labels and below 1; less if ties allow no
            more.

    Example:
        >>> logits = as_sure_as(np.array([[0.2, 0.1], [0.1, 0.3]]), 0.8)
        >>> round(float(softmax(logits, axis=1).max(axis=1).mean()), 3)
        0.8
    """
    spread = float((logits.max(axis=1) - logits.mean(axis=1)).mean())
    if not spread > 0:
        return logits
    # Rows whose best labels are equal never become surer than that.
    ties = (logits == logits.max(axis=1, keepdims=True)).sum(axis=1)
    confidence = min(confidence, 0.99 * float((1 / ties).mean()))
    low, high = 1e-4 / spread, 1e4 / spread
    for _ in range(60):
        factor = float(np.sqrt(low * high))
        found = float(softmax(logits * factor, axis=1).max(axis=1).mean())
        low, high = (factor, high) if found < confidence else (low, factor)
    return logits * float(np.sqrt(low * high))


def as_prior(prior: Mapping[str, float] | None, space: LabelSpace) -> NDArray[np.float64] | None:
    """Return how often each label is expected, [label], with sum 1; None without a prior.

    Raises:
        ConfigError: a label is missing or unknown, or a share is not above 0.
    """
    if prior is None:
        return None
    if not isinstance(prior, Mapping) or set(prior) != set(space.names):
        raise ConfigError(f"prior must give each label a share ({', '.join(space.names)}). Got {prior!r} instead.")
    for name, share in prior.items():
        check_number(f"prior[{name!r}]", share, above=0)
    shares = np.array([float(prior[name]) for name in space.names])
    return shares / shares.sum()
