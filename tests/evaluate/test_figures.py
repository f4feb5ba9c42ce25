"""Figures are written whole, in the size said, with the same bytes each time, and touch no figure of the caller."""

import ast
import re
import shutil
import struct
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from labelspace import DescriptionClassifier, ZeroShotClassifier
from labelspace.encoders import Encoder
from labelspace.errors import ConfigError, InputError, LabelSpaceWarning, MissingDependencyError, OutputError
from labelspace.evaluate import confusion_figure, evaluate, figures, map_figure
from labelspace.evaluate.drawing import DOTS_PER_INCH
from labelspace.evaluate.figures import MOST_INCHES
from labelspace.evaluate.metrics import NONE_OF_THESE
from labelspace.evaluate.palette import grey_of, label_colours


def png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head[:8] == b"\x89PNG\r\n\x1a\n"
    return struct.unpack(">II", head[16:24])


def words_of(svg: Path) -> list[str]:
    """The texts of an SVG, which matplotlib leaves as comments beside the drawn glyphs."""
    return [word.strip() for word in re.findall(r"<!-- (.*?) -->", svg.read_text(), flags=re.DOTALL)]


@pytest.fixture(scope="module")
def evaluation(request):
    model = request.getfixturevalue("untrained")
    return evaluate(model, ["a match", "a bank", "a vote"], ["sports", "money", "world"], baselines=False)


def large(evaluation, count: int):
    """The same evaluation with many labels of long names."""
    generator = np.random.default_rng(0)
    confusion = np.zeros((count, count + 1), dtype=np.int64)
    confusion[np.arange(count), np.arange(count)] = generator.integers(5, 30, count)
    confusion[generator.integers(0, count, count), generator.integers(0, count, count)] += 3
    return replace(evaluation, labels=tuple(f"a_label_with_number_{i}" for i in range(count)), confusion=confusion)


# ---- confusion matrix


def test_a_path_without_extension_gives_both_formats(evaluation, tmp_path):
    files = confusion_figure(evaluation, tmp_path / "confusion")
    assert [file.name for file in files] == ["confusion.png", "confusion.svg"]
    assert all(file.stat().st_size > 1000 for file in files)
    assert sorted(tmp_path.iterdir()) == sorted(files)


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_evaluation_gives_the_same_bytes_whatever_the_callers_style(evaluation, tmp_path, ending):
    import matplotlib

    (first,) = confusion_figure(evaluation, tmp_path / f"first.{ending}")
    with matplotlib.rc_context({"font.size": 20, "savefig.bbox": "tight", "svg.hashsalt": "other"}):
        (second,) = confusion_figure(evaluation, tmp_path / f"second.{ending}")
        assert matplotlib.rcParams["font.size"] == 20
    assert first.read_bytes() == second.read_bytes()


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


def test_abstentions_have_a_column_of_their_own(evaluation, tmp_path):
    confusion = evaluation.confusion.copy()
    confusion[0, -1] = 2
    (path,) = confusion_figure(replace(evaluation, confusion=confusion), tmp_path / "confusion.svg")
    assert "none of" in " ".join(words_of(path))


def test_dollars_underscores_and_other_scripts_in_a_label_do_no_harm(evaluation, tmp_path):
    odd = replace(evaluation, labels=("_hidden", "$\\frac", "日本語"))
    confusion_figure(odd, tmp_path / "confusion")


# ---- map


@pytest.mark.parametrize("coloured", ["by label", "by prediction"])
def test_a_trained_model_has_two_maps_and_an_untrained_one(trained, untrained, texts, names, tmp_path, coloured):
    y = names if coloured == "by label" else None
    (two,) = map_figure(trained, texts, tmp_path / "two.png", y=y, method="pca")
    (one,) = map_figure(untrained, texts, tmp_path / "one.png", y=y, method="pca")
    (after,) = map_figure(trained, texts, tmp_path / "after.png", y=y, method="pca", before=False)
    assert png_size(one) == png_size(after)
    assert png_size(two)[0] - png_size(one)[0] == pytest.approx(5.2 * DOTS_PER_INCH, abs=1)
    assert png_size(two)[1] == png_size(one)[1]


@pytest.mark.parametrize("method", ["pca", "tsne"])
def test_the_same_seed_gives_the_same_bytes(untrained, texts, names, tmp_path, method):
    files = [
        map_figure(untrained, texts, tmp_path / f"{name}.svg", y=names, method=method, seed=1, max_documents=5)[0]
        for name in ("first", "second")
    ]
    assert files[0].read_bytes() == files[1].read_bytes()
    (other,) = map_figure(untrained, texts, tmp_path / "other.svg", y=names, method=method, seed=2, max_documents=5)
    assert other.read_bytes() != files[0].read_bytes()


def test_the_map_names_panels_labels_and_signs(trained, texts, names, tmp_path):
    (path,) = map_figure(trained, texts, tmp_path / "map.svg", y=[None, *names[1:]], method="pca")
    words = words_of(path)
    assert "before: the untrained encoder (PCA)" in words
    assert "after: DescriptionClassifier (PCA)" in words
    assert {"verbalizer", "description", "document, by true label", "without a label"} <= set(words)
    assert all(name in words for name in trained.label_space_.names)


