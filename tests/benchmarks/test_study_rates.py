"""The figure of learning rates shows its points."""

import math
from itertools import pairwise
from pathlib import Path

import pytest

from pictures import greys, nothing_is_cut, words_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def figure(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    from study import rates_figure

    return rates_figure


@pytest.fixture
def points(figure):
    """Points of four learning rates."""
    point = figure.RatePoint
    return (
        point(1e-6, -2.0, 0.60, False),
        point(1e-5, -2.9, 0.81, True),
        point(5e-5, -2.5, 0.75, False),
        point(1e-4, -1.2, 0.55, False),
    )


def test_a_panel_shows_pearsons_r(figure, points, tmp_path):
    (path,) = figure.rates_figure({("MiniLM", "news"): points}, tmp_path / "rates.svg")
    words = " ".join(words_of(path))
    for word in ("macro-F1", "uniformity", "MiniLM", "news", "1e-5"):
        assert word in words
    across, up = [point.uniformity for point in points], [point.score for point in points]
    mean = [sum(values) / 4 for values in (across, up)]
    over = sum((x - mean[0]) * (y - mean[1]) for x, y in zip(across, up, strict=True))
    under = math.sqrt(sum((x - mean[0]) ** 2 for x in across) * sum((y - mean[1]) ** 2 for y in up))
    assert f"Pearson's r = {over / under:.2f}" in words


@pytest.mark.slow
def test_encoders_are_rows_and_data_sets_columns(figure, points, tmp_path):
    panels = {(encoder, data): points for encoder in ("MiniLM", "gte") for data in ("news", "bank")}
    del panels["gte", "bank"]
    files = figure.rates_figure(panels, tmp_path / "rates")
    assert nothing_is_cut(files[0])
    words = words_of(files[1])
    assert [words.count(word) for word in ("MiniLM", "gte", "news", "bank")] == [1, 1, 1, 1]
    assert " ".join(words).count("Pearson's r") == 3


@pytest.mark.slow
@pytest.mark.parametrize(
    "few",
    [
        [(1e-5, -2.0, 0.5, True)],
        [(1e-5, -2.0, 0.5, True), (1e-4, -1.0, 0.4, False)],
        [(rate, -2.0, 0.5, False) for rate in (1e-3, 1e-5) for _ in range(2)],
        [(rate, -rate, 0.5, False) for rate in (1e-5, 1e-4, 1e-3)],
    ],
    ids=["one", "two", "all on one spot", "all of one score"],
)
def test_too_few_points_are_drawn_without_a_correlation(figure, few, tmp_path):
    files = figure.rates_figure({("one", "news"): [figure.RatePoint(*point) for point in few]}, tmp_path / "rates")
    assert "no r: too few points" in " ".join(words_of(files[1]))


def test_progress_colours_get_steadily_lighter_and_stay_visible_on_white(figure):
    colours = figure.progress_colours()
    grey = greys([colours(step / 20) for step in range(21)])
    assert all(one < other for one, other in pairwise(grey))
    assert grey[-1] < 0.85
