"""Agreement of views beyond chance."""

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from labelspace.consensus.agreement import kappa


def test_kappa_is_that_of_scikit_learn():
    draw = np.random.default_rng(0)
    one, other = draw.integers(0, 4, 300), draw.integers(0, 4, 300)
    other[:150] = one[:150]
    assert kappa(one, other, 4) == pytest.approx(cohen_kappa_score(one, other))


def test_two_views_with_one_and_the_same_label_agree():
    assert kappa(np.zeros(5, int), np.zeros(5, int), 2) == 1.0
