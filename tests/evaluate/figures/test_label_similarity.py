"""The heat map shows the labels' cosines, puts near labels side by side, and is legible from 2 labels to 150."""

import numpy as np
import pytest

from labelspace import LabelSpace, ZeroShotClassifier
from labelspace.errors import ConfigError
from labelspace.evaluate import label_similarity_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures import label_similarity
from labelspace.evaluate.figures.label_similarity import label_order
from labelspace.evaluate.figures.panels import MOST_INCHES
from labelspace.labels.lint_meaning import UNRELATED
from pictures import nothing_is_cut, png_size, words_of


@pytest.mark.parametrize("anchor", ["verbalizer", "descriptions", "both"])
def test_the_numbers_are_the_cosines_of_the_label_vectors(encoder, space, tmp_path, anchor):
    model = ZeroShotClassifier(space, encoder, anchor=anchor).fit()
    (path,) = label_similarity_figure(model, tmp_path / "labels.svg")
    anchors = [model.label_vectors_[name].anchor(anchor).tolist() for name in space.names]
    slow = [
        sum(a * b for a, b in zip(anchors[row], anchors[column], strict=True))
        for row in range(3)
        for column in range(3)
        if row != column
    ]
    words = words_of(path)
    assert all(words.count(f"{cosine:.2f}") >= 2 for cosine in slow)
    assert all(words.count(name) == 2 for name in space.names)
    assert {"desk", "ZeroShotClassifier: cosine of labels"} <= set(words)


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [2, 12, 13, *(pytest.param(count, marks=pytest.mark.slow) for count in (40, 41, 150))]
)
def test_every_label_is_named_and_nothing_is_cut_off(encoder, tmp_path, count):
    names = [f"a_label_of_some_length_{number}" for number in range(count)]
    files = label_similarity_figure(ZeroShotClassifier(names, encoder).fit(), tmp_path / "labels")
    assert nothing_is_cut(files[0])
    assert max(png_size(files[0])) < MOST_INCHES * DOTS_PER_INCH
    words = words_of(files[1])
    assert all(words.count(name) == 2 for name in names)
    numbers = [word for word in words if word.replace(".", "", 1).isdigit()]
    assert (len(numbers) >= count * (count - 1)) == (count <= 40), "numbers only where there is room"


@pytest.mark.slow
@pytest.mark.parametrize("count", [2, 20, 60])
def test_cells_are_square_however_long_the_names(encoder, tmp_path, monkeypatch, count):
    drawn = []
    monkeypatch.setattr(label_similarity, "write_figure", lambda figure, files: drawn.append(figure) or tuple(files))
    names = [f"a_label_of_a_name_that_is_long_{number}" for number in range(count)]
    label_similarity_figure(ZeroShotClassifier(names, encoder).fit(), tmp_path / "labels")
    drawn[0].draw_without_rendering()
    cells = drawn[0].axes[0].get_window_extent()
    assert cells.width == pytest.approx(cells.height, rel=0.02)


def test_names_of_any_length_and_script_fit(encoder, tmp_path):
    space = LabelSpace.from_dict({"name": "a name " * 20, "labels": {"x": [], "_hidden": [], "$\\frac " * 20: []}})
    files = label_similarity_figure(ZeroShotClassifier(space, encoder).fit(), tmp_path / "labels")
    assert nothing_is_cut(files[0])


def test_few_labels_keep_their_order_and_many_are_clustered():
    groups = np.array([0, 1, 2] * 5)
    cosines = np.where(groups[:, None] == groups, 0.9, 0.1)
    assert label_order(cosines[:12, :12]) == list(range(12))
    order = label_order(cosines)
    assert sorted(order) == list(range(15))
    assert int((np.diff(groups[order]) != 0).sum()) == 2, "three groups have two borders"


def test_labels_that_are_all_alike_can_be_put_in_an_order():
    assert sorted(label_order(np.ones((20, 20)))) == list(range(20))


def test_an_unknown_anchor_is_refused(encoder, space, tmp_path):
    model = ZeroShotClassifier(space, encoder).fit().set_params(anchor="middle")
    with pytest.raises(ConfigError, match="anchor must be one of"):
        label_similarity_figure(model, tmp_path / "labels.png")


def test_the_palest_shade_is_the_cosine_of_unrelated_texts(encoder, space):
    model = ZeroShotClassifier(space, encoder).fit()
    vectors = encoder.encode(UNRELATED).astype(float)
    slow = np.mean([vectors[i] @ vectors[j] for i in range(len(vectors)) for j in range(len(vectors)) if i != j])
    assert label_similarity._palest(model) == pytest.approx(max(0.0, slow), abs=1e-5)
