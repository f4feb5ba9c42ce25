"""The figure of an estimate names every number and label, tells trusts apart in grey, and grows with the labels."""

from itertools import combinations

import pytest

from labelspace.evaluate import estimate, estimate_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures.estimate import LOOKS
from labelspace.evaluate.figures.panels import MOST_INCHES
from pictures import greys, nothing_is_cut, png_size, words_of


def test_ranges_medians_and_numbers_of_documents_are_written(estimated, tmp_path):
    (path,) = estimate_figure(estimated(4, labelled=10), tmp_path / "estimate.svg")
    words = words_of(path)
    assert {"accuracy", "macro-F1", "0.70 (0.61 to 0.78)", "0.58 (0.50 to 0.66)"} <= set(words)
    assert "Estimate from 4,321 documents, 10 of them labelled" in words
    assert {"1,000", "1,001", "1,002", "0"} <= set(words)
    assert {"trusted (0.75 or more)", "doubtful", "not to be trusted", "none found"} <= set(words)


def test_the_legend_has_the_trusts_that_occur(estimated, tmp_path):
    (path,) = estimate_figure(estimated(2), tmp_path / "estimate.svg")
    words = words_of(path)
    assert "doubtful" in words
    assert not {"not to be trusted", "none found"} & set(words)


@pytest.mark.parametrize("count", [2, pytest.param(77, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["x", "a_label_whose_name_is_as_long_as_names_get"])
def test_every_label_is_named_and_nothing_is_cut_off(estimated, tmp_path, count, name):
    files = estimate_figure(estimated(count, name), tmp_path / "estimate")
    assert nothing_is_cut(files[0])
    width, height = png_size(files[0])
    assert height > 25 * count, "a row has the height of its name"
    assert max(width, height) < MOST_INCHES * DOTS_PER_INCH
    words = words_of(files[1])
    assert all(words.count(f"{name}_{number}") == 1 for number in range(count))


@pytest.mark.slow
def test_with_many_labels_those_with_the_most_documents_are_drawn_and_the_title_says_so(estimated, tmp_path):
    files = estimate_figure(estimated(5000), tmp_path / "estimate")
    assert max(png_size(files[0])) < MOST_INCHES * DOTS_PER_INCH
    words = words_of(files[1])
    assert [word for word in words if word.startswith("label_")] == [f"label_{number}" for number in range(100)]
    assert "the 100 labels with the most documents, of 5,000" in words


def test_trusts_differ_in_grey_and_in_hatch():
    from matplotlib.colors import to_rgb

    faces = greys([to_rgb(look["facecolor"]) for look in LOOKS.values()])
    assert all(abs(one - other) > 0.1 for one, other in combinations(faces, 2))
    assert len({look["hatch"] for look in LOOKS.values()}) == len(LOOKS)


@pytest.mark.slow
def test_names_of_any_script_do_no_harm(estimated, tmp_path):
    for name in ("_hidden", "$\\frac", "спорт"):
        estimate_figure(estimated(2, name), tmp_path / "estimate")


def test_an_estimate_of_real_documents_is_drawn(untrained, texts, tmp_path):
    found = estimate(untrained, [f"{text} {row}" for row in range(7) for text in texts])
    (path,) = estimate_figure(found, tmp_path / "estimate.svg")
    assert "Estimate from 56 documents" in words_of(path)
