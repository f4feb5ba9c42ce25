"""Nearest documents, and answers mixed with theirs."""

import numpy as np
import pytest

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
