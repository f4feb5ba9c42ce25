"""Agreement of views, and their competence, without labels."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from labelspace.consensus.agreement import accuracy_of, competences, kappa


def noisy(truth: np.ndarray, accuracy: float, labels: int, seed: int) -> np.ndarray:
    """Answers of a view that is right with this probability, and else any other label."""
    draw = np.random.default_rng(seed)
    wrong = (truth + draw.integers(1, labels, len(truth))) % labels
    return np.where(draw.random(len(truth)) < accuracy, truth, wrong)


def test_kappa_is_that_of_scikit_learn():
    draw = np.random.default_rng(0)
    one, other = draw.integers(0, 4, 300), draw.integers(0, 4, 300)
    other[:150] = one[:150]
    assert kappa(one, other, 4) == pytest.approx(cohen_kappa_score(one, other))


def test_two_views_with_one_and_the_same_label_agree():
    assert kappa(np.zeros(5, int), np.zeros(5, int), 2) == 1.0


@pytest.mark.parametrize("labels", [2, 4])
def test_three_independent_views_are_ranked_and_measured_by_their_agreement(labels):
    truth = np.random.default_rng(9).integers(0, labels, 20_000)
    wanted = [0.9, 0.75, 0.6]
    found = competences([noisy(truth, one, labels, seed) for seed, one in enumerate(wanted)], labels)
    assert [accuracy_of(one, labels) for one in found] == pytest.approx(wanted, abs=0.02)


def test_two_views_get_the_same_competence_and_one_is_believed():
    truth = np.arange(1000) % 2
    pair = competences([truth, noisy(truth, 0.8, 2, 0)], 2)
    assert pair[0] == pair[1] == pytest.approx(np.sqrt(0.6), abs=0.05)
    assert competences([truth], 2).tolist() == [1.0]


def test_a_view_at_chance_has_hardly_any_competence():
    truth = np.arange(3000) % 2
    views = [noisy(truth, 0.9, 2, 0), noisy(truth, 0.9, 2, 1), noisy(truth, 0.5, 2, 2)]
    assert competences(views, 2)[2] < 0.1
