"""Figures of the benchmark are complete and repeatable, show published models, and are readable in greyscale."""

import re
import struct
import sys
from itertools import combinations
from pathlib import Path

import pytest

from bench.fakes import record
from labelspace.bench import figures, scatter
from labelspace.bench.cards import BTZSC
from labelspace.bench.models import FAMILIES_OF_MODELS
from labelspace.bench.published import MODEL_FAMILIES, published_models
from labelspace.bench.similarity import similarities
from labelspace.errors import ConfigError, InputError, MissingDependencyError, OutputError
from labelspace.evaluate.drawing import drawing
from labelspace.evaluate.palette import grey_of

TASKS = ("agnews", "imdb", "massive")


@pytest.fixture(scope="module")
def records():
    """Three models on three data sets, one with its NLI AUROC."""
    models = {"embedding:one": (22e6, 2.0), "embedding:two": (110e6, 9.0), "nli:three": (22e6, 40.0)}
    found = [
        record(model, task, 0.3 + 0.1 * number, family=model.partition(":")[0], parameters=int(size), seconds=seconds)
        for number, (model, (size, seconds)) in enumerate(models.items())
        for task in TASKS
    ]
    nli = {"metrics": {"auroc": 0.8}, "by_source": {"mnli_matched_dev": 0.8, "mine": 0.1}}
    return [*found, record("nli:three", "nli", benchmark="nli", family="nli", **nli)]


@pytest.fixture(scope="module")
def found():
    return similarities({"games": ["a match a goal"], "votes": ["a vote"], "mail": ["a letter a goal"]})


def words_of(svg: Path) -> str:
    """The texts of an SVG, which matplotlib leaves as comments beside the drawn glyphs."""
    return "\n".join(re.findall(r"<!-- (.*?) -->", svg.read_text(), flags=re.DOTALL))


def draw(kind, path, records, found):
    if kind == "similarity":
        return figures.similarity_figure(found, path)
    if kind == "nli_size":
        return figures.nli_size_figure(path, records)
    return getattr(figures, f"{kind}_figure")(path, records)


KINDS = ("similarity", "nli_size", "scaling", "speed", "nli")


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_figure_is_written_in_both_formats_with_the_same_bytes_each_time(kind, records, found, tmp_path):
    first = draw(kind, tmp_path / "first", records, found)
    second = draw(kind, tmp_path / "second", records, found)
    assert [path.name for path in first] == ["first.png", "first.svg"]
    for one, other in zip(first, second, strict=True):
        assert one.read_bytes() == other.read_bytes()
    width, height = struct.unpack(">II", first[0].read_bytes()[16:24])
    assert min(width, height) > 400


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_axis_numbers_are_plain_text_and_not_formulas(kind, records, found, tmp_path):
    words = words_of(draw(kind, tmp_path / "figure.svg", records, found)[0])
    assert "$" not in words
    assert "mathdefault" not in words


@pytest.mark.slow
def test_measured_models_are_named_and_differ_from_published_ones(records, tmp_path):
    words = words_of(figures.scaling_figure(tmp_path / "scaling.svg", records)[0])
    for word in ("one", "two", "three", "published", "measured", "mean over 3 of 22 data sets", "100M", "1B"):
        assert word in words
    alone = words_of(figures.scaling_figure(tmp_path / "alone.svg")[0])
    assert "measured" not in alone
    assert "mean over 22 of 22 data sets" in alone


@pytest.mark.parametrize("models", [1, 6])
def test_names_of_models_that_coincide_cover_neither_each_other_nor_the_edge(models):
    points = [scatter.Point(f"nli:the-same-place-{number}", "nli", 1e8, 0.5, True) for number in range(models)]
    points += [scatter.Point("embedding:in-a-corner", "embedding", 1e6, 0.0, True)]
    with drawing("a test") as new_figure:
        figure = new_figure(6.8, 4.4)
        axes = figure.add_subplot()
        scatter.scatter(axes, points)
        scatter.finish(figure, axes, "macro_f1_predicted", ["agnews"], points)
        figure.draw_without_rendering()
        names = [text for text in axes.texts if text.get_text()]
        boxes = [name.get_window_extent() for name in names]
        inside = axes.get_window_extent()
        assert len(names) == len(points)
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))
        for box in boxes:
            assert inside.x0 <= box.x0 < box.x1 <= inside.x1
            assert inside.y0 <= box.y0 < box.y1 <= inside.y1


def test_the_speed_figure_names_the_machine_and_shows_measured_models_only(records, tmp_path):
    words = words_of(figures.speed_figure(tmp_path / "speed.svg", records)[0])
    assert "texts per second, on a processor" in words
    assert "published" not in words
    other = {"hardware": {"processor": "another", "accelerator": None}}
    mixed = [*records, record("embedding:far", provenance=other)]
    assert "not comparable" in words_of(figures.speed_figure(tmp_path / "mixed.svg", mixed)[0])
    with pytest.raises(InputError, match="no measured speed"):
        figures.speed_figure(tmp_path / "none.svg", [])


def test_speed_and_score_in_a_figure_are_over_the_same_data_sets(tmp_path, monkeypatch):
    """A set that one model lacks is not in the means, so it is not in the speeds either."""
    runs = [record("embedding:one", texts=100, seconds=2.0), record("nli:two", texts=100, seconds=50.0)]
    drawn = []
    monkeypatch.setattr(figures, "scatter", lambda axes, points: drawn.extend(points))
    figures.speed_figure(tmp_path / "speed.svg", [*runs, record("embedding:one", "imdb", texts=100, seconds=1000.0)])
    assert [(point.name, point.x) for point in drawn] == [("embedding:one", 50.0), ("nli:two", 2.0)]


