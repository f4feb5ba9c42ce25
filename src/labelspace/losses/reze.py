r"""REZE: learn the pairs, and keep their relations where the debiased reference has them (REZE, eq. 8-10).

A relation is an anchor and its positive side by side, r = [a; p]. The targets come from `labelspace.geometry.debias`;
here they are given.

Axes        here        paper      meaning
            pair        B          anchor-positive pairs of the batch
            dim         d          coordinates of an embedding
            relation    D = 2d     coordinates of a relation

Precision   Vectors may be of any float type; cosines and sums are float32 or wider, also inside autocast.
Lengths     Eq. 9 does not feel the length of a vector. Eq. 8 feels how long an anchor is beside its positive, so
            give it what the reference was given: vectors of unit length, where the encoder makes such.
Checks      Shapes are checked here, on every call.

This file knows nothing about encoders, texts or optimisers.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from labelspace.axes import Scalar
from labelspace.checks import check_number
from labelspace.errors import ShapeError
from labelspace.losses.infonce import infonce_rows
from labelspace.losses.similarity import Temperature, cosine_scores


class RezeLoss(NamedTuple):
    """The sum of equation 10 and its two parts, the regularizer without its weight."""

    total: Scalar
    main: Scalar
    regularizer: Scalar


def relation_cosine(current: Float[Tensor, "pair relation"], target: Float[Tensor, "pair relation"]) -> Scalar:
    r"""REZE's regularizer: how far the relations have turned away from their targets.

    .. math::
        \mathcal{L}_\text{reze} = \frac{1}{B} \sum_{i=1}^{B} \bigl( 1 - \cos(r_i, \hat{r}_i^{(0)}) \bigr)

    Paper: eq. 8; `current` is r, `target` its debiased counterpart. No gradient flows into the target.

    Args:
        current: [pair relation], the relations of the model that is trained.
        target: [pair relation], what `labelspace.geometry.debias` made of those of the reference model.

    Returns:
        A scalar between 0 (all in the direction of their targets) and 2 (all opposite), up to rounding, float32 or
        wider.

    Raises:
        ShapeError: the inputs are not matrices of one shape.

    Example:
        >>> current = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> target = torch.tensor([[2.0, 0.0], [3.0, 4.0]])
        >>> round(relation_cosine(current, target).item(), 4)
        0.1

    See also:
        labelspace.geometry.debias: makes the targets; reze_loss: adds this to the main loss.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", eq. 8.
    """
    _check_pairs("relation_cosine", current, target)
    wide = torch.promote_types(torch.promote_types(current.dtype, target.dtype), torch.float32)
    cosines = (F.normalize(current.to(wide), dim=1) * F.normalize(target.detach().to(wide), dim=1)).sum(dim=1)
    return (1 - cosines).mean()


def pair_infonce(
    anchors: Float[Tensor, "pair dim"], positives: Float[Tensor, "pair dim"], temperature: Temperature = 0.05
) -> Scalar:
    r"""Main loss of pre-finetuning: each anchor against the positives of the batch.

    .. math::
        \mathcal{L}_\text{main}
          = -\frac{1}{B} \sum_{i=1}^{B}
            \log \frac{\exp(\cos(e_i^a, e_i^p) / \tau)}{\sum_{j=1}^{B} \exp(\cos(e_i^a, e_j^p) / \tau)}

    Paper: eq. 9, the same names. One direction only: a positive does not look for its anchor. Two pairs of a batch
    with one positive, as two texts of one class have, are negatives of each other nevertheless; the paper puts no
    constraint on its batches, and the loss then cannot fall to 0.

    Args:
        anchors: [pair dim], :math:`e^a`.
        positives: [pair dim], :math:`e^p`.
        temperature: :math:`\tau`, above zero.

    Returns:
        A scalar, zero or more, float32 or wider; `log B` at equal scores, and 0 for a batch of one pair.

    Raises:
        ShapeError: the inputs are not matrices of one shape.
        ConfigError: `temperature` is out of its range.

    Example:
        >>> round(pair_infonce(torch.eye(2), torch.eye(2), temperature=0.5).item(), 4)
        0.1269

    See also:
        infonce_rows: the same on a table of scores; self_supervised_contrastive: the same between two views.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", eq. 9;
        van den Oord et al., 2018, https://arxiv.org/abs/1807.03748
    """
    _check_pairs("pair_infonce", anchors, positives)
    own = torch.arange(anchors.shape[0], device=anchors.device)
    return infonce_rows(cosine_scores(anchors, positives, temperature), own)


def reze_loss(
    anchors: Float[Tensor, "pair dim"],
    positives: Float[Tensor, "pair dim"],
    target: Float[Tensor, "pair relation"],
    regularizer_weight: float = 1.0,
    temperature: Temperature = 0.05,
) -> RezeLoss:
    r"""REZE's objective: the main loss and the weighted regularizer.

    .. math::
        \mathcal{L} = \mathcal{L}_\text{main} + \alpha \, \mathcal{L}_\text{reze}

    Paper: eq. 10; :math:`\alpha` is `regularizer_weight`, which is no factor of eq. 6. Section 5.1 finds 0.5 to 1
    best and takes 1; 5 or 10 hurt. With 0 it is plain pre-finetuning.

    Args:
        anchors: [pair dim], of the model that is trained.
        positives: [pair dim], of the same model.
        target: [pair relation], the debiased relations of the reference model, twice as wide.
        regularizer_weight: :math:`\alpha`, zero or more.
        temperature: :math:`\tau` of the main loss, above zero.

    Returns:
        `total`, and the parts `main` and `regularizer` before weighting; float32 or wider.

    Raises:
        ShapeError: anchors and positives are not matrices of one shape, or the targets not twice as wide.
        ConfigError: an option is out of its range.

    Example:
        >>> target = torch.tensor([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])
        >>> loss = reze_loss(torch.eye(2), torch.eye(2), target, regularizer_weight=2.0, temperature=0.5)
        >>> [round(part.item(), 4) for part in loss]
        [0.6269, 0.1269, 0.25]

    See also:
        pair_infonce, relation_cosine: its parts.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", eq. 10.
    """
    _check_pairs("reze_loss", anchors, positives)
    check_number("regularizer_weight", regularizer_weight, least=0)
    main = pair_infonce(anchors, positives, temperature)
    regularizer = relation_cosine(torch.cat([anchors, positives], dim=1), target)
    return RezeLoss(main + regularizer_weight * regularizer, main, regularizer)


def _check_pairs(what: str, first: Tensor, second: Tensor) -> None:
    if first.ndim != 2 or first.shape != second.shape or 0 in first.shape:
        raise ShapeError(
            f"{what} needs two matrices of one shape, with one pair at least. "
            f"Got shapes {tuple(first.shape)} and {tuple(second.shape)} instead."
        )
