"""Accuracy-rejection curves are drawn with their areas, chance and the oracle, and stay small and legible."""

import numpy as np
import pytest

from labelspace.errors import InputError
from labelspace.evaluate import rejection_curve, rejection_figure
from labelspace.evaluate.figures.rejection import GREY, STROKES
from labelspace.evaluate.palette import label_colours
from pictures import words_of


@pytest.fixture
def curves():
    """Curves of two uncertainties of the same 300 answers; the second is less informative."""
    generator = np.random.default_rng(0)
    unsure = generator.random(300)
    right = generator.random(300) > 0.5 * unsure
    return {
        "sigma": rejection_curve(unsure, right),
        "entropy": rejection_curve(unsure + generator.normal(size=300), right),
    }


@pytest.fixture
def drawn(monkeypatch):
    """Return the drawn lines by label."""
    from matplotlib.axes import Axes

    lines = {}
    plot, level = Axes.plot, Axes.axhline

    def keep_line(self, x, y, **more):
        lines[more["label"]] = (np.asarray(x), np.asarray(y), more)
        return plot(self, x, y, **more)

    def keep_level(self, y, **more):
        lines[more["label"]] = (None, y, more)
        return level(self, y, **more)

    monkeypatch.setattr(Axes, "plot", keep_line)
    monkeypatch.setattr(Axes, "axhline", keep_level)
    return lines


def test_each_line_is_its_curve_and_has_its_area_in_the_legend(curves, drawn, tmp_path):
    (path,) = rejection_figure(curves, tmp_path / "rejection.svg")
    words = " ".join(words_of(path))
    for name, curve in curves.items():
        across, up, _ = drawn[f"{name}, area {curve.area:.3f}"]
        assert across == pytest.approx(curve.rejected)
        assert up == pytest.approx(curve.accuracy)
        assert f"{name}, area {curve.area:.3f}" in words
    sigma = curves["sigma"]
    assert drawn[f"random, area {sigma.area_random:.3f}"][1] == sigma.area_random
    across, up, _ = drawn[f"best possible, area {sigma.area_best:.3f}"]
    assert up[0] == pytest.approx(sigma.area_random)
    assert up[across > 1 - sigma.area_random].tolist() == pytest.approx([1.0] * (across > 1 - sigma.area_random).sum())
    assert len(drawn) == 4, "chance and the oracle are there once"
    for word in ("300 documents", "documents rejected", "accuracy of what is left"):
        assert word in words


def test_the_oracle_can_be_left_out(curves, drawn, tmp_path):
    rejection_figure(curves, tmp_path / "rejection.svg", best=False)
    assert not [label for label in drawn if label.startswith("best")]


def test_models_of_different_accuracy_have_separate_chance_lines(drawn, tmp_path):
    unsure = [0.1, 0.2, 0.3, 0.4]
    good, bad = rejection_curve(unsure, [1, 1, 1, 0]), rejection_curve(unsure, [1, 0, 1, 0])
    rejection_figure({"good": good, "bad": bad}, tmp_path / "rejection.svg")
    assert {"random (good), area 0.750", "random (bad), area 0.500"} < set(drawn)


def test_lines_differ_without_colour_and_bounds_are_grey(curves, drawn, tmp_path):
    rejection_figure(dict.fromkeys("abcdef", curves["sigma"]), tmp_path / "rejection.svg")
    looks = [more for _, _, more in drawn.values()]
    lines, bounds = looks[:6], looks[6:]
    assert [look["color"] for look in lines] == label_colours(6)
    assert len({str(look["linestyle"]) for look in lines}) == len(STROKES) == 6
    assert [look["color"] for look in bounds] == [GREY, GREY]
    assert str(bounds[0]["linestyle"]) != str(bounds[1].get("linestyle"))


def test_a_curve_of_many_documents_is_drawn_with_few_points(drawn, tmp_path):
    generator = np.random.default_rng(0)
    curve = rejection_curve(generator.random(100_000), generator.random(100_000) > 0.2)
    (path,) = rejection_figure({"noise": curve}, tmp_path / "rejection.svg")
    across, _, _ = drawn[f"noise, area {curve.area:.3f}"]
    assert len(across) <= 400
    assert (across[0], across[-1]) == (0, curve.rejected[-1])
    assert path.stat().st_size < 200_000


def test_the_last_few_documents_do_not_set_the_range(monkeypatch, tmp_path):
    from matplotlib.axes import Axes

    limits = []
    keep = Axes.set_ylim

    def set_limits(self, *given, **more):
        limits.extend([given] if len(given) == 2 else [])  # matplotlib's own calls give a pair
        return keep(self, *given, **more)

    monkeypatch.setattr(Axes, "set_ylim", set_limits)
    right = np.ones(1000, dtype=bool)
    right[[0, 500, 600, 700]] = False  # the surest answer of all is wrong
    rejection_figure({"sigma": rejection_curve(np.arange(1000), right)}, tmp_path / "many.png")
    rejection_figure({"sigma": rejection_curve(np.arange(10), right[:10])}, tmp_path / "few.png")
    assert limits[0][0] > 0.9
    assert limits[1][0] < 0


@pytest.mark.slow
@pytest.mark.parametrize("right", [[1, 1, 1], [0, 0, 0], [1]])
def test_extremes_can_be_drawn(right, tmp_path):
    rejection_figure({"_hidden $x$": rejection_curve(range(len(right)), right)}, tmp_path / "rejection")


def test_no_curve_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match="there is no curve to draw"):
        rejection_figure({}, tmp_path / "rejection.png")
    assert list(tmp_path.iterdir()) == []
