r"""Label-wise contrastive learning on sampled vectors, softmax and KL (uncertainty-aware contrastive, eq. 3-6).

    z_i = mean_i + noise * std_i          the sampled vector of text i
    scores[i, k] = cos(z_i, z_k) / temperature

Axes        here         paper      meaning
            text         n          texts in the batch
            label        k          labels; column c is label c of the LabelSpace
            dim          -          coordinates of a vector
            vectors      z          sampled vectors, of any length
            mean         mu         what a text is expected to mean
            std          sigma      how far its vector may lie from there, coordinate by coordinate
            targets      y          column of each text's label

Precision   Inputs may be of any float type; cosines and sums are float32 or wider, also inside autocast.
Checks      Shapes are checked here, on every call. Values (targets in range, std above zero) are checked
            where they are made, because on a GPU each such check waits for the device.

This file knows nothing about encoders, texts or optimisers.
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from labelspace.axes import Embeddings, Scalar
from labelspace.checks import check_number, check_scores_and_targets, check_targets
from labelspace.errors import ShapeError
from labelspace.losses.infonce import infonce_rows
from labelspace.losses.similarity import Temperature, cosine_scores


class LabelwiseLoss(NamedTuple):
    """The sum of equation 6 and its three parts, the parts without their weights."""

    total: Scalar
    softmax: Scalar
    contrastive: Scalar
    kl: Scalar


def labelwise_contrastive(vectors: Embeddings, targets: Int[Tensor, " text"], temperature: Temperature = 2.0) -> Scalar:
    r"""Label-wise contrastive loss: the share of a text's own label among all texts of the batch.

    .. math::
        \mathcal{L}_\text{LCL}
          = \frac{1}{n} \sum_{i=1}^{n}
            -\log \frac{\sum_{k \in P(i)} \exp(\hat z_i \cdot \hat z_k / \tau)}
                       {\sum_{j=1}^{n} \exp(\hat z_i \cdot \hat z_j / \tau)}

    Paper: eq. 3, the same names; a hat means unit length. The positives are pooled before the logarithm, unlike in
    `supervised_contrastive`.

    Does j = i count? Yes, above and below. The denominator is written from 1 to n, and P(i), "samples belonging to the
    same class within the batch", must hold i as well: the paper trains on 77 classes with batches of 64, where four
    in ten texts have no other text of their label, and its formula would be infinite for each of them. With i in
    both, such a text gives :math:`\log \sum_j \exp(\hat z_i \cdot \hat z_j / \tau) - 1/\tau`, which only pushes
    the others away. The cosine of a text with itself is constant, so it adds no gradient of its own.

    Args:
        vectors: [text dim], the sampled vectors; they are brought to unit length here.
        targets: [text], integers, the label of each text; -100 is no ignore index.
        temperature: :math:`\tau`, above zero; 2.0 in section 5.3.

    Returns:
        A scalar from 0, where all texts have one label, to `log n`, where all have one direction and each its own
        label: no text is nearer than the text itself, which is above too. float32 or wider. Memory grows with the
        square of the batch.

    Raises:
        ShapeError: `vectors` is not a matrix, or `targets` has not one entry per text.
        InputError: `targets` are no integers.
        ConfigError: `temperature` is out of its range.

    Example:
        >>> vectors = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]])
        >>> round(labelwise_contrastive(vectors, torch.tensor([0, 0, 1]), temperature=1.0).item(), 4)
        0.2964

    See also:
        supervised_contrastive: a mean over positives outside the logarithm, without the text itself.

    Reference:
        "Uncertainty-aware contrastive sentence embedding with local context representation for text
        classification", eq. 3.
    """
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise ShapeError(f"vectors must be a matrix [text dim]. Got shape {tuple(vectors.shape)} instead.")
    check_targets(targets, vectors.shape[0], "label number per text")
    scores = cosine_scores(vectors, vectors, temperature)  # [text text]
    own = targets[:, None] == targets
    return (scores.logsumexp(dim=1) - scores.masked_fill(~own, -torch.inf).logsumexp(dim=1)).mean()


def gaussian_kl(mean: Embeddings, std: Embeddings) -> Scalar:
    r"""Kullback-Leibler divergence of each text's Gaussian from the standard normal one.

    .. math::
        \mathcal{L}_\text{KL}
          = \frac{1}{n} \sum_{i=1}^{n} \sum_{d}
            \tfrac{1}{2} \bigl( \mu_{id}^2 + \sigma_{id}^2 - 1 - \log \sigma_{id}^2 \bigr)

    Paper: eq. 5, in closed form. It is a sum over coordinates, as a divergence of independent coordinates is, and a
    mean over the batch, as the other parts are; so the weight 1e-3 of section 5.6 is taken to be for a sum. The paper
    does not say: were it for a mean over the d coordinates, as some code has it, it would be 1e-3 / d here.

    Args:
        mean: [text dim].
        std: [text dim], above zero.

    Returns:
        A scalar, zero or more; 0 only for mean 0 and std 1 everywhere. float32 or wider.

    Raises:
        ShapeError: the inputs are not matrices of one shape.

    Example:
        >>> round(gaussian_kl(torch.tensor([[1.0, 0.0]]), torch.tensor([[1.0, 0.5]])).item(), 4)
        0.8181

    Reference:
        "Uncertainty-aware contrastive sentence embedding", eq. 5; the closed form: Kingma and Welling, 2014,
        https://arxiv.org/abs/1312.6114, appendix B.
    """
    if mean.ndim != 2 or mean.shape != std.shape or 0 in mean.shape:
        raise ShapeError(
            "mean and std must be matrices [text dim] of one shape. "
            f"Got shapes {tuple(mean.shape)} and {tuple(std.shape)} instead."
        )
    mean, std = _widened(mean), _widened(std)
    return (0.5 * (mean.square() + std.square() - 1) - std.log()).sum(dim=1).mean()


def labelwise_loss(
    logits: Float[Tensor, "text label"],
    vectors: Embeddings,
    targets: Int[Tensor, " text"],
    mean: Embeddings,
    std: Embeddings | None,
    contrastive_weight: float = 0.6,
    kl_weight: float = 1e-3,
    temperature: Temperature = 2.0,
) -> LabelwiseLoss:
    r"""The paper's objective: softmax and the label-wise contrastive part share the weight, KL comes on top.

    .. math::
        \mathcal{L} = (1 - \lambda_\text{lcl}) \mathcal{L}_\text{softmax}
          + \lambda_\text{lcl} \mathcal{L}_\text{LCL} + \lambda_\text{kl} \mathcal{L}_\text{KL}

    Paper: eq. 6. :math:`\mathcal{L}_\text{softmax}` is eq. 4, the cross-entropy of :math:`w_c \cdot z_i`, on the
    sampled vector before it is brought to unit length. 0.6 and 1e-3 are the paper's for its first encoder (sections
    5.3 and 5.6), 0.7 and 0.9 for the two others.

    Args:
        logits: [text label], :math:`w_c \cdot z_i`.
        vectors: [text dim], z, the sampled vectors.
        targets: [text], integers, the column of each text's label, `0 <= targets < labels`; -100 is no ignore index.
        mean: [text dim].
        std: [text dim], above zero; None for a head without uncertainty, whose KL is then 0.
        contrastive_weight: :math:`\lambda_\text{lcl}`, 0 to 1.
        kl_weight: :math:`\lambda_\text{kl}`, zero or more.
        temperature: of the contrastive part.

    Returns:
        `total`, and the parts `softmax`, `contrastive` and `kl` before weighting; float32 or wider.

    Raises:
        ShapeError: as `labelwise_contrastive` and `gaussian_kl`, `logits` is not a matrix, or `mean` is not of the
            shape of `vectors`.
        InputError: `targets` are no integers.
        ConfigError: an option is out of its range.

    Example:
        >>> vectors, targets = torch.tensor([[1.0, 0.0], [2.0, 0.0], [0.0, 1.0]]), torch.tensor([0, 0, 1])
        >>> loss = labelwise_loss(vectors, vectors, targets, vectors, torch.ones(3, 2), temperature=1.0)
        >>> [round(part.item(), 4) for part in loss]
        [0.2793, 0.2512, 0.2964, 1.0]

    See also:
        labelwise_contrastive, gaussian_kl: its parts.

    Reference:
        "Uncertainty-aware contrastive sentence embedding", eq. 4 and 6.
    """
    check_number("contrastive_weight", contrastive_weight, least=0, most=1)
    check_number("kl_weight", kl_weight, least=0)
    check_scores_and_targets(logits, targets, "logits")
    softmax = infonce_rows(_widened(logits), targets)
    contrastive = labelwise_contrastive(vectors, targets, temperature)
    if mean.shape != vectors.shape:
        raise ShapeError(
            f"mean must have the shape of vectors, {tuple(vectors.shape)}. Got shape {tuple(mean.shape)} instead."
        )
    kl = softmax.new_zeros(()) if std is None else gaussian_kl(mean, std)
    total = (1 - contrastive_weight) * softmax + contrastive_weight * contrastive + kl_weight * kl
    return LabelwiseLoss(total, softmax, contrastive, kl)


def _widened(values: Tensor) -> Tensor:
    return values.to(torch.promote_types(values.dtype, torch.float32))
