"""Whitened vectors have mean zero and no direction more spread than another; a direction without variance gets none."""

import math

import numpy as np
import pytest
import torch

from labelspace.errors import InputError, ShapeError
from labelspace.geometry import fit_whitening
from losses.checked import geometry as checked
from losses.oracles import covariance_by_hand


def cloud(rows: int = 200, width: int = 6, seed: int = 0) -> np.ndarray:
    generator = np.random.default_rng(seed)
    return generator.normal(size=(rows, width)) @ generator.normal(size=(width, width)) + 3.0


def test_whitened_vectors_have_mean_zero_and_the_identity_as_covariance_written_out():
    whitened = checked.fit_whitening(cloud()).apply(cloud())
    assert whitened.mean(axis=0) == pytest.approx(np.zeros(6), abs=1e-10)
    for i, row in enumerate(covariance_by_hand(whitened.tolist())):
        assert row == pytest.approx([float(i == j) for j in range(6)], abs=1e-9)


def test_whitening_along_the_axes_is_division_by_the_deviation():
    """Two axes, no rotation: (x - mean) / deviation, coordinate by coordinate, in Python floats."""
    rows = [[2.0, 7.0], [4.0, 7.0], [3.0, 12.0], [3.0, 2.0]]
    spread = [math.sqrt((1 + 1) / 4), math.sqrt((25 + 25) / 4)]
    expected = [[(x - 3.0) / spread[0], (y - 7.0) / spread[1]] for x, y in rows]
    found = checked.fit_whitening(np.array(rows)).apply(np.array(rows))
    for one, other in zip(found.tolist(), expected, strict=True):
        assert one == pytest.approx(other, abs=1e-12)


def test_the_map_is_symmetric_so_coordinates_stay_where_they_were():
    whitening = checked.fit_whitening(cloud())
    torch.testing.assert_close(whitening.matrix, whitening.matrix.T)
    assert torch.linalg.eigvalsh(whitening.matrix).min() > 0
    assert whitening.rank == 6


def test_cosines_are_those_of_su_et_al_who_leave_the_last_rotation_out():
    vectors = cloud()
    whitened = checked.fit_whitening(vectors).apply(vectors)
    centred = vectors - vectors.mean(axis=0)
    directions, variances, _ = np.linalg.svd(centred.T @ centred / len(vectors))
    theirs = centred @ directions / np.sqrt(variances)
    assert whitened @ whitened.T == pytest.approx(theirs @ theirs.T, abs=1e-8)


def test_fewer_texts_than_coordinates_are_whitened_where_they_vary_and_silent_elsewhere():
    few = cloud(rows=5, width=20)
    whitening = checked.fit_whitening(few)
    assert whitening.rank == 4
    whitened = whitening.apply(few)
    assert np.isfinite(whitened).all()
    variances = np.linalg.eigvalsh(whitened.T @ whitened / 5)
    assert variances == pytest.approx([0.0] * 16 + [1.0] * 4, abs=1e-8)
    others = cloud(rows=50, width=20, seed=1)
    assert np.linalg.matrix_rank(whitening.apply(others)) <= 4


def test_float32_leaves_no_direction_of_rounding():
    """A copy of a column varies with it; what float32 makes of the difference is not blown up."""
    rows = cloud(width=5)
    doubled = np.concatenate([rows, rows[:, :1] / 3], axis=1).astype(np.float32)
    whitening = checked.fit_whitening(doubled)
    assert whitening.rank == 5
    assert np.abs(whitening.apply(doubled)).max() < 10


def test_a_rotation_turns_the_result():
    turn, _ = np.linalg.qr(np.random.default_rng(3).normal(size=(6, 6)))
    plain = checked.fit_whitening(cloud()).apply(cloud())
    turned = checked.fit_whitening(cloud() @ turn).apply(cloud() @ turn)
    assert turned == pytest.approx(plain @ turn, abs=1e-8)


def test_torch_and_numpy_give_the_same_and_later_texts_are_mapped_one_by_one():
    whitening = checked.fit_whitening(torch.from_numpy(cloud()))
    later = cloud(rows=7, seed=2)
    whole = whitening.apply(later)
    assert np.array_equal(whole, fit_whitening(cloud()).apply(torch.from_numpy(later)))
    assert np.concatenate([whitening.apply(later[:3]), whitening.apply(later[3:])]) == pytest.approx(whole, abs=1e-12)


def test_vectors_that_are_all_one_are_refused():
    with pytest.raises(InputError, match="the 4 vectors to whiten are one and the same"):
        fit_whitening(np.full((4, 3), 0.1, dtype=np.float32))


def test_another_width_is_refused():
    with pytest.raises(ShapeError, match=r"for vectors of width 6\. Got width 5 instead"):
        fit_whitening(cloud()).apply(cloud(width=5))


def test_what_is_not_finite_is_refused():
    vectors = cloud()
    vectors[3, 0] = np.inf
    with pytest.raises(InputError, match="row 3"):
        fit_whitening(vectors)
