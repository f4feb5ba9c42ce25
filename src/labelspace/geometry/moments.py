"""Count, mean and covariance of vectors that are seen once, block by block, and never held.

A sum of squares less the square of the sum loses all its digits where the vectors share a large offset. So each block
is centred on its own mean, and two centred sums are joined by the rule of Chan, Golub & LeVeque (1979), which only
ever adds what is not negative.
"""

from collections.abc import Iterator
from typing import final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.errors import InputError, ShapeError

# Rows that are held in float64 at a time: 48 MiB at a width of 1,536.
BLOCK = 4096

# A coordinate spread that is this share of its size is rounding; only exact constants come below it in float64.
_ROUNDING = 1e-12


@final
class Moments:
    """Mean and scatter of a stream of vectors, in float64 and in memory of the square of their width.

    Args:
        width: coordinates of a vector.

    Example:
        >>> moments = Moments(2)
        >>> moments.update(torch.tensor([[1.0, 0.0], [3.0, 0.0]], dtype=torch.float64))
        >>> moments.update(torch.tensor([[2.0, 3.0]], dtype=torch.float64))
        >>> moments.count, moments.mean.tolist(), moments.covariance().diagonal().tolist()
        (3, [2.0, 1.0], [0.6666666666666666, 2.0])
    """

    def __init__(self, width: int) -> None:
        self.width = width
        self.count = 0
        self.mean = torch.zeros(width, dtype=torch.float64)
        self.scatter = torch.zeros(width, width, dtype=torch.float64)

    def update(self, block: Float[Tensor, "row dim"]) -> None:
        """Add the rows of a block; as much again as the block is held meanwhile."""
        if not block.shape[0]:
            return
        block = block.to(torch.float64)
        mean = block.mean(dim=0)
        centred = block - mean
        self.scatter.addmm_(centred.T, centred)
        # Move the mean, and add the scatter of the two means around their common one.
        total = self.count + len(block)
        apart = mean - self.mean
        self.scatter.addr_(apart, apart, alpha=self.count * len(block) / total)
        self.mean += apart * (len(block) / total)
        self.count = total

    def covariance(self) -> Float[Tensor, "dim dim"]:
        """Return the covariance, with 1/N as in the paper and not 1/(N-1)."""
        return self.scatter / self.count

    def is_constant(self) -> bool:
        """Whether all vectors seen are one vector, but for rounding."""
        spread = self.scatter.diagonal().sum() / max(self.count, 1)
        return bool(spread <= _ROUNDING**2 * self.mean.square().sum())


def as_matrix(
    vectors: Float[np.ndarray, "row dim"] | Float[Tensor, "row dim"], name: str = "vectors"
) -> Float[Tensor, "row dim"]:
    """Return vectors as a tensor in main memory, checked and not copied unless they must be.

    Raises:
        ShapeError: they are no matrix, or an empty one.
        InputError: a value is not finite; the message names the row.
    """
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise ShapeError(
            f"{name} must be a matrix [text dim] that is not empty. Got shape {tuple(vectors.shape)} instead."
        )
    if isinstance(vectors, Tensor):
        matrix = vectors.detach().cpu()
    else:
        # torch warns of arrays that cannot be written to, such as a memory map.
        matrix = torch.from_numpy(np.require(vectors, requirements=["C", "W"]))
    for start, block in row_blocks(matrix):
        row = first_not_finite(block)
        if row is not None:
            raise InputError(
                f"{name} must be finite numbers. Got a NaN or an infinity in row {start + row}; encode it anew."
            )
    return matrix


def row_blocks(matrix: Float[Tensor, "row dim"]) -> Iterator[tuple[int, Float[Tensor, "block dim"]]]:
    """Yield the number of the first row and the rows in float64, at most `BLOCK` at a time."""
    for start in range(0, matrix.shape[0], BLOCK):
        yield start, matrix[start : start + BLOCK].to(torch.float64)


def first_not_finite(block: Float[Tensor, "row dim"]) -> int | None:
    """Return the first row with a NaN or an infinity, or None."""
    if torch.isfinite(block).all():
        return None
    return int((~torch.isfinite(block).all(dim=1)).nonzero()[0])
