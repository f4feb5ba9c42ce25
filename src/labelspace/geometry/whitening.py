"""Whitening (Su et al., 2021): a linear map after which vectors have mean 0 and no direction spreads more than another.

It is one of REZE's rivals: fitted on the training texts of a target, applied to all that are compared there.
"""

from dataclasses import dataclass
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.errors import InputError, ShapeError
from labelspace.geometry.moments import Moments, as_matrix, row_blocks

# Directions with less than this share of the largest variance have none: what float32 leaves of a zero lies below.
_SMALLEST = 1e-10


@final
@dataclass(frozen=True, kw_only=True, eq=False)
class Whitening:
    """A mean and a matrix; made by `fit_whitening`."""

    mean: Float[Tensor, " dim"]
    """What is taken off."""

    matrix: Float[Tensor, "dim dim"]
    """What the rest is multiplied by; symmetric."""

    rank: int
    """Directions that had a variance."""

    def apply(
        self, vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"]
    ) -> Float[np.ndarray, "text dim"]:
        """Return the vectors whitened, in float64.

        Raises:
            ShapeError: vectors of another width.
            InputError: a value is not finite.
        """
        rows = as_matrix(vectors)
        if rows.shape[1] != self.mean.shape[0]:
            raise ShapeError(
                f"this whitening is for vectors of width {self.mean.shape[0]}. Got width {rows.shape[1]} instead."
            )
        return torch.cat([(block - self.mean) @ self.matrix for _, block in row_blocks(rows)]).numpy()


def fit_whitening(vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"]) -> Whitening:
    r"""Learn the whitening of a set of vectors.

    .. math::
        h' = W \Lambda^{-\frac{1}{2}} W^\top (h - \mu), \qquad C = W \Lambda W^\top

    Paper: the formula of REZE's section 4.1.3. Su et al. leave the last :math:`W^\top` (their U) out, which turns the
    space and changes no cosine and no distance; with it, coordinates stay where they were. Their cut to the leading
    directions is left out too, as REZE's rival is.

    Directions without variance cannot get one: with fewer texts than coordinates there are always such. Where
    :math:`\lambda_j` is below 1e-10 of the largest, :math:`\lambda_j^{-1/2}` becomes 0, which is the pseudo-inverse:
    along these every text comes to lie at 0, also a later one that was not seen here. Small variances above that
    are raised to 1 with all their noise, as section 4.2 complains.

    Args:
        vectors: [text dim], numpy or torch, two at least.

    Returns:
        The whitening; `apply` uses it.

    Raises:
        ShapeError: `vectors` is not a matrix.
        InputError: a value is not finite, or all vectors are one.

    Example:
        >>> cross = np.array([[2.0, 1.0], [-2.0, 1.0], [0.0, 2.0], [0.0, 0.0]])
        >>> (fit_whitening(cross).apply(cross).round(4) + 0.0).tolist()
        [[1.4142, 0.0], [-1.4142, 0.0], [0.0, 1.4142], [0.0, -1.4142]]

    See also:
        fit_flow: the rival that is not linear.

    Reference:
        Su et al., 2021, https://arxiv.org/abs/2103.15316, section 3; Lee et al., "REZE: Representation Regularization
        for Domain-adaptive Text Embedding Pre-finetuning", section 4.1.3.
    """
    rows = as_matrix(vectors)
    moments = Moments(rows.shape[1])
    for _, block in row_blocks(rows):
        moments.update(block)
    if moments.is_constant():
        raise InputError(f"the {len(rows)} vectors to whiten are one and the same; give texts that differ.")
    variances, directions = torch.linalg.eigh(moments.covariance())
    spread = variances > _SMALLEST * variances[-1]
    scales = torch.where(spread, variances, 1.0).rsqrt() * spread
    return Whitening(mean=moments.mean, matrix=(directions * scales) @ directions.T, rank=int(spread.sum()))
