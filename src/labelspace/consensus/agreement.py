r"""How often views agree beyond chance, and what that says about each of them, without a label.

If views err independently and all wrong labels alike, the chance-corrected agreement of two views is the product of
their chance-corrected accuracies (Platanios, Blum and Mitchell, 2014, "Estimating accuracy from unlabeled data"; the
form for several labels of Dawid and Skene, 1979, with one competence a view):

.. math::
    \kappa_{vw} = k_v k_w, \qquad k_v = \frac{a_v - 1/L}{1 - 1/L}

Three views determine their competences k; two only the geometric mean, which both then get.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Columns = NDArray[np.intp]

LEAST = 0.01


def kappa(one: Columns, other: Columns, labels: int) -> float:
    """Return Cohen's kappa of two views' answers: 1 if equal, 0 if they agree no more than by chance.

    Args:
        one: [text], columns of labels.
        other: [text], columns of labels.
        labels: number of labels.

    Example:
        >>> kappa(np.array([0, 0, 1, 1]), np.array([0, 0, 1, 0]), 2)
        0.5
    """
    agreed = float((one == other).mean())
    first, second = (np.bincount(each, minlength=labels) / len(each) for each in (one, other))
    chance = float(first @ second)
    return 1.0 if chance >= 1 else (agreed - chance) / (1 - chance)


def competences(answers: Sequence[Columns], labels: int) -> NDArray[np.float64]:
    """Return the competence of each view, 0.01 to 1, [view]: its accuracy beyond chance, from agreement alone.

    Args:
        answers: a column of labels for each text, by each view.
        labels: number of labels.

    Example:
        >>> truth = np.arange(1200) % 2
        >>> wrong = [np.arange(1200) % step == 0 for step in (5, 7, 11)]
        >>> competences([np.where(flip, 1 - truth, truth) for flip in wrong], 2).round(1).tolist()
        [0.6, 0.7, 0.8]
    """
    count = len(answers)
    if count == 1:
        return np.ones(1)
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count)]
    found = np.array([max(kappa(answers[i], answers[j], labels), LEAST) for i, j in pairs])
    if count == 2:
        return np.full(2, np.sqrt(found[0]))
    design = np.zeros((len(pairs), count))
    for row, pair in enumerate(pairs):
        design[row, list(pair)] = 1
    # The log turns the products into sums; the least squares solution is exact for three views.
    solved = np.linalg.lstsq(design, np.log(found), rcond=None)[0]
    return np.clip(np.exp(solved), LEAST, 1.0)


def accuracy_of(competence: float, labels: int) -> float:
    """Return the accuracy that belongs to a competence.

    Example:
        >>> accuracy_of(0.5, 2), accuracy_of(0.0, 4)
        (0.75, 0.25)
    """
    return competence * (1 - 1 / labels) + 1 / labels
