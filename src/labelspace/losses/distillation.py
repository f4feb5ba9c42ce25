r"""Cross-entropy against soft targets (Hinton, Vinyals and Dean, 2015, "Distilling the knowledge in a neural network").

    scores[i, l] = cos(e(text i), a(label l)) / temperature
    targets[i, l]  probability of label l for text i, by a teacher
    weights[i]     how much text i counts

This file knows nothing about encoders, texts or optimisers.
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.axes import Scalar, Scores
from labelspace.errors import ShapeError


def soft_cross_entropy(
    scores: Scores,
    targets: Float[Tensor, "text label"] | Float[np.ndarray, "text label"],
    weights: Float[Tensor, " text"] | Float[np.ndarray, " text"],
) -> Scalar:
    r"""Weighted mean cross-entropy of each text against its teacher's probabilities.

    .. math::
        \mathcal{L} = -\frac{1}{\sum_i w_i} \sum_i w_i \sum_l p_{il}
            \Bigl( S_{il} - \log \sum_k e^{S_{ik}} \Bigr)

    Paper: its cross-entropy with the soft targets, at temperature 1 of the targets; the weights are not in it.

    With one-hot targets and equal weights it is `infonce_rows`.

    Args:
        scores: [text label], similarities already divided by the temperature.
        targets: [text label], probabilities, a tensor or an array; each row sums to one.
        weights: [text], a tensor or an array, zero or more, not all zero.

    Returns:
        A scalar, zero or more, on the device of `scores`, float32 (float64 where `scores` is). A label whose score is
        -inf and whose probability is 0 counts for nothing.

    Raises:
        ShapeError: the shapes differ.

    Example:
        >>> scores = torch.tensor([[2.0, 0.0], [0.0, 2.0]])
        >>> soft = torch.tensor([[0.9, 0.1], [0.5, 0.5]])
        >>> round(soft_cross_entropy(scores, soft, torch.tensor([1.0, 0.0])).item(), 4)
        0.3269

    Reference:
        Hinton et al., 2015, https://arxiv.org/abs/1503.02531, section 2, at the student's temperature and without the
        factor of its square: there is no second loss whose gradients it has to match.
    """
    if scores.ndim != 2 or targets.shape != scores.shape or weights.shape != scores.shape[:1]:
        raise ShapeError(
            "soft_cross_entropy takes scores and targets of one shape [text label] and weights [text]. Got "
            f"{tuple(scores.shape)}, {tuple(targets.shape)} and {tuple(weights.shape)} instead."
        )
    scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
    targets, weights = (
        # A copy, because torch warns of arrays that cannot be written to.
        (given if isinstance(given, Tensor) else torch.tensor(np.array(given, dtype=np.float64))).to(scores)
        for given in (targets, weights)
    )
    # 0 times -inf would be nan.
    hidden = (targets == 0) & scores.isneginf()
    each = -(targets * torch.log_softmax(scores, dim=1).masked_fill(hidden, 0.0)).sum(dim=1)
    return (weights * each).sum() / weights.sum()