@pytest.mark.parametrize("count", [2, 9, 21, 77])
def test_maps_of_few_and_of_many_labels(encoder: Encoder, tmp_path, texts, count):
    labels = [f"_label {number}" for number in range(count)]
    model = ZeroShotClassifier(labels, encoder).fit()
    (path,) = map_figure(model, texts, tmp_path / "map.svg", method="pca")
    words = words_of(path)
    if count <= 20:
        assert {"_label 0", f"_label {count - 1}"} <= set(words)
    assert sum(word.startswith("_label") for word in words) <= 40
    assert {"verbalizer", "description", "document, as predicted"} <= set(words)


def test_documents_that_got_no_label_are_grey(encoder, space, texts, tmp_path):
    model = ZeroShotClassifier(space, encoder, threshold=1.0).fit()
    (path,) = map_figure(model, texts, tmp_path / "map.svg", method="pca")
    assert NONE_OF_THESE in words_of(path)


def test_one_document_is_enough_and_none_is_not(untrained, tmp_path):
    map_figure(untrained, ["a match"], tmp_path / "map.png", method="pca")
    with pytest.raises(InputError, match="X holds no document"):
        map_figure(untrained, [], tmp_path / "map.png", method="pca")


def test_an_untrained_encoder_that_is_gone_leaves_its_map_out_with_a_warning(
    tiny_encoder_folder, space, texts, tmp_path
):
    folder = shutil.copytree(tiny_encoder_folder, tmp_path / "encoder")
    model = DescriptionClassifier(space, Encoder(folder, dtype="float32"), max_steps=2, learning_rate=1e-3).fit()
    shutil.rmtree(folder)
    with pytest.warns(LabelSpaceWarning, match="the map before training is left out"):
        (path,) = map_figure(model, texts, tmp_path / "map.svg", method="pca")
    assert "DescriptionClassifier (PCA)" in words_of(path)


@pytest.mark.slow
def test_a_map_by_umap_is_repeatable(trained, texts, names, tmp_path):
    """Slow, because numba compiles umap first."""
    files = [map_figure(trained, texts, tmp_path / f"{name}.png", y=names)[0] for name in ("first", "second")]
    assert files[0].read_bytes() == files[1].read_bytes()


# ---- refusals


def test_missing_matplotlib_gives_the_install_command(evaluation, untrained, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    for draw in (
        lambda: confusion_figure(evaluation, tmp_path / "confusion"),
        lambda: map_figure(untrained, texts, tmp_path / "map", method="pca"),
    ):
        with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[plot\]'"):
            draw()
    assert list(tmp_path.iterdir()) == []


def test_missing_umap_gives_the_install_command_before_anything_is_encoded(untrained, texts, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "umap", None)
    monkeypatch.setattr(Encoder, "encode", None)
    with pytest.raises(MissingDependencyError, match=r"'umap-learn'.*labelspace\[plot\]"):
        map_figure(untrained, texts, tmp_path / "map.png")


def test_another_extension_is_refused_before_anything_is_drawn(evaluation, untrained, texts, tmp_path):
    with pytest.raises(OutputError, match=r"written as \.png, \.svg, \.pdf"):
        confusion_figure(evaluation, tmp_path / "confusion.bmp")
    with pytest.raises(OutputError, match="no extension"):
        map_figure(untrained, texts, tmp_path / "map.gif")


def test_a_folder_that_is_not_there_is_one_clear_error(evaluation, tmp_path):
    with pytest.raises(OutputError, match="cannot be written"):
        confusion_figure(evaluation, tmp_path / "missing" / "confusion.png")


@pytest.mark.parametrize("wrong", [{"method": "mds"}, {"method": "pca-sphere"}, {"max_documents": 0}, {"seed": "a"}])
def test_options_that_make_no_sense_are_refused(untrained, texts, tmp_path, wrong):
    with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be"):
        map_figure(untrained, texts, tmp_path / "map.png", **{"method": "pca", **wrong})


# ---- manners


def test_drawing_needs_no_pyplot_and_so_touches_no_figure_of_the_caller(
    evaluation, untrained, texts, tmp_path, monkeypatch
):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    confusion_figure(evaluation, tmp_path / "confusion")
    map_figure(untrained, texts, tmp_path / "map", method="pca")


def test_matplotlib_is_imported_when_something_is_drawn_and_not_before():
    folder = Path(figures.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                assert "matplotlib" not in ast.unparse(node), path.name


@pytest.mark.parametrize("count", [2, 8, 9, 77])
def test_colours_differ_and_neighbours_differ_in_grey_as_well(count):
    colours = label_colours(count)
    assert len(set(colours)) == count
    grey = [grey_of(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))) for colour in colours]
    assert all(0.15 < value < 0.85 for value in grey), "told from black and from white"
    assert all(abs(one - other) > 0.1 for one, other in pairwise(grey))
