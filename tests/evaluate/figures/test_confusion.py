"""The confusion matrix is complete and has the right size."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.sparse import csr_array

from labelspace.errors import OutputError
from labelspace.evaluate import confusion_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures.panels import MOST_INCHES
from labelspace.evaluate.metrics import NONE_OF_THESE
from pictures import png_size, words_of


def large(evaluation, count: int):
    """The same evaluation with many labels with long names."""
    generator = np.random.default_rng(0)
    confusion = np.zeros((count, count + 1), dtype=np.int64)
    confusion[np.arange(count), np.arange(count)] = generator.integers(5, 30, count)
    confusion[generator.integers(0, count, count), generator.integers(0, count, count)] += 3
    labels = tuple(f"a_label_with_number_{i}" for i in range(count))
    return replace(evaluation, labels=labels, counts=csr_array(confusion))


def test_a_path_without_extension_gives_both_formats(evaluation, tmp_path):
    files = confusion_figure(evaluation, tmp_path / "confusion")
    assert [file.name for file in files] == ["confusion.png", "confusion.svg"]
    assert all(file.stat().st_size > 1000 for file in files)
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.slow
def test_the_matrix_grows_with_the_labels_and_stays_legible_and_bounded(evaluation, tmp_path):
    sizes = {}
    for count in (3, 77):
        (path,) = confusion_figure(large(evaluation, count), tmp_path / f"{count}.png")
        sizes[count] = png_size(path)
        # At least 30 pixels for each row and column, for a number of three digits.
        assert min(sizes[count]) > 30 * count
    assert sizes[77][0] > sizes[3][0]
    assert max(sizes[77]) <= (MOST_INCHES + 1) * DOTS_PER_INCH


def test_every_label_and_number_is_in_the_matrix(evaluation, tmp_path):
    found = large(evaluation, 14)
    (path,) = confusion_figure(found, tmp_path / "confusion.svg")
    words = words_of(path)
    assert all(words.count(label) == 2 for label in found.labels)
    counts = [word for word in words if word.isdigit()]
    assert sorted(map(int, counts)) == sorted(found.confusion[found.confusion > 0].tolist())
    assert NONE_OF_THESE not in words


@pytest.mark.slow
def test_with_many_labels_those_with_the_most_errors_are_drawn_and_the_title_says_so(evaluation, tmp_path):
    count = 5_000
    right = np.arange(count)
    wrong = np.arange(0, 2_000, 20)  # 100 rows with an error, 99 columns that are among them
    counts = csr_array((np.full(count, 7), (right, right)), shape=(count, count + 1)).tolil()
    counts[wrong[1:], wrong[:-1]] = 30
    counts[wrong[0], -1] = 40
    found = replace(evaluation, labels=tuple(f"label_{i}" for i in range(count)), counts=csr_array(counts))
    (path,) = confusion_figure(found, tmp_path / "confusion.svg")
    words = words_of(path)
    assert {word for word in words if word.startswith("label_")} == {f"label_{i}" for i in wrong}
    assert "the 100 labels with the most errors, of 5,000" in " ".join(words)
    assert (words.count("7"), words.count("30"), words.count("40")) == (100, 99, 1)


def test_abstentions_have_their_own_column(evaluation, tmp_path):
    confusion = evaluation.confusion
    confusion[0, -1] = 2
    (path,) = confusion_figure(replace(evaluation, counts=csr_array(confusion)), tmp_path / "confusion.svg")
    assert "none of" in " ".join(words_of(path))


def test_dollars_underscores_and_other_scripts_in_a_label_do_no_harm(evaluation, tmp_path):
    odd = replace(evaluation, labels=("_hidden", "$\\frac", "спорт"))
    confusion_figure(odd, tmp_path / "confusion")


def test_a_missing_folder_is_a_clear_error(evaluation, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        confusion_figure(evaluation, tmp_path / "missing" / "confusion.png")
