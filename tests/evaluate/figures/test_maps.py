"""Maps show documents, verbalizers and descriptions before and after, and are the same for the same seed."""

import shutil
import sys

import pytest

from labelspace import DescriptionClassifier, ZeroShotClassifier
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, MissingDependencyError
from labelspace.evaluate import map_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures import maps
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.geometry import project
from pictures import png_size, words_of


@pytest.mark.slow
@pytest.mark.parametrize("coloured", ["by label", "by prediction"])
def test_a_trained_model_has_two_maps_and_an_untrained_one(trained, untrained, texts, names, tmp_path, coloured):
    y = names if coloured == "by label" else None
    (two,) = map_figure(trained, texts, tmp_path / "two.png", y=y, projection="pca")
    (one,) = map_figure(untrained, texts, tmp_path / "one.png", y=y, projection="pca")
    (after,) = map_figure(trained, texts, tmp_path / "after.png", y=y, projection="pca", before=False)
    assert png_size(one) == png_size(after)
    assert png_size(two)[0] - png_size(one)[0] == pytest.approx(5.2 * DOTS_PER_INCH, abs=1)
    assert png_size(two)[1] == png_size(one)[1]


@pytest.mark.slow
@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_the_same_seed_gives_the_same_bytes(untrained, texts, names, tmp_path, method):
    files = [
        map_figure(untrained, texts, tmp_path / f"{name}.svg", y=names, projection=method, seed=1, max_documents=5)[0]
        for name in ("first", "second")
    ]
    assert files[0].read_bytes() == files[1].read_bytes()
    (other,) = map_figure(untrained, texts, tmp_path / "other.svg", y=names, projection=method, seed=2, max_documents=5)
    assert other.read_bytes() != files[0].read_bytes()


@pytest.mark.slow
def test_the_map_names_panels_labels_and_signs(trained, texts, names, tmp_path):
    (path,) = map_figure(trained, texts, tmp_path / "map.svg", y=[None, *names[1:]], projection="pca")
    words = words_of(path)
    assert "before: the untrained encoder (PCA)" in words
    assert "after: DescriptionClassifier (PCA)" in words
    assert {"verbalizer", "description", "document, by true label", "without a label"} <= set(words)
    assert all(name in words for name in trained.label_space_.names)


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 9, 21, 77])
def test_maps_of_few_and_of_many_labels(encoder: Encoder, tmp_path, texts, count):
    labels = [f"_label {number}" for number in range(count)]
    model = ZeroShotClassifier(labels, encoder).fit()
    (path,) = map_figure(model, texts, tmp_path / "map.svg", projection="pca")
    words = words_of(path)
    if count <= 20:
        assert {"_label 0", f"_label {count - 1}"} <= set(words)
    assert sum(word.startswith("_label") for word in words) <= 40
    assert {"verbalizer", "document, as predicted"} <= set(words)
    assert "description" not in words, "no label has one"


def test_documents_that_got_no_label_are_grey(encoder, space, texts, tmp_path):
    model = ZeroShotClassifier(space, encoder, threshold=1.0).fit()
    (path,) = map_figure(model, texts, tmp_path / "map.svg", projection="pca")
    assert NONE_OF_THESE in words_of(path)


def test_one_document_is_enough_and_none_is_not(untrained, tmp_path):
    map_figure(untrained, ["a match"], tmp_path / "map.png", projection="pca")
    with pytest.raises(InputError, match="X holds no document"):
        map_figure(untrained, [], tmp_path / "map.png", projection="pca")


def test_a_missing_untrained_encoder_leaves_its_map_out_with_a_warning(tiny_encoder_folder, space, texts, tmp_path):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "encoder")
    model = DescriptionClassifier(space, Encoder(folder, dtype="float32"), max_steps=2, learning_rate=1e-3).fit()
    shutil.rmtree(folder)
    with pytest.warns(LabelSpaceWarning, match="the map before training is left out"):
        (path,) = map_figure(model, texts, tmp_path / "map.svg", projection="pca")
    assert "DescriptionClassifier (PCA)" in words_of(path)


@pytest.mark.slow
def test_a_map_is_made_by_umap_by_default(untrained, texts, tmp_path, monkeypatch):
    """Replaces `project`, because numba takes ten seconds to compile umap; the tests of `project` run it."""
    asked = []

    def by_pca(vectors, *, projection, **options):
        asked.append(projection)
        return project(vectors, projection="pca", **options)

    monkeypatch.setattr(maps, "project", by_pca)
    (path,) = map_figure(untrained, texts, tmp_path / "map.svg")
    assert asked == ["umap"]
    assert any("UMAP" in word for word in words_of(path))


def test_missing_umap_gives_the_install_command_before_anything_is_encoded(untrained, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    monkeypatch.setattr(Encoder, "encode", None)
    with pytest.raises(MissingDependencyError, match=r"'umap-learn'.*labelspace\[plot\]"):
        map_figure(untrained, texts, tmp_path / "map.png")


@pytest.mark.parametrize(
    "wrong", [{"projection": "mds"}, {"projection": "pca-sphere"}, {"max_documents": 0}, {"seed": "a"}]
)
def test_invalid_options_are_refused(untrained, texts, tmp_path, wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be"):
        map_figure(untrained, texts, tmp_path / "map.png", **{"projection": "pca", **wrong})
