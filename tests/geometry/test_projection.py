"""Maps of embeddings: repeatable, the right way up, on the sphere where asked, and refused where there is no map."""

import os
import sys

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from labelspace.errors import ConfigError, InputError, MissingDependencyError, ShapeError
from labelspace.geometry import project
from labelspace.geometry.projection import PROJECTIONS, turned_like
from losses.checked import geometry as checked

WITHOUT_UMAP = [projection for projection in PROJECTIONS if projection != "umap"]


def clouds(count: int = 40, width: int = 8, seed: int = 0) -> np.ndarray:
    """Unit vectors around two far points."""
    generator = np.random.default_rng(seed)
    centres = np.repeat(generator.normal(size=(2, width)), count // 2, axis=0)
    rows = centres + 0.2 * generator.normal(size=(len(centres), width))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def apart(flat: np.ndarray) -> float:
    """Distance between the means of the two clouds, over the larger spread of the two."""
    first, second = flat[: len(flat) // 2], flat[len(flat) // 2 :]
    spread = max(np.linalg.norm(part - part.mean(axis=0), axis=1).mean() for part in (first, second))
    return float(np.linalg.norm(first.mean(axis=0) - second.mean(axis=0)) / spread)


@pytest.mark.parametrize("projection", WITHOUT_UMAP)
def test_every_text_gets_finite_coordinates_and_clouds_stay_apart(projection: str):
    flat = checked.project(clouds(), projection=projection)
    assert flat.shape == (40, 3 if projection == "pca-sphere" else 2)
    assert flat.dtype == np.float64
    assert np.isfinite(flat).all()
    assert apart(flat) > 1


@pytest.mark.parametrize("projection", WITHOUT_UMAP)
def test_the_same_embeddings_give_the_same_bits_and_global_randomness_has_no_say(projection: str):
    first = project(clouds(), projection=projection, seed=3)
    np.random.seed(7)  # noqa: NPY002
    assert np.array_equal(first, project(clouds(), projection=projection, seed=3))


@pytest.mark.slow
def test_umap_is_repeatable_keeps_clouds_apart_and_leaves_torch_its_threads():
    """Slow, because numba compiles umap first. It also sets torch's number of threads to that of the cores."""
    before, other = torch.get_num_threads(), (os.cpu_count() or 1) + 1
    torch.set_num_threads(other)
    flat = checked.project(clouds(), projection="umap", seed=1)
    assert torch.get_num_threads() == other
    torch.set_num_threads(before)
    assert np.array_equal(flat, project(clouds(), projection="umap", seed=1))
    assert not np.array_equal(flat, project(clouds(), projection="umap", seed=2))
    assert flat.shape == (40, 2)
    assert apart(flat) > 1
    assert project(clouds(), projection="umap", dimensions=3).shape == (40, 3)
    assert np.isfinite(project(clouds()[18:21], projection="umap")).all()
    assert np.isfinite(project(np.outer(np.arange(5.0), np.ones(4)), projection="umap")).all()


def test_umap_asks_for_its_package_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'umap-learn'.*'labelspace\[plot\]'"):
        project(clouds(), projection="umap")


def test_the_seed_decides_a_map_by_tsne_and_no_map_by_pca():
    crowd = np.random.default_rng(0).normal(size=(60, 6))
    assert np.array_equal(project(crowd, seed=1), project(crowd, seed=2))
    assert project(crowd, projection="tsne", seed=1).shape == (60, 2)


@pytest.mark.parametrize("dimensions", [2, 3])
def test_pca_equals_the_leading_eigenvectors_of_the_covariance(dimensions: int):
    rows = clouds()
    centred = rows - rows.mean(axis=0)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    expected = centred @ vectors[:, ::-1][:, :dimensions]
    flat = checked.project(rows, dimensions=dimensions)
    assert np.allclose(np.abs(flat), np.abs(expected), atol=1e-10)


def test_each_axis_points_to_its_largest_loading():
    rows = clouds()
    flat = project(rows)
    centred = rows - rows.mean(axis=0)
    axes = np.linalg.lstsq(flat, centred, rcond=None)[0]
    assert all(axis[np.abs(axis).argmax()] > 0 for axis in axes)


def test_the_order_of_texts_moves_no_text_on_a_map_by_pca():
    rows = clouds()
    assert np.allclose(project(rows)[::-1], project(rows[::-1]), atol=1e-10)


def test_rows_on_the_sphere_have_unit_length_and_the_direction_of_pca():
    flat, ball = project(clouds(), dimensions=3), project(clouds(), projection="pca-sphere")
    lengths = np.linalg.norm(flat, axis=1, keepdims=True)
    assert np.allclose(np.linalg.norm(ball, axis=1), 1.0, atol=1e-12)
    assert np.allclose(ball * lengths, flat, atol=1e-12)


def test_a_text_at_the_very_centre_is_on_the_sphere_too():
    corners = np.concatenate([np.eye(3), -np.eye(3), np.zeros((1, 3))])
    assert np.allclose(np.linalg.norm(project(corners, projection="pca-sphere"), axis=1), 1.0)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64, torch.bfloat16])
