"""IsoScore is the package's and its paper's; drift and neighbours are what loops over all texts find."""

import math
import sys

import numpy as np
import pytest
import torch

from labelspace.errors import ConfigError, InputError, MissingDependencyError, ShapeError
from labelspace.geometry import drift, isoscore, isotropy, neighbours_kept
from losses.checked import geometry as checked
from losses.oracles import Table, cosine_by_hand


def isoscore_by_hand(variances: list[float]) -> float:
    """Rudman et al., Algorithm 1, from the variances along the principal axes."""
    n = len(variances)
    length = math.sqrt(sum(v * v for v in variances))
    defect = math.sqrt(sum((math.sqrt(n) * v / length - 1) ** 2 for v in variances))
    defect /= math.sqrt(2 * (n - math.sqrt(n)))
    return ((n - defect**2 * (n - math.sqrt(n))) ** 2 - n) / (n * (n - 1))


def drift_by_hand(before: Table, after: Table) -> float:
    return sum(1 - cosine_by_hand(one, other) for one, other in zip(before, after, strict=True)) / len(before)


def nearest_by_hand(rows: Table, i: int, k: int) -> set[int]:
    others = [j for j in range(len(rows)) if j != i]
    return set(sorted(others, key=lambda j: (-round(cosine_by_hand(rows[i], rows[j]), 9), j))[:k])


def kept_by_hand(before: Table, after: Table, k: int) -> float:
    shares = [len(nearest_by_hand(before, i, k) & nearest_by_hand(after, i, k)) / k for i in range(len(before))]
    return sum(shares) / len(shares)


def vectors(rows: int = 40, width: int = 6, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width))


def rotation(width: int, seed: int = 3) -> np.ndarray:
    return np.linalg.qr(vectors(width, width, seed))[0]


def cross(*deviations: float) -> np.ndarray:
    """Points on the axes, with variances in the ratio of the squares of the deviations and none shared by two axes."""
    axes = np.diag(deviations)
    return np.concatenate([axes, -axes])


# ---- IsoScore


@pytest.mark.parametrize("deviations", [(1.0, 2.0), (1.0, 1.0, 1.0), (3.0, 1.0, 0.2, 0.0), (1.0, 0.0, 0.0)], ids=str)
def test_isoscore_equals_the_algorithm_written_out(deviations: tuple[float, ...]):
    expected = isoscore_by_hand([deviation**2 for deviation in deviations])
    assert checked.isoscore(cross(*deviations)) == pytest.approx(expected, abs=1e-6)


def test_isoscore_is_1_where_all_directions_are_alike_and_0_on_a_line():
    assert checked.isoscore(cross(1.0, 1.0, 1.0, 1.0)) == pytest.approx(1.0, abs=1e-6)
    assert checked.isoscore(np.outer(np.arange(9.0), vectors(1, 5)[0])) == pytest.approx(0.0, abs=1e-6)


def test_isoscore_ignores_rotation_scale_offset_and_order():
    rows = vectors() * [3, 1, 1, 1, 0.5, 0.1]
    plain = checked.isoscore(rows)
    assert checked.isoscore(7 * rows[::-1] @ rotation(6) + 5) == pytest.approx(plain, rel=1e-6)
    assert 0 < plain < 1


def test_isoscore_takes_torch_and_float32_without_a_warning():
    rows = vectors().astype(np.float32)
    assert checked.isoscore(torch.from_numpy(rows)) == checked.isoscore(rows)


def test_isoscore_asks_for_its_package_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "IsoScore.IsoScore", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'IsoScore'.*'labelspace\[geometry\]'"):
        isoscore(vectors())


def test_isoscore_refuses_what_has_no_directions():
    with pytest.raises(InputError, match="Got 4 times the same one"):
        isoscore(np.full((4, 3), 0.1))
    for shape in ((5, 1), (1, 5)):
        with pytest.raises(ShapeError, match="two texts and two coordinates"):
            isoscore(np.ones(shape))


# ---- drift


