r"""Uniformity and alignment on the hypersphere (Wang & Isola, 2020).

Uniformity asks how evenly embeddings fill the sphere: 0 when all fall on one point, and the lower the
more they spread. Alignment asks how near two texts of one meaning lie.
"""

import math

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from labelspace.checks import as_seed, check_number
from labelspace.errors import ShapeError


def sample_pairs(count: int, pairs: int, seed: int) -> Int[Tensor, "pair 2"]:
    """Draw pairs (i, j) of distinct indices below `count`, uniformly, with replacement between pairs.

    Args:
        count: how many texts there are, at least 2.
        pairs: how many pairs to draw, 1 or more. Where there are no more pairs than that, each comes once.
        seed: of the draw, 0 or more.

    Returns:
        [pair 2], int64.

    Raises:
        ShapeError: fewer than two texts.
        ConfigError: `pairs` or `seed` is out of its range.

    Example:
        >>> sample_pairs(3, 100, seed=0).tolist()
        [[0, 1], [0, 2], [1, 2]]
    """
    if count < 2:
        raise ShapeError(f"uniformity needs at least two texts. Got {count} instead.")
    check_number("pairs", pairs, least=1, whole=True)
    seed = as_seed(seed)
    if count * (count - 1) // 2 <= pairs:
        return torch.combinations(torch.arange(count), 2)
    generator = np.random.default_rng(seed)
    first = generator.integers(0, count, size=pairs)
    # A shift by 1 .. count-1 never comes back to the start: distinct without drawing again.
    second = (first + generator.integers(1, count, size=pairs)) % count
    return torch.from_numpy(np.stack([first, second], axis=1))


def uniformity(
    embeddings: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
    pairs: Int[Tensor, "pair 2"],
    t: float = 2.0,
) -> Float[Tensor, ""]:
    r"""Log of the mean Gaussian potential over sampled pairs; lower is more uniform.

    .. math::
        \mathcal{L}_\text{uni}(t)
          = \log \Bigl( \frac{1}{M} \sum_{m=1}^{M} e^{-t \lVert z_{i_m} - z_{j_m} \rVert_2^2} \Bigr)

    Paper: the right-hand side of eq. 4; `t` is t, the rows of `pairs` are :math:`(i_m, j_m)`.

    Args:
        embeddings: [text dim], numpy or torch, unit length.
        pairs: [pair 2], indices of distinct texts, see `sample_pairs`.
        t: scale, above zero; 2 as in Wang & Isola.

    Returns:
        A scalar between -4t (all pairs opposite) and 0 (all on one point), float32 or wider.

    Raises:
        ShapeError: `embeddings` is not a matrix or `pairs` is not [pair 2].
        ConfigError: `t` is not above zero.

    Example:
        Two texts at a right angle lie at squared distance 2.

        >>> uniformity(torch.eye(2), torch.tensor([[0, 1]])).item()
        -4.0

    See also:
        alignment: its counterpart.

    Reference:
        "Description-only supervision", eq. 4; Wang & Isola, 2020, https://arxiv.org/abs/2005.10242
    """
    if embeddings.ndim != 2 or pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.shape[0] == 0:
        raise ShapeError(
            "uniformity needs embeddings [text dim] and pairs [pair 2]. "
            f"Got shapes {tuple(embeddings.shape)} and {tuple(pairs.shape)} instead."
        )
    check_number("t", t, above=0)
    wide = _widened(embeddings)
    squared = (wide[pairs[:, 0]] - wide[pairs[:, 1]]).square().sum(dim=1)  # [pair]
    return (-t * squared).logsumexp(dim=0) - math.log(pairs.shape[0])


def alignment(
    first: Float[np.ndarray, "pair dim"] | Float[Tensor, "pair dim"],
    second: Float[np.ndarray, "pair dim"] | Float[Tensor, "pair dim"],
    alpha: float = 2.0,
) -> Float[Tensor, ""]:
    r"""Mean distance of positive pairs, to the power alpha; lower is better aligned.

    .. math::
        \mathcal{L}_\text{align} = \frac{1}{M} \sum_{m=1}^{M} \lVert x_m - y_m \rVert_2^{\alpha}

    Paper: named in section 3.1; the formula is Wang & Isola's.

    Args:
        first: [pair dim], numpy or torch, unit length, for example descriptions.
        second: [pair dim], numpy or torch, unit length, for example the verbalizer of each.
        alpha: the power, above zero. Below 2 the slope at distance 0 is taken to be 0.

    Returns:
        A scalar, zero or more, float32 or wider.

    Raises:
        ShapeError: the inputs are not matrices of one shape, or empty.
        ConfigError: `alpha` is not above zero.

    Example:
        >>> alignment(torch.eye(2), torch.eye(2).flip(0)).item()
        2.0

    See also:
        uniformity: its counterpart.

    Reference:
        Wang & Isola, 2020, https://arxiv.org/abs/2005.10242, eq. 1 there.
    """
    if first.ndim != 2 or first.shape != second.shape or 0 in first.shape:
        raise ShapeError(
            "alignment needs two matrices of one shape, with one pair at least. "
            f"Got shapes {tuple(first.shape)} and {tuple(second.shape)} instead."
        )
    check_number("alpha", alpha, above=0)
    squared = (_widened(first) - _widened(second)).square().sum(dim=1)  # [pair]
    # The slope of a power below 1 is infinite at 0, and times that of the square, which is 0, it would be nan.
    none = squared == 0
    return squared.masked_fill(none, 1.0).pow(alpha / 2).masked_fill(none, 0.0).mean()


def _widened(vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"]) -> Float[Tensor, "text dim"]:
    if isinstance(vectors, np.ndarray):
        # torch warns of arrays that cannot be written to, such as a memory map.
        vectors = torch.from_numpy(np.require(vectors, requirements=["C", "W"]))
    return vectors.to(torch.promote_types(vectors.dtype, torch.float32))