def test_tensors_are_welcome_in_any_precision_and_with_a_gradient(kind: torch.dtype):
    rows = torch.tensor(clouds()).to(kind)
    expected = project(rows.double().numpy())
    assert np.allclose(checked.project(rows.requires_grad_()), expected)


@pytest.mark.parametrize("projection", ["pca", "tsne"])
def test_a_collapsed_space_is_one_point_and_no_error(projection: str):
    assert not project(np.ones((5, 4)), projection=projection).any()


def test_texts_on_one_line_have_one_coordinate():
    line = np.outer(np.arange(5.0), np.ones(4))
    assert np.allclose(project(line)[:, 1], 0.0, atol=1e-12)


def test_three_texts_are_enough_and_two_are_not():
    for projection in ("pca", "tsne"):
        assert project(clouds()[18:21], projection=projection).shape == (3, 2)
        with pytest.raises(ShapeError, match=r"at least 3 texts and 2 dimensions\. Got shape \(2, 8\) instead"):
            project(clouds()[:2], projection=projection)


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((5, 1)), np.zeros((2, 3, 4))])
def test_what_is_no_matrix_or_too_narrow_is_refused(wrong: np.ndarray):
    with pytest.raises(ShapeError, match="coordinates need embeddings"):
        project(wrong)


def test_the_shape_hook_catches_a_vector():
    with pytest.raises(TypeCheckError):
        checked.project(np.zeros(3))


def test_not_a_number_is_refused_by_row():
    rows = clouds()
    rows[7, 1] = np.nan
    with pytest.raises(InputError, match="row 7"):
        project(rows)


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"projection": "mds"}, "projection must be one of 'pca'"),
        ({"dimensions": 4}, "dimensions must be one of 2, 3"),
        ({"projection": "pca-sphere", "dimensions": 2}, "leave dimensions out"),
        ({"seed": 0.5}, "seed must be a whole number"),
    ],
)
def test_options_that_make_no_sense_are_refused(wrong: dict, words: str):
    with pytest.raises(ConfigError, match=words):
        project(clouds(), **wrong)


def test_a_turned_map_lies_on_the_other_and_keeps_its_distances():
    fixed = project(clouds())
    angle = 0.7
    turn = np.array([[np.cos(angle), np.sin(angle)], [np.sin(angle), -np.cos(angle)]])  # and mirrored
    moved = fixed @ turn + 5
    back = turned_like(moved, fixed)
    assert np.allclose(back, fixed, atol=1e-10)
    other = turned_like(3 * moved, fixed)
    assert np.allclose(np.linalg.norm(other[0] - other[1]), 3 * np.linalg.norm(fixed[0] - fixed[1]))