@pytest.mark.parametrize("block", [2**22, 6, 20])
def test_drift_equals_the_mean_written_out(block: int, monkeypatch: pytest.MonkeyPatch):
    before, after = vectors(), vectors(seed=1)
    expected = drift_by_hand(before.tolist(), after.tolist())
    monkeypatch.setattr(isotropy, "BLOCK", block)
    assert drift(before, after) == pytest.approx(expected, rel=1e-12)
    assert checked.drift(before, after) == pytest.approx(expected, rel=1e-12)


def test_drift_is_0_for_the_same_directions_1_for_noise_and_2_for_opposite_ones():
    rows = vectors(4000)
    assert checked.drift(rows, 3 * rows) == pytest.approx(0.0, abs=1e-12)
    assert checked.drift(rows, vectors(4000, seed=1)) == pytest.approx(1.0, abs=0.02)
    assert checked.drift(rows, -rows) == pytest.approx(2.0)


def test_a_vector_of_zeros_has_no_direction():
    assert checked.drift(np.array([[0.0, 0.0], [1.0, 0.0]]), np.array([[1.0, 0.0], [1.0, 0.0]])) == 0.5


# ---- neighbours


@pytest.mark.parametrize("k", [1, 10, 39])
@pytest.mark.parametrize("block", [2**22, 280])
def test_neighbours_kept_equals_the_count_written_out(k: int, block: int, monkeypatch: pytest.MonkeyPatch):
    before = vectors()
    after = before + 0.7 * vectors(seed=1)
    monkeypatch.setattr(isotropy, "BLOCK", block)
    assert neighbours_kept(before, after, k) == pytest.approx(kept_by_hand(before.tolist(), after.tolist(), k))


def test_ten_neighbours_are_looked_at_unless_said_otherwise():
    before, after = vectors(), vectors(seed=1)
    assert checked.neighbours_kept(before, after) == checked.neighbours_kept(before, after, 10)


def test_texts_that_are_the_same_are_neighbours_in_their_order():
    """Each vector four times: with k = 2 the tie between three equal ones is decided the same way before and after."""
    before = np.repeat(vectors(10), 4, axis=0)
    after = np.repeat(vectors(10, seed=1), 4, axis=0)
    assert checked.neighbours_kept(before, after, 2) == 1.0
    assert checked.neighbours_kept(before, before, 5) == 1.0
    small = np.repeat(vectors(4), 3, axis=0)
    found = checked.neighbours_kept(small, vectors(12, seed=1), 4)
    assert found == pytest.approx(kept_by_hand(small.tolist(), vectors(12, seed=1).tolist(), 4))


def test_a_rotation_moves_no_neighbour_and_is_drift_all_the_same():
    before = vectors()
    assert checked.neighbours_kept(before, 2 * before @ rotation(6)) == 1.0
    assert checked.drift(before, before @ rotation(6)) > 0.5


def test_noise_keeps_as_many_neighbours_as_chance():
    found = checked.neighbours_kept(vectors(400), vectors(400, seed=1))
    assert found == pytest.approx(10 / 399, abs=0.01)


def test_the_widths_may_differ_and_torch_is_taken():
    before = vectors()
    wider = np.concatenate([before, np.zeros((40, 3))], axis=1)
    assert checked.neighbours_kept(torch.from_numpy(before), wider) == 1.0
    assert neighbours_kept(torch.from_numpy(before).bfloat16(), before) > 0.9


def test_what_does_not_fit_is_refused():
    with pytest.raises(ShapeError, match=r"the same texts twice, in one width. Got shapes \(40, 6\) and \(40, 5\)"):
        drift(vectors(), vectors(width=5))
    with pytest.raises(ShapeError, match=r"more than k=10 of them. Got 40 and 39 instead"):
        neighbours_kept(vectors(), vectors(39))
    with pytest.raises(ShapeError, match=r"more than k=40 of them. Got 40 and 40 instead"):
        neighbours_kept(vectors(), vectors(), 40)
    with pytest.raises(ConfigError, match="k must be a whole number at least 1"):
        neighbours_kept(vectors(), vectors(), 0)
    with pytest.raises(InputError, match=r"the vectors of drift must be finite.* row 0"):
        drift(np.full((2, 2), np.nan), np.ones((2, 2)))
