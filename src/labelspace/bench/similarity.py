r"""Word overlap of data sets (BTZSC, section 3 and Figure 1; Thakur et al., 2021).

A data set is represented by the relative frequencies of its words; two are compared by weighted Jaccard similarity.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.errors import InputError

# Words and numbers in any script; "don't" is one word.
WORD = re.compile(r"\w+(?:['\u2019]\w+)*")


@final
@dataclass(frozen=True, kw_only=True)
class Similarities:
    """A matrix of similarities with the names of its rows and columns."""

    names: tuple[str, ...]
    """The data sets, in the order given."""

    values: NDArray[np.float64]
    """[set set], 0 to 1, symmetric, 1 on the diagonal."""

    texts: tuple[int, ...]
    """Number of texts counted in each data set."""


def word_frequencies(texts: Iterable[str]) -> dict[str, float]:
    """Return the relative frequency of each word, in lower case; they sum to 1.

    Args:
        texts: texts of one data set; read once, so a generator is fine.

    Raises:
        InputError: the texts contain no word.

    Example:
        >>> word_frequencies(["The match", "the vote"])
        {'the': 0.5, 'match': 0.25, 'vote': 0.25}
    """
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(WORD.findall(text.lower()))
    total = counts.total()
    if not total:
        raise InputError("the texts of a data set hold no word; give texts to compare.")
    return {word: count / total for word, count in counts.items()}


def weighted_jaccard(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    r"""Return the overlap of two word distributions, from 0 (no shared word) to 1 (identical).

    .. math::
        J(S, T) = \frac{\sum_k \min(S_k, T_k)}{\sum_k \max(S_k, T_k)}

    Both sum to 1, and min + max is the sum of the two, so the denominator is 2 less the numerator.

    Args:
        one: relative word frequencies of the first data set.
        other: relative word frequencies of the second.

    Example:
        >>> round(weighted_jaccard({"a": 0.5, "b": 0.5}, {"b": 0.5, "c": 0.5}), 4)
        0.3333

    Reference:
        Thakur et al., 2021, https://arxiv.org/abs/2104.08663, appendix "weighted Jaccard similarity";
        BTZSC, section 3.
    """
    # Iterate over the smaller vocabulary: a word of only one set adds nothing to the numerator.
    few, many = sorted((one, other), key=len)
    shared = sum(min(share, many[word]) for word, share in few.items() if word in many)
    return shared / (sum(one.values()) + sum(other.values()) - shared)


def similarities(data_sets: Mapping[str, Iterable[str]]) -> Similarities:
    """Compare every pair of data sets.

    Args:
        data_sets: name -> texts.

    Returns:
        The matrix of Figure 1.

    Raises:
        InputError: no data set, or one that contains no word.

    Example:
        >>> found = similarities({"games": ["a match", "a goal"], "votes": ["a vote"], "same": ["goal a a match"]})
        >>> found.values.round(2).tolist()
        [[1.0, 0.33, 1.0], [0.33, 1.0, 0.33], [1.0, 0.33, 1.0]]
    """
    if not data_sets:
        raise InputError("there is no data set to compare; give at least one.")
    frequencies, counts = [], []
    for name, texts in data_sets.items():
        kept = list(texts)
        counts.append(len(kept))
        try:
            frequencies.append(word_frequencies(kept))
        except InputError as error:
            raise InputError(f"{name}: {error}") from error
    values = np.eye(len(frequencies))
    for row, one in enumerate(frequencies):
        for column in range(row):
            values[row, column] = values[column, row] = weighted_jaccard(one, frequencies[column])
    return Similarities(names=tuple(data_sets), values=values, texts=tuple(counts))
