r"""Embeddings made flat, to be looked at: PCA, t-SNE, UMAP, and PCA on the sphere.

A map keeps some distances and gives up others. PCA keeps the large ones, and the same embeddings always give the same
map; t-SNE and UMAP keep neighbours, and neither the size of a cloud nor the gap between two clouds means much.
"""

import warnings
from types import ModuleType
from typing import Any

import numpy as np
from jaxtyping import Float
from torch import Tensor

from labelspace.checks import check_choice, check_number, import_optional
from labelspace.errors import ConfigError, InputError, ShapeError, own_filters
from labelspace.geometry.neighbours import torch_threads_kept
from labelspace.seeds import child_seed

PROJECTIONS = ("pca", "pca-sphere", "umap", "tsne")

# What both libraries recommend; fewer where there are few texts.
UMAP_NEIGHBOURS = 15
TSNE_PERPLEXITY = 30.0

# Entries of an axis that are as near as this are as large: vectors are float32.
_ROUNDING = 1e-4


def project(
    embeddings: Float[np.ndarray, "text dim"] | Float[Tensor, "text dim"],
    *,
    projection: str = "pca",
    dimensions: int | None = None,
    seed: int = 0,
) -> Float[np.ndarray, "text axis"]:
    r"""Give every text two or three coordinates.

    .. math::
        P = (X - \bar{X}) \, W, \qquad \text{and on the sphere} \quad \hat{p}_i = p_i / \lVert p_i \rVert_2

    with the columns of W the leading principal axes of X; UMAP and t-SNE have no formula of this form.

    Paper: `"pca-sphere"` is "projected onto the hypersphere using PCA" of Figure 2b, `"umap"` the view of Figure 1.
    The paper says no more; we centre, take three axes, and divide each row by its length.

    Args:
        embeddings: [text dim], numpy or torch; at least one text more than coordinates are asked for.
        projection: `"pca"`, `"pca-sphere"`, `"tsne"` or `"umap"` (needs the package umap-learn). The last two compare
            by cosine and start from PCA, so that a seed decides all.
        dimensions: 2 or 3; None: 3 on the sphere, else 2.
        seed: of t-SNE and UMAP; PCA draws nothing.

    Returns:
        [text axis], float64; each principal axis points to where its largest loading is positive. Texts that all lie
        on one point stay on one, the origin.

    Raises:
        ShapeError: `embeddings` is not a matrix, or too small for so many coordinates.
        InputError: a value is not finite.
        ConfigError: an unknown projection, or other than 2 or 3 dimensions.
        MissingDependencyError: UMAP is asked for and not installed.

    Example:
        >>> corners = np.array([[3.0, 0.0, 1.0], [-3.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.0, -1.0, 1.0]])
        >>> (project(corners).round(6) + 0.0).tolist()
        [[3.0, 0.0], [-3.0, 0.0], [0.0, 1.0], [0.0, -1.0]]

    See also:
        uniformity: the number to a picture of how evenly a sphere is filled.

    Reference:
        "Description-only supervision", Figures 1 and 2b; McInnes et al., 2018, https://arxiv.org/abs/1802.03426
        (UMAP); van der Maaten & Hinton, 2008, https://jmlr.org/papers/v9/vandermaaten08a.html (t-SNE).
    """
    check_choice("projection", projection, PROJECTIONS)
    if dimensions is None:
        dimensions = 3 if projection == "pca-sphere" else 2
    check_choice("dimensions", dimensions, (2, 3))
    check_number("seed", seed, whole=True)
    if projection == "pca-sphere" and dimensions == 2:
        raise ConfigError("the sphere of 'pca-sphere' has dimensions=3. Got 2 instead; leave dimensions out.")
    rows = _as_rows(embeddings, dimensions)
    if not np.ptp(rows, axis=0).any():
        flat = np.zeros((len(rows), dimensions))
    elif projection == "umap":
        flat = _umap(rows, dimensions, child_seed(seed, "umap") % 2**32)
    elif projection == "tsne":
        flat = _tsne(rows, dimensions, child_seed(seed, "tsne") % 2**32)
    else:
        flat = _pca(rows, dimensions)
    return _on_the_sphere(flat) if projection == "pca-sphere" else flat


