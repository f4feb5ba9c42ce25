"""The neighbour graph of the pool: near documents mostly have the same label.

Smoothing mixes each document's answer with the mean of its neighbours' (Zhou et al., 2004, "Learning with local and
global consistency", equation 6, on a graph of nearest neighbours with equal weights).
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import final

import numpy as np
from numpy.typing import NDArray

from labelspace.checks import import_optional

Vectors = NDArray[np.float32]
Rows = NDArray[np.intp]

# From here on, neighbours are approximate.
EXACT = 50_000
BLOCK = 2048


@final
class Graph:
    """Documents of a pool in a space of vectors; new documents are always compared with all of them.

    Args:
        vectors: [text dim].
        neighbours: number of neighbours of a document.
        seed: seed of the approximate search, for pools of 50,000 documents and more.

    Example:
        >>> graph = Graph(np.array([[1, 0], [0.9, 0.1], [0, 1]], dtype=np.float32), neighbours=1, seed=0)
        >>> graph.own.tolist()
        [[1], [0], [1]]
    """

    def __init__(self, vectors: Vectors, *, neighbours: int, seed: int) -> None:
        self.vectors = _unit(vectors)
        self.count = min(neighbours, len(vectors) - 1)
        if len(vectors) >= EXACT:
            with torch_threads_kept():
                index = _approximate().NNDescent(
                    self.vectors, metric="dot", n_neighbors=self.count + 1, random_state=seed, n_jobs=1
                )
            found = np.asarray(index.neighbor_graph[0]).astype(np.intp)
            # Not always first: among equal texts another may be. Without itself, the farthest goes.
            itself = found == np.arange(len(found))[:, None]
            self.own: Rows = np.take_along_axis(found, np.argsort(itself, axis=1, kind="stable")[:, :-1], axis=1)
            [few] = np.nonzero((self.own < 0).any(axis=1))  # it leaves a gap where it finds too few
            self.own[few] = self._search(self.vectors[few], few)
        else:
            self.own = self._search(self.vectors, np.arange(len(vectors)))

    @classmethod
    def of(cls, vectors: Vectors, *, count: int) -> "Graph":
        """Return a graph that is only asked about new documents."""
        made = cls.__new__(cls)
        made.vectors, made.count, made.own = vectors, count, np.empty((0, count), dtype=np.intp)
        return made

    def neighbours_of(self, vectors: Vectors) -> Rows:
        """Return the nearest documents of the pool, [text neighbour]."""
        return self._search(_unit(vectors))

    def _search(self, vectors: Vectors, itself: Rows | None = None) -> Rows:
        """Return the nearest documents of the pool; `itself` numbers those that the vectors are."""
        found = np.empty((len(vectors), self.count), dtype=np.intp)
        size = max(1, BLOCK * EXACT // max(EXACT, len(self.vectors)))
        for start in range(0, len(vectors) if self.count else 0, size):
            cosines = vectors[start : start + size] @ self.vectors.T
            if itself is not None:
                cosines[np.arange(len(cosines)), itself[start : start + size]] = -np.inf
            for row, far in enumerate(np.negative(cosines, out=cosines), start):
                [near] = np.nonzero(~(far > np.partition(far, self.count - 1)[self.count - 1]))
                # Stable, so that equally near documents have an order on every processor.
                found[row] = near[np.argsort(far[near], kind="stable")[: self.count]]
        return found


@contextmanager
def torch_threads_kept() -> Iterator[None]:
    """Give torch its number of threads back, where torch is in use.

    numba sets the number of OpenMP threads of the whole process to that of the cores. torch would go on with these, and
    with more threads its sums differ in the last bit.
    """
    torch = sys.modules.get("torch")
    threads = torch.get_num_threads() if torch else 0
    try:
        yield
    finally:
        if torch:
            torch.set_num_threads(threads)


def check_size(documents: int) -> None:
    """Refuse a pool whose neighbours could not be searched, before any work.

    Raises:
        MissingDependencyError: it is so large that the search is approximate, and the package for that is missing.
    """
    if documents >= EXACT:
        _approximate()


def smooth(probabilities: NDArray[np.float64], neighbours: Rows, *, rounds: int, own: float) -> NDArray[np.float64]:
    """Return probabilities mixed with those of the neighbours, [text label].

    Args:
        probabilities: [text label].
        neighbours: [text neighbour], rows of the same table.
        rounds: how often; each round reaches one step further.
        own: share of a document's own answer, 0 to 1.

    Example:
        >>> smooth(np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1], [0]]), rounds=1, own=0.5).tolist()
        [[0.5, 0.5], [0.5, 0.5]]
    """
    mixed = probabilities
    for _ in range(rounds):
        mixed = own * probabilities + (1 - own) * mean_of(mixed, neighbours)
    return mixed


def mean_of(probabilities: NDArray[np.floating], neighbours: Rows) -> NDArray[np.float64]:
    """Return the mean answer of each document's neighbours, [text label]."""
    total = np.zeros((len(neighbours), probabilities.shape[1]))
    for column in neighbours.T:  # one neighbour at a time: a table of all would be [text neighbour label]
        total += probabilities[column]
    return total / max(neighbours.shape[1], 1)


def _approximate() -> ModuleType:
    purpose = f"A graph of the neighbours of {EXACT:,} documents or more"
    return import_optional("pynndescent", package="umap-learn", extra="plot", purpose=purpose)


def _unit(vectors: Vectors) -> Vectors:
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
