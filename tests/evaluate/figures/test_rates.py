"""Learning rates compared: each run is what `fit` would do, and the figure says what the points say."""

import math

import pytest

from labelspace import DescriptionClassifier, LabelSpace, load
from labelspace.corpus import sample_pool
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import RatePoint, evaluate, rate_points, rates_figure
from labelspace.evaluate.figures import rates as module
from pictures import nothing_is_cut, words_of

RATES = [1e-3, 1e-5]
POOL = ["a match of two teams", "the bank and the market", "war after the election", "a film", "prices rise"]


@pytest.fixture(scope="module")
def found(trained):
    """Points of two rates, on the documents of the pool itself."""
    return rate_points(trained, POOL, POOL[:3], ["sports", "money", "world"], rates=RATES, steps=6, seed=5)


# ---- measured


def test_each_point_is_what_a_fit_at_that_rate_gives(trained, encoder, space, found):
    assert [point.learning_rate for point in found] == sorted(RATES)
    for point in found:
        clf = DescriptionClassifier(space, encoder, learning_rate=point.learning_rate, max_steps=6, seed=5).fit(POOL)
        assert point.uniformity == clf.fit_result_.uniformity_after
        wanted = evaluate(clf, POOL[:3], ["sports", "money", "world"], baselines=False)
        assert point.score == wanted.metrics.macro_f1


def test_the_chosen_rate_is_the_one_of_lowest_uniformity(found):
    assert [point.chosen for point in found].count(True) == 1
    assert min(found, key=lambda point: point.uniformity).chosen


def test_the_model_itself_is_left_as_it_is(trained, texts, found):
    before = trained.decision_function(texts)
    rate_points(trained, POOL, texts[:1], ["sports"], rates=[1e-3], steps=2)
    assert (trained.decision_function(texts) == before).all()
    assert trained.callbacks == ()


def test_a_saved_model_begins_with_the_encoder_it_was_fitted_from(trained, found, tmp_path):
    again = load(trained.save(tmp_path / "model"))
    points = rate_points(again, POOL, POOL[:3], ["sports", "money", "world"], rates=RATES, steps=6, seed=5)
    assert points == found


def test_a_pool_drawn_before_is_taken_as_it_is(trained, found):
    pool = sample_pool(POOL, size=1000, seed=5)
    points = rate_points(trained, pool, POOL[:3], ["sports", "money", "world"], rates=RATES, steps=6, seed=5)
    assert points == found


def test_a_rate_at_which_the_loss_is_lost_is_a_point_without_a_score(trained, monkeypatch):
    from labelspace.errors import TrainingError

    fit = DescriptionClassifier.fit

    def sometimes(self, X=None, y=None):
        if self.learning_rate > 1e-4:
            raise TrainingError("the loss is nan")
        return fit(self, X, y)

    monkeypatch.setattr(DescriptionClassifier, "fit", sometimes)
    low, high = rate_points(trained, POOL, POOL[:1], ["sports"], rates=RATES, steps=2)
    assert low.chosen
    assert (high.uniformity, high.chosen) == (math.inf, False)
    assert math.isnan(high.score)