def turned_like(moved: np.ndarray, fixed: np.ndarray) -> np.ndarray:
    """Turn and mirror one map so that its points lie as near as can be to the same points of another.

    Which way is up means nothing on a map, and two maps are easier to compare with one side up (orthogonal Procrustes).

    Args:
        moved: [text axis], the map to turn; neither its scale nor a distance changes, and its mean becomes zero.
        fixed: [text axis], the map to follow.

    Returns:
        [text axis].

    Example:
        >>> quarter_turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
        >>> square = np.array([[2.0, 1.0], [-2.0, 1.0], [2.0, -1.0], [-2.0, -1.0]])
        >>> turned_like(square @ quarter_turn, square).round(6).tolist() == square.tolist()
        True
    """
    moved = moved - moved.mean(axis=0)
    left, _, right = np.linalg.svd(moved.T @ (fixed - fixed.mean(axis=0)))
    return moved @ left @ right


def import_umap() -> ModuleType:
    """Import umap, or raise MissingDependencyError; good for asking before long work."""
    with own_filters():
        # Said at import by whoever has no tensorflow, which is not needed here.
        warnings.filterwarnings("ignore", message=".*ParametricUMAP", category=ImportWarning)
        return import_optional("umap", package="umap-learn", extra="plot", purpose="projection='umap'")


def _as_rows(embeddings: Any, dimensions: int) -> np.ndarray:
    if isinstance(embeddings, Tensor):
        embeddings = embeddings.detach().double().cpu().numpy()
    if embeddings.ndim != 2 or embeddings.shape[0] <= dimensions or embeddings.shape[1] < dimensions:
        raise ShapeError(
            f"{dimensions} coordinates need embeddings [text dim] of at least {dimensions + 1} texts and {dimensions} "
            f"dimensions. Got shape {tuple(embeddings.shape)} instead."
        )
    rows = np.asarray(embeddings, dtype=np.float64)
    if not np.isfinite(rows).all():
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        raise InputError(f"embeddings must be finite numbers. Got a NaN or an infinity in row {bad}; encode it anew.")
    return rows


def _pca(rows: np.ndarray, dimensions: int) -> np.ndarray:
    from sklearn.decomposition import PCA

    model = PCA(n_components=dimensions, svd_solver="full")
    flat = model.fit_transform(rows)
    axes = np.asarray(model.components_)
    # The first of the largest, rounding apart, so that another processor's map is no mirror image.
    sizes = np.abs(axes)
    largest = axes[np.arange(dimensions), (sizes > (1 - _ROUNDING) * sizes.max(axis=1, keepdims=True)).argmax(axis=1)]
    return flat * np.where(largest < 0, -1.0, 1.0)


def _on_the_sphere(flat: np.ndarray) -> np.ndarray:
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    north = np.eye(1, flat.shape[1])
    # A text at the very centre has no direction; it gets one, so that every row lies on the sphere.
    return np.where(lengths > 0, flat / np.where(lengths > 0, lengths, 1.0), north)


def _tsne(rows: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    from sklearn.manifold import TSNE

    model = TSNE(
        n_components=dimensions,
        perplexity=min(TSNE_PERPLEXITY, (len(rows) - 1) / 3),
        metric="cosine",
        init=_start(rows, dimensions, 1e-4, seed),  # pyright: ignore[reportArgumentType] - an array is documented
        random_state=seed,
        n_jobs=1,
    )
    return model.fit_transform(rows).astype(np.float64)


def _umap(rows: np.ndarray, dimensions: int, seed: int) -> np.ndarray:
    model = import_umap().UMAP(
        n_components=dimensions,
        n_neighbors=min(UMAP_NEIGHBOURS, len(rows) - 1),
        metric="cosine",
        init=_start(rows, dimensions, 10.0, seed),
        random_state=seed,
        n_jobs=1,  # with a seed it computes on one core anyway, and warns of anything else
    )
    with torch_threads_kept():
        return np.asarray(model.fit_transform(rows.astype(np.float32)), dtype=np.float64)


def _start(rows: np.ndarray, dimensions: int, scale: float, seed: int) -> np.ndarray:
    """PCA, its first axis of the spread that the method is used to.

    A little noise keeps equal texts, and an axis along which nothing differs, from dividing by zero.
    """
    flat = _pca(rows, dimensions)
    noise = np.random.default_rng(seed).normal(scale=1e-4, size=flat.shape)
    return ((flat / flat[:, 0].std() + noise) * scale).astype(np.float32)
