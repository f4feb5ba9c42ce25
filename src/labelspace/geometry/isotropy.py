r"""How evenly embeddings use their directions, and how far training has moved them.

isoscore           1 where variance is the same in all directions, 0 where it is in one
drift              how far each text has turned, on average
neighbours_kept    how many of the nearest texts are still the nearest
"""

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from labelspace.checks import check_number, import_optional
from labelspace.errors import InputError, ShapeError
from labelspace.geometry.moments import as_matrix

# Cosines held at once: 32 MiB of float64.
BLOCK = 2**22

# Cosines that agree to so many digits are one: the same text twice, multiplied in blocks of another shape.
_DIGITS = 12

# A variance that is this share of the squared size is rounding.
_ROUNDING = 1e-12


def isoscore(vectors: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"]) -> float:
    r"""How evenly the variance of a set of vectors is spread over directions; higher is more isotropic.

    .. math::
        \hat{\Sigma} = \sqrt{n} \, \frac{\Sigma}{\lVert \Sigma \rVert_2}, \qquad
        \delta = \frac{\lVert \hat{\Sigma} - \mathbf{1} \rVert_2}{\sqrt{2 (n - \sqrt{n})}}, \qquad
        \iota = \frac{(n - \delta^2 (n - \sqrt{n}))^2 - n}{n (n - 1)}

    with :math:`\Sigma` the variances along the principal axes and n the width.

    Paper: section 5.3 and Figure 3 of REZE, which take it from Rudman et al.; computed by their package IsoScore.
    With fewer texts than coordinates some variances are 0 whatever the encoder does, so compare numbers from as many
    texts.

    Args:
        vectors: [text dim], numpy or torch, of width 2 at least.

    Returns:
        A number between 0 (all variance along one direction) and 1 (the same along all).

    Raises:
        ShapeError: `vectors` is not a matrix, or has one column or one row.
        InputError: a value is not finite, or all vectors are one.
        MissingDependencyError: the package IsoScore is not installed.

    Example:
        >>> corners = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
        >>> round(isoscore(corners), 4), round(isoscore(corners * [1.0, 0.5]), 4)
        (1.0, 0.4706)

    See also:
        uniformity: the same question, asked of distances on the sphere.

    Reference:
        Rudman et al., 2022, https://aclanthology.org/2022.findings-acl.262/, Algorithm 1; Lee et al., "REZE:
        Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", section 5.3.
    """
    package = import_optional("IsoScore.IsoScore", package="IsoScore", extra="geometry", purpose="isoscore")
    rows = as_matrix(vectors).double().numpy()
    if rows.shape[0] < 2 or rows.shape[1] < 2:
        raise ShapeError(f"isoscore needs two texts and two coordinates at least. Got shape {rows.shape} instead.")
    if rows.var(axis=0).sum() <= _ROUNDING**2 * np.square(rows).mean(axis=0).sum():
        raise InputError(f"isoscore needs vectors that differ. Got {len(rows)} times the same one.")
    return float(package.IsoScore(rows))


def drift(
    before: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
    after: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
) -> float:
    r"""How far the same texts have turned away from where they were: mean cosine distance.

    .. math::
        \frac{1}{N} \sum_{i=1}^{N} \bigl( 1 - \cos(x_i, x'_i) \bigr)

    Paper: none gives it a formula; it is the "representation shift" of REZE's section 5.4 as a number, and eq. 8 there
    on single embeddings.

    Args:
        before: [text dim], numpy or torch, of one encoder.
        after: [text dim], of the same texts in the same order, of another encoder of the same width.

    Returns:
        A number between 0 (no text has turned) and 2 (all are opposite). A vector of zeros has no direction; its
        distance is 1.

    Raises:
        ShapeError: the inputs are not matrices of one shape.
        InputError: a value is not finite.

    Example:
        >>> before = np.array([[1.0, 0.0], [0.0, 1.0]])
        >>> after = np.array([[2.0, 0.0], [3.0, 4.0]])
        >>> round(drift(before, after), 4)
        0.1

    See also:
        neighbours_kept: whether it matters; a rotation of the space is all drift, and moves no neighbour.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", section
        5.4, which shows it as a picture.
    """
    first, second = _matrices("drift", before, after)
    if first.shape != second.shape:
        raise ShapeError(
            f"drift needs the same texts twice, in one width. Got shapes {first.shape} and {second.shape} instead."
        )
    rows = max(BLOCK // first.shape[1], 1)
    total = 0.0
    for start in range(0, len(first), rows):
        total += float((_unit(first[start : start + rows]) * _unit(second[start : start + rows])).sum())
    return max(0.0, 1 - total / len(first))


def neighbours_kept(
    before: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
    after: Float[np.ndarray, "text other"] | Float[Tensor, "text other"],
    k: int = 10,
) -> float:
    r"""Share of each text's k nearest other texts that are among its k nearest afterwards.

    .. math::
        \frac{1}{N} \sum_{i=1}^{N} \frac{|\mathcal{N}_k(i) \cap \mathcal{N}'_k(i)|}{k}

    Paper: none; it asks of REZE's section 5.4 what a user asks of a moved encoder. Near is by cosine, a text is no
    neighbour of itself, and of texts that are equally near the earlier ones count. By chance it is k / (N - 1).

    Args:
        before: [text dim], numpy or torch, of one encoder.
        after: [text other], of the same texts in the same order; the width may differ.
        k: neighbours of each text, fewer than there are texts.

    Returns:
        A number between 0 and 1. Time grows with the square of the number of texts, memory with the number.

    Raises:
        ShapeError: the inputs are not matrices of as many rows, or there are not more than k texts.
        InputError: a value is not finite.
        ConfigError: `k` is no positive whole number.

    Example:
        >>> before = np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0], [0.1, 1.0]])
        >>> neighbours_kept(before, before[:, ::-1], k=1), neighbours_kept(before, before[[0, 2, 1, 3]], k=1)
        (1.0, 0.0)

    See also:
        drift: how far the texts have moved.

    Reference:
        Lee et al., "REZE: Representation Regularization for Domain-adaptive Text Embedding Pre-finetuning", section
        5.4, for the question.
    """
    check_number("k", k, least=1, whole=True)
    first, second = _matrices("neighbours_kept", before, after)
    if len(first) != len(second) or len(first) <= k:
        raise ShapeError(
            f"neighbours_kept needs the same texts twice, and more than k={k} of them. "
            f"Got {len(first)} and {len(second)} instead."
        )
    first, second = _unit(first), _unit(second)
    rows = max(BLOCK // len(first), 1)
    kept = 0
    for start in range(0, len(first), rows):
        kept += int((_nearest(first, start, rows, k) & _nearest(second, start, rows, k)).sum())
    return kept / (len(first) * k)


def _nearest(unit: np.ndarray, start: int, rows: int, k: int) -> np.ndarray:
    """Return for a block of rows which texts are their k nearest, [block text], exactly k in each row."""
    cosines = (unit[start : start + rows] @ unit.T).round(_DIGITS)
    block = np.arange(len(cosines))
    cosines[block, start + block] = -np.inf
    kth = np.partition(cosines, -k, axis=1)[:, [-k]]
    nearer, as_near = cosines > kth, cosines == kth
    left = k - nearer.sum(axis=1, keepdims=True)
    return nearer | (as_near & (as_near.cumsum(axis=1) <= left))


def _matrices(what: str, *given: np.ndarray | Tensor) -> tuple[np.ndarray, ...]:
    rows = [as_matrix(one, f"the vectors of {what}") for one in given]
    return tuple(one.to(torch.promote_types(one.dtype, torch.float32)).numpy() for one in rows)  # numpy has no bfloat16


def _unit(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    return wide / np.where(lengths > 0, lengths, 1.0)
