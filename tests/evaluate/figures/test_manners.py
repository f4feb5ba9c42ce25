"""Every figure has reproducible bytes, cuts nothing off, avoids pyplot, and refuses bad input in one line."""

import ast
import subprocess
import sys
import warnings
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from labelspace.errors import LabelSpaceWarning, MissingDependencyError, OutputError
from labelspace.evaluate import (
    confusion_figure,
    consensus_figure,
    drawing,
    estimate_figure,
    figures,
    label_similarity_figure,
    map_figure,
    rejection_figure,
    sphere_figure,
)
from labelspace.evaluate.palette import label_colours
from pictures import grey_of, nothing_is_cut, png_size

KINDS = ["confusion", "map", "sphere", "similarity", "rejection", "estimate", "consensus"]


@pytest.fixture
def draw(evaluation, trained, texts, names, rejection, estimated, agreed):
    """Draw a figure of a kind into a path, and return the files."""
    kinds = {
        "confusion": lambda path: confusion_figure(evaluation, path),
        "map": lambda path: map_figure(trained, texts, path, y=names, projection="pca"),
        "sphere": lambda path: sphere_figure(trained, texts, path, y=names),
        "similarity": lambda path: label_similarity_figure(trained, path),
        "rejection": lambda path: rejection_figure({"sigma": rejection, "A name " * 20: rejection}, path),
        "estimate": lambda path: estimate_figure(estimated(5, "A name " * 20), path),
        "consensus": lambda path: consensus_figure(agreed(3, name="A name " * 20), path),
    }
    return lambda kind, path: kinds[kind](path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_input_gives_the_same_bytes_whatever_the_callers_style(draw, tmp_path, kind, ending):
    import matplotlib

    (first,) = draw(kind, tmp_path / f"first.{ending}")
    with matplotlib.rc_context({"font.size": 20, "savefig.bbox": "tight", "svg.hashsalt": "other"}):
        (second,) = draw(kind, tmp_path / f"second.{ending}")
        assert matplotlib.rcParams["font.size"] == 20
    assert first.read_bytes() == second.read_bytes()


def test_the_callers_font_is_used(evaluation, tmp_path):
    import matplotlib

    own = {"font.family": ["DejaVu Serif"]}, {"font.sans-serif": ["No Such Font", "DejaVu Serif"]}, {}
    drawn = []
    for number, settings in enumerate(own):
        with matplotlib.rc_context(settings):
            (path,) = confusion_figure(evaluation, tmp_path / f"{number}.svg")
        drawn.append(path.read_bytes())
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_character_that_our_font_lacks_comes_from_another_installed_font(evaluation, tmp_path, monkeypatch):
    drawn = {}
    for fonts in ((), ("No Such Font", "DejaVu Serif")):
        monkeypatch.setattr(drawing, "MORE_FONTS", fonts)
        (path,) = confusion_figure(evaluation, tmp_path / f"{len(fonts)}.png")
        drawn[fonts] = path.read_bytes()
    assert len(set(drawn.values())) == 1, "no font but ours is asked for what it has"
    confusion_figure(replace(evaluation, labels=("\u02ef", "b", "c")), tmp_path / "more.png")  # without a warning


def test_characters_that_no_font_has_are_told_once(evaluation, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "MORE_FONTS", ())
    with pytest.warns(LabelSpaceWarning, match=r"no installed font has '.' and 2 other characters.*install") as told:
        confusion_figure(replace(evaluation, labels=("体育", "財", "c")), tmp_path / "figure")
    assert len(told) == 1
    assert told[0].filename == __file__
    assert nothing_is_cut(tmp_path / "figure.png")


def test_a_wide_character_has_twice_the_room_of_a_letter(evaluation, tmp_path, monkeypatch):
    monkeypatch.setattr(drawing, "MORE_FONTS", ())
    sizes = []
    for name in ("体" * 20, "b" * 40):
        with warnings.catch_warnings(action="ignore"):
            (path,) = confusion_figure(replace(evaluation, labels=(name, "b", "c")), tmp_path / "figure.png")
        sizes.append(png_size(path))
    assert sizes[0] == sizes[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_cut_off_at_the_edge(draw, tmp_path, kind):
    files = draw(kind, tmp_path / kind)
    assert [file.suffix for file in files] == [".png", ".svg"]
    assert nothing_is_cut(files[0])


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_drawing_needs_no_pyplot_and_so_touches_no_figure_of_the_caller(draw, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)
    draw(kind, tmp_path / kind)


@pytest.mark.parametrize("kind", KINDS)
def test_missing_matplotlib_gives_the_install_command(draw, tmp_path, monkeypatch, kind):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[plot\]'"):
        draw(kind, tmp_path / kind)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("kind", KINDS)
def test_an_unknown_extension_is_refused_before_anything_is_drawn(draw, tmp_path, kind):
    with pytest.raises(OutputError, match=r"written as \.png, \.svg, \.pdf.*no extension"):
        draw(kind, tmp_path / "figure.gif")


def test_matplotlib_is_imported_when_something_is_drawn_and_not_before():
    folder = Path(figures.__file__).parent
    for path in [*folder.glob("*.py"), *folder.parent.glob("*.py")]:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                assert "matplotlib" not in ast.unparse(node), path.name


def test_naming_the_figures_loads_no_torch():
    code = "import sys, labelspace.evaluate.figures as figures; print(len(figures.__all__), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(len(figures.__all__)), "False"]


def test_no_module_of_the_folder_shadows_a_function():
    modules = {path.stem for path in Path(figures.__file__).parent.glob("*.py")}
    assert modules & set(figures.__all__) == set()


@pytest.mark.parametrize("count", [2, 8, 9, 77])
def test_colours_differ_and_neighbours_differ_in_grey_as_well(count):
    colours = label_colours(count)
    assert len(set(colours)) == count
    grey = [grey_of(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))) for colour in colours]
    assert all(0.15 < value < 0.85 for value in grey), "told from black and from white"
    assert all(abs(one - other) > 0.1 for one, other in pairwise(grey))