def test_ctrl_c_ends_it_all(trained, monkeypatch):
    from labelspace.training.description import objective

    monkeypatch.setattr(objective, "sweep_gradient", lambda *args, **more: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        rate_points(trained, POOL, POOL[:1], ["sports"], rates=RATES, steps=2)


def test_progress_is_told_in_plain_lines_where_there_is_no_terminal(trained, capsys):
    rate_points(trained, POOL, POOL[:1], ["sports"], rates=RATES, steps=2, show_progress=True)
    said = capsys.readouterr()
    assert said.out == ""
    (line,) = [line for line in said.err.splitlines() if "retraining: 4 of 4" in line]
    assert "rate 1e-3" in line


def test_runs_that_stop_early_count_whole(trained, capsys):
    soon = DescriptionClassifier(**trained.get_params(deep=False)).set_params(
        patience=1, check_every=1, tolerance=100.0
    )
    rate_points(soon.fit(), POOL, POOL[:1], ["sports"], rates=RATES, steps=50, show_progress=True)
    (line,) = [line for line in capsys.readouterr().err.splitlines() if "retraining: 100 of 100" in line]
    assert "rate 1e-3" in line


def test_what_cannot_be_compared_is_refused_before_anything_is_trained(trained, untrained, encoder, monkeypatch):
    bare = DescriptionClassifier(LabelSpace.from_names(["sports", "money"]), encoder, max_steps=1, learning_rate=1e-3)
    bare.fit()
    monkeypatch.setattr(DescriptionClassifier, "fit", None)
    with pytest.raises(ConfigError, match=r"trained on descriptions\. Got ZeroShotClassifier.*fit a Desc"):
        rate_points(untrained, POOL, POOL[:1], ["sports"])
    with pytest.raises(ConfigError, match="Got 2 labels without any"):
        rate_points(bare, POOL, POOL[:1], ["sports"])
    with pytest.raises(InputError, match="y is None"):
        rate_points(trained, POOL, POOL[:1], None)
    with pytest.raises(InputError, match="no label for any of the 1 documents"):
        rate_points(trained, POOL, POOL[:1], [None])
    with pytest.raises(InputError, match="politics"):
        rate_points(trained, POOL, POOL[:1], ["politics"])
    with pytest.raises(InputError, match="pool of two different documents"):
        rate_points(trained, ["a", "a"], POOL[:1], ["sports"])
    with pytest.raises(InputError, match="pool of two different documents"):
        rate_points(trained, None, POOL[:1], ["sports"])
    with pytest.raises(ConfigError, match="rates must be"):
        rate_points(trained, POOL, POOL[:1], ["sports"], rates=[])
    with pytest.raises(ConfigError, match="max_steps must be"):
        rate_points(trained, POOL, POOL[:1], ["sports"], steps=0)


# ---- drawn


def test_the_figure_names_rates_the_chosen_one_and_pearsons_r(points, tmp_path, named):
    (path,) = rates_figure(points, tmp_path / "rates.svg")
    words = " ".join(words_of(path))
    for word in ("macro-F1", "uniformity", "95 % interval", "1 without a finite loss left out"):
        assert word in words
    assert named == ["1e-5 (most uniform)", "1e-6", "5e-5", "1e-4"], "a point that is nowhere has no name"
    finite = points[:4]
    across, up = [point.uniformity for point in finite], [point.score for point in finite]
    mean = [sum(values) / 4 for values in (across, up)]
    over = sum((x - mean[0]) * (y - mean[1]) for x, y in zip(across, up, strict=True))
    under = math.sqrt(sum((x - mean[0]) ** 2 for x in across) * sum((y - mean[1]) ** 2 for y in up))
    assert f"Pearson's r = {over / under:.2f}, 4 learning rates" in words


@pytest.mark.slow
def test_pairs_of_encoder_and_data_set_are_rows_and_columns(points, tmp_path):
    panels = {(encoder, data): points for encoder in ("MiniLM", "gte") for data in ("news", "bank")}
    del panels["gte", "bank"]
    files = rates_figure(panels, tmp_path / "rates")
    assert nothing_is_cut(files[0])
    words = words_of(files[1])
    assert [words.count(word) for word in ("MiniLM", "gte", "news", "bank")] == [1, 1, 1, 1]
    assert " ".join(words).count("Pearson's r") == 3


def test_one_panel_of_a_pair_has_the_pair_in_its_title(points, tmp_path):
    (path,) = rates_figure({("MiniLM", "news"): points}, tmp_path / "rates.svg")
    assert "MiniLM, news" in " ".join(words_of(path))


@pytest.mark.slow
def test_panels_by_name_fill_a_page(points, tmp_path):
    files = rates_figure({f"panel {number}": points for number in range(6)}, tmp_path / "rates")
    assert nothing_is_cut(files[0])
    assert {f"panel {number}" for number in range(6)} <= set(words_of(files[1]))


@pytest.mark.slow
@pytest.mark.parametrize(
    "few",
    [
        [RatePoint(1e-5, -2.0, 0.5, True)],
        [RatePoint(1e-5, -2.0, 0.5, True), RatePoint(1e-4, -1.0, 0.4, False)],
        [RatePoint(rate, -2.0, 0.5, False) for rate in RATES for _ in range(2)],
        [RatePoint(rate, -rate, 0.5, False) for rate in (1e-5, 1e-4, 1e-3)],
    ],
    ids=["one", "two", "all on one spot", "all of one score"],
)
def test_too_few_points_have_no_correlation_and_are_drawn_all_the_same(few, tmp_path):
    files = rates_figure(few, tmp_path / "rates")
    assert "no r: too few points" in " ".join(words_of(files[1]))


def test_points_that_cannot_be_drawn_are_refused(points, tmp_path):
    with pytest.raises(InputError, match=r"no point has a finite uniformity.*Got 1; try lower rates"):
        rates_figure(points[-1:], tmp_path / "rates")
    with pytest.raises(InputError, match="no point of 'news'"):
        rates_figure({"news": []}, tmp_path / "rates")
    with pytest.raises(InputError, match="no panel to draw"):
        rates_figure({}, tmp_path / "rates")


def test_the_line_is_that_of_the_benchmark_and_not_a_second_one():
    from labelspace.evaluate.bench.statistics import regression

    assert module.regression is regression
