"""nDCG: a measure of how near to the top a search ranks relevant documents."""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray


def ndcg(scores: NDArray[np.floating], relevant: Sequence[Mapping[int, float]], k: int = 10) -> NDArray[np.float64]:
    r"""Normalised discounted cumulative gain of the first k documents of each query.

    .. math::
        \mathrm{nDCG@}k = \frac{\sum_{i=1}^{k} g_{\pi(i)} / \log_2(i + 1)}{\sum_{i=1}^{k} g^*_i / \log_2(i + 1)}

    with :math:`\pi(i)` the document at rank i, g its gain, and g* the gains in descending order. Ties in score go to
    the earlier document. Gains are used linearly, which for 0 and 1 equals 2^g - 1.

    Args:
        scores: [query document], higher is nearer.
        relevant: for each query, document number -> gain of the relevant documents.
        k: number of ranks that count.

    Returns:
        [query] nDCG, 0 to 1; 0 for a query without a relevant document.

    Example:
        >>> ndcg(np.array([[0.9, 0.5, 0.1]]), [{1: 1.0}]).round(4).tolist()
        [0.6309]

    Reference:
        Järvelin & Kekäläinen, 2002, https://doi.org/10.1145/582415.582418, with the discount of trec_eval.
    """
    places = min(k, scores.shape[1])
    discounts = 1 / np.log2(np.arange(2, places + 2))
    first = np.argsort(-scores, axis=1, kind="stable")[:, :places]
    found = np.zeros(len(scores))
    for query, (order, gains) in enumerate(zip(first, relevant, strict=True)):
        best = sorted(gains.values(), reverse=True)[:places]
        ideal = float(np.dot(best, discounts[: len(best)]))
        got = float(np.dot([gains.get(int(document), 0.0) for document in order], discounts))
        found[query] = got / ideal if ideal else 0.0
    return found
