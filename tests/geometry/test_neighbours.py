"""Nearest documents, and answers mixed with theirs."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from labelspace.geometry import neighbours
from labelspace.geometry.neighbours import Graph, mean_of, smooth


def slow_neighbours(vectors: np.ndarray, row: int, count: int) -> list[int]:
    """Neighbours of a document, by comparing it with each other one."""

    def cosine(other: int) -> float:
        one, two = vectors[row], vectors[other]
        return float(one @ two / np.linalg.norm(one) / np.linalg.norm(two))

    return sorted((other for other in range(len(vectors)) if other != row), key=lambda other: -cosine(other))[:count]


def test_neighbours_are_the_nearest_other_documents():
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    graph = Graph(vectors, neighbours=3, seed=0)
    assert graph.own.tolist() == [slow_neighbours(vectors, row, 3) for row in range(40)]


def test_equally_near_documents_come_in_the_order_of_the_pool():
    vectors = np.array([[1, 0], [0, 1], [0, 1], [0, 1]], dtype=np.float32)
    assert Graph(vectors, neighbours=2, seed=0).own.tolist() == [[1, 2], [2, 3], [1, 3], [1, 2]]


def test_neighbours_are_the_first_of_a_stable_sort_also_where_many_texts_are_equal():
    draw = np.random.default_rng(1)
    vectors = draw.integers(-1, 2, size=(300, 3)).astype(np.float32)
    vectors[~vectors.any(axis=1)] = 1
    graph = Graph(vectors, neighbours=7, seed=0)
    cosines = graph.vectors @ graph.vectors.T
    np.fill_diagonal(cosines, -np.inf)
    assert np.array_equal(graph.own, np.argsort(-cosines, axis=1, kind="stable")[:, :7])


def test_a_vector_that_is_no_number_is_nearest_to_nothing():
    vectors = np.eye(4, dtype=np.float32)
    vectors[1] = np.nan
    assert Graph(vectors, neighbours=2, seed=0).own[[0, 2, 3]].tolist() == [[2, 3], [0, 3], [0, 2]]


def test_a_pool_of_one_has_no_neighbours():
    graph = Graph(np.ones((1, 2), dtype=np.float32), neighbours=3, seed=0)
    assert graph.own.shape == (1, 0)
    assert graph.neighbours_of(np.ones((4, 2), dtype=np.float32)).shape == (4, 0)


def test_an_approximate_search_keeps_torchs_threads_and_leaves_no_gap(monkeypatch: pytest.MonkeyPatch):
    class Gaps:
        """Finds the document itself alone, as the package does among many equal texts, and sets the threads."""

        def __init__(self, vectors: np.ndarray, n_neighbors: int, **options: object) -> None:
            torch.set_num_threads(torch.get_num_threads() + 1)
            found = np.full((len(vectors), n_neighbors), -1)
            found[:, 0] = np.arange(len(vectors))
            self.neighbor_graph = (found, None)

    monkeypatch.setattr(neighbours, "EXACT", 40)
    vectors = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
    monkeypatch.setattr(neighbours, "_approximate", lambda: SimpleNamespace(NNDescent=Gaps))
    before = torch.get_num_threads()
    assert Graph(vectors, neighbours=3, seed=0).own.tolist() == [slow_neighbours(vectors, row, 3) for row in range(40)]
    assert torch.get_num_threads() == before


def test_an_approximate_search_never_takes_a_document_for_its_own_neighbour(monkeypatch: pytest.MonkeyPatch):
    class EqualTexts:
        """Finds an equal text before the document itself, or the document not at all."""

        def __init__(self, vectors: np.ndarray, **options: object) -> None:
            self.neighbor_graph = (np.array([[1, 0, 2], [0, 1, 3], [3, 2, 0], [2, 0, 1]]), None)

    monkeypatch.setattr(neighbours, "EXACT", 4)
    monkeypatch.setattr(neighbours, "_approximate", lambda: SimpleNamespace(NNDescent=EqualTexts))
    graph = Graph(np.ones((4, 2), dtype=np.float32), neighbours=2, seed=0)
    assert graph.own.tolist() == [[1, 2], [0, 3], [3, 0], [2, 0]]


def test_a_new_document_may_be_one_of_the_pool():
    vectors = np.eye(3, dtype=np.float32)
    graph = Graph(vectors, neighbours=1, seed=0)
    assert graph.neighbours_of(vectors * 7).tolist() == [[0], [1], [2]]


def test_there_are_no_more_neighbours_than_other_documents():
    assert Graph(np.eye(3, dtype=np.float32), neighbours=15, seed=0).own.shape == (3, 2)


def test_smoothing_is_the_slow_loop():
    draw = np.random.default_rng(3)
    probabilities, neighbours = draw.dirichlet(np.ones(3), size=10), draw.integers(0, 10, size=(10, 4))
    mixed = probabilities.copy()
    for _ in range(2):
        mixed = np.array(
            [
                0.3 * probabilities[row] + 0.7 * np.mean([mixed[near] for near in neighbours[row]], axis=0)
                for row in range(10)
            ]
        )
    assert smooth(probabilities, neighbours, rounds=2, own=0.3) == pytest.approx(mixed)
    assert mean_of(probabilities, neighbours).sum(axis=1) == pytest.approx(np.ones(10))