@pytest.mark.slow
def test_a_custom_model_is_in_points_and_legend(tmp_path):
    pairs = {"metrics": {"auroc": 0.8}, "by_source": {"mnli_matched_dev": 0.8}}
    runs = [record("harness:mine", family="custom"), record("harness:mine", "nli", benchmark="nli", **pairs)]
    for kind in ("scaling", "speed", "nli"):
        words = words_of(draw(kind, tmp_path / f"{kind}.svg", runs, None)[0]).split("\n")
        assert "mine" in words
        assert "other" in words


def test_a_single_model_can_be_drawn(tmp_path):
    words = words_of(figures.speed_figure(tmp_path / "speed.svg", [record("embedding:alone")])[0])
    assert "alone" in words
    assert "50" in words


def test_nli_means_are_over_the_sources_that_all_have(records, tmp_path):
    words = words_of(figures.nli_figure(tmp_path / "nli.svg", records)[0])
    assert "mean over 1 of 8 sources" in words
    assert "three" in words
    assert "one" not in words.split("\n"), "its AUROC was not measured"
    published = words_of(figures.nli_figure(tmp_path / "published.svg")[0])
    assert "mean over 8 of 8 sources" in published
    taus = dict(zip(MODEL_FAMILIES, map(float, re.findall(r"τ (-?[\d.]+)", published)), strict=True))
    assert min(taus["nli"], taus["llm"]) > 0.5, "as section 5.1 says"
    assert taus["embedding"] < taus["nli"]


def test_the_heat_map_names_every_data_set_and_shows_every_number(found, tmp_path):
    words = words_of(figures.similarity_figure(found, tmp_path / "map.svg")[0]).split("\n")
    assert all(words.count(name) == 2 for name in found.names)
    assert words.count("1") >= 3


@pytest.mark.slow
def test_all_figures_at_once_go_into_a_folder_that_is_made(records, tmp_path):
    out = tmp_path / "deep" / "figures"
    texts = {name: (text for text in ["a b", "b c"]) for name in TASKS}
    written = figures.bench_figures(records, out, data_sets=texts)
    names = {path.name for path in written}
    assert names == {
        f"{stem}.{ending}"
        for stem in ("similarity", "nli_by_size", "scaling", "speed", "nli_auroc")
        for ending in ("png", "svg")
    }
    assert {path.name for path in out.iterdir()} == names
    with pytest.raises(ConfigError, match="metric must be"):
        figures.bench_figures([], out, metric="auroc")
    published = {path.stem for path in figures.bench_figures([], out)}
    assert published == {"nli_by_size", "scaling", "nli_auroc"}


def test_models_that_share_no_data_set_are_not_drawn_beside_one_another(tmp_path):
    apart = [record("embedding:one", "imdb"), record("embedding:two", "agnews")]
    for kind in ("scaling", "speed", "nli"):
        with pytest.raises(InputError, match=r"share no data set \(embedding:one, embedding:two\)"):
            draw(kind, tmp_path / "figure.png", apart, None)
    assert list(tmp_path.iterdir()) == []


def test_families_differ_in_colour_in_grey_and_in_marker():
    greys = {
        family: grey_of(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))
        for family, colour in scatter.COLOURS.items()
    }
    assert len(set(scatter.COLOURS.values())) == len(set(scatter.SIGNS.values())) == len(FAMILIES_OF_MODELS)
    assert all(0.1 < value < 0.85 for value in greys.values())
    assert all(scatter.SIGNS[one] != scatter.SIGNS[other] for one, other in combinations(FAMILIES_OF_MODELS, 2))


def test_measured_cross_encoders_stand_beside_the_authors_over_the_sets_they_have(records, tmp_path):
    alone = words_of(figures.nli_size_figure(tmp_path / "alone.svg")[0])
    assert "macro-F1 over predicted labels too on 22 of 22 data sets" in alone
    words = words_of(figures.nli_size_figure(tmp_path / "beside.svg", records)[0])
    assert "three" in words
    assert "large, three-way (published)" in words
    assert "macro-F1 over predicted labels too on 3 of 22 data sets" in words
    assert "two" not in words  # an embedding model


def test_the_authors_own_cross_encoders_are_published_and_in_one_group_each():
    names = [name for group in figures.CUSTOM_NLI.values() for name in group]
    assert len(set(names)) == len(names) == 9
    models = published_models()
    assert {models[name].family for name in names} == {"nli"}
    own = {name for name, model in models.items() if model.family == "nli" and "-nli" in name}
    assert own == set(names), "bart-large-mnli and nli-roberta-base are not theirs"


def test_missing_matplotlib_and_an_unwritable_folder_are_clear_errors(records, found, tmp_path, monkeypatch):
    with pytest.raises(OutputError, match="no extension"):
        figures.scaling_figure(tmp_path / "x.gif", records)
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot be made"):
        figures.bench_figures(records, tmp_path / "file" / "deeper")
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'labelspace\[plot\]'"):
        figures.scaling_figure(tmp_path / "x.png", records)
    assert len(BTZSC) == 22
