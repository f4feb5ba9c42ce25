"""Documents and verbalizers lie on the unit sphere, both spheres are aligned, and the far side is paler."""

import shutil

import numpy as np
import pytest

from labelspace import DescriptionClassifier, ZeroShotClassifier
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning
from labelspace.evaluate import sphere_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures.spaces import shown_after
from labelspace.evaluate.figures.sphere import _on_sphere, _turned_about_the_centre, _view
from pictures import nothing_is_cut, png_size, words_of


def random_sphere(count: int, seed: int) -> np.ndarray:
    points = np.random.default_rng(seed).normal(loc=[0.8, 0, 0], size=(count, 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


@pytest.mark.slow
def test_a_trained_model_has_two_spheres_and_an_untrained_one(trained, untrained, texts, names, tmp_path):
    (two,) = sphere_figure(trained, texts, tmp_path / "two.png", y=names)
    (one,) = sphere_figure(untrained, texts, tmp_path / "one.png", y=names)
    (after,) = sphere_figure(trained, texts, tmp_path / "after.png", y=names, before=False)
    assert png_size(one) == png_size(after)
    assert png_size(two)[0] - png_size(one)[0] == pytest.approx(5.2 * DOTS_PER_INCH, abs=1)


def test_documents_and_verbalizers_are_at_distance_one_from_the_centre(untrained, texts):
    points = _on_sphere(shown_after(untrained, texts, np.zeros(len(texts), dtype=np.int64)))
    assert points.shape == (len(texts) + 3, 3)
    assert np.linalg.norm(points, axis=1) == pytest.approx(1)


def test_aligning_undoes_a_rotation_and_stays_on_the_sphere():
    fixed = random_sphere(30, seed=0)
    turn, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(3, 3)))
    assert _turned_about_the_centre(fixed @ turn, fixed) == pytest.approx(fixed)
    other = _turned_about_the_centre(random_sphere(30, seed=2), fixed)
    assert np.linalg.norm(other, axis=1) == pytest.approx(1)


def test_the_view_is_a_rotation_that_shows_the_stars_apart():
    stars = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]])
    view = _view(stars)
    assert view.T @ view == pytest.approx(np.eye(3))
    seen = stars @ view
    assert np.linalg.norm(seen[0, :2] - seen[1, :2]) > 1.95, "seen from the side, not from a pole"


def test_the_view_of_one_star_looks_at_it():
    star = np.array([[0.6, 0.0, 0.8]])
    assert (star @ _view(star))[0, 2] > 0.98


def test_the_sphere_names_panels_labels_and_signs(trained, texts, names, tmp_path, named):
    (path,) = sphere_figure(trained, texts, tmp_path / "sphere.svg", y=[None, *names[1:]])
    words = words_of(path)
    assert "before: the untrained encoder (PCA, on the sphere)" in words
    assert "after: DescriptionClassifier (PCA, on the sphere)" in words
    assert {"verbalizer", "document, by true label", "without a label", "pale: on the far side"} <= set(words)
    assert "description" not in words
    assert set(trained.label_space_.names) <= set(words), "in the legend"
    assert set(trained.label_space_.names) == set(named), "beside the stars"


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 9, 21, 77])
def test_spheres_of_few_and_of_many_labels(encoder: Encoder, tmp_path, texts, named, count):
    model = ZeroShotClassifier([f"_a label of some length {number}" for number in range(count)], encoder).fit()
    files = sphere_figure(model, texts, tmp_path / "sphere")
    assert nothing_is_cut(files[0])
    assert 1 <= len(named) <= 20
    legend = [word for word in words_of(files[1]) if word.startswith("_a label")]
    assert len(legend) == (count if count <= 20 else 0)


def test_the_seed_decides_which_documents_are_drawn(untrained, texts, tmp_path):
    files = [
        sphere_figure(untrained, texts, tmp_path / f"{number}.svg", seed=seed, max_documents=4)[0]
        for number, seed in enumerate((1, 1, 2))
    ]
    assert files[0].read_bytes() == files[1].read_bytes() != files[2].read_bytes()


def test_equal_documents_can_be_drawn(untrained, tmp_path):
    sphere_figure(untrained, ["a match"] * 5, tmp_path / "sphere.png")


def test_too_few_documents_are_refused(encoder, untrained, tmp_path):
    with pytest.raises(InputError, match="X holds no document; a sphere needs"):
        sphere_figure(untrained, [], tmp_path / "sphere.png")
    model = ZeroShotClassifier(["a", "b"], encoder).fit()
    with pytest.raises(InputError, match=r"four points.*Got 1 and 2; give more"):
        sphere_figure(model, ["a match"], tmp_path / "sphere.png")


@pytest.mark.parametrize("wrong", [{"max_documents": 0}, {"seed": "a"}])
def test_invalid_options_are_refused(untrained, texts, tmp_path, wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be"):
        sphere_figure(untrained, texts, tmp_path / "sphere.png", **wrong)


def test_a_missing_untrained_encoder_leaves_its_sphere_out_with_a_warning(tiny_encoder_folder, space, texts, tmp_path):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "encoder")
    model = DescriptionClassifier(space, Encoder(folder, dtype="float32"), max_steps=2, learning_rate=1e-3).fit()
    shutil.rmtree(folder)
    with pytest.warns(LabelSpaceWarning, match="the sphere before training is left out"):
        (path,) = sphere_figure(model, texts, tmp_path / "sphere.svg")
    assert "DescriptionClassifier (PCA, on the sphere)" in words_of(path)
