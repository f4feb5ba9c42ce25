"""The way of a space through training: the model's own training, measured by the formulas of geometry."""

import math

import pytest
import torch

from labelspace import DescriptionClassifier, load
from labelspace.errors import ConfigError, InputError
from labelspace.evaluate import Trajectory, TrajectoryPoint, trajectory, trajectory_figure
from labelspace.evaluate.figures.trajectories import _named_first
from labelspace.geometry import alignment, sample_pairs, uniformity
from pictures import words_of

POOL = ["a match of two teams", "the bank and the market", "war after the election", "a film", "prices rise"]


@pytest.fixture(scope="module")
def found(trained):
    """The way of the trained model, which makes 12 steps."""
    return trajectory(trained, POOL, every=5)


def by_hand(encoder, space, texts) -> tuple[float, float]:
    """Alignment and uniformity of an encoder as it is."""
    descriptions, verbalizers = [], []
    for own, verbalizer in zip(space.descriptions, space.verbalizers, strict=True):
        descriptions += own
        verbalizers += [verbalizer] * len(own)
    first = torch.from_numpy(encoder.encode(descriptions))
    second = torch.from_numpy(encoder.encode(verbalizers, role="label"))
    vectors = torch.from_numpy(encoder.encode(texts))
    return alignment(first, second).item(), uniformity(vectors, sample_pairs(len(texts), 1000, 0)).item()


# ---- measured


def test_it_begins_with_the_untrained_encoder_and_the_best_step_is_the_trained_one(trained, encoder, space, found):
    first = found.points[0]
    assert first.step == 0
    assert first[1:] == pytest.approx(by_hand(encoder, space, POOL), abs=1e-5)
    best = next(point for point in found.points if point.step == found.best_step)
    assert found.best_step == trained.fit_result_.curve.best_step
    assert best[1:] == pytest.approx(by_hand(trained.encoder_, space, POOL), abs=1e-5)
    assert found.learning_rate == trained.learning_rate


def test_it_is_measured_every_so_many_steps_and_at_the_end(found):
    assert {0, 5, 10, 12} <= {point.step for point in found.points}
    assert [point.step for point in found.points] == sorted({point.step for point in found.points})


def test_measuring_moves_nothing(trained, found):
    often = trajectory(trained, POOL, every=1)
    assert len(often.points) == 13
    shared = {point.step: point for point in often.points}
    assert all(shared[point.step] == point for point in found.points)


def test_it_is_measured_without_the_dropout_that_it_trains_with(encoder, space):
    clf = DescriptionClassifier(space, encoder, max_steps=6, learning_rate=1e-3, dropout=True, seed=2).fit()
    before = torch.get_rng_state()
    often, seldom = (trajectory(clf, POOL, every=every).points for every in (1, 2))
    assert {point.step for point in seldom} >= {2, 4}
    assert set(seldom) <= set(often)
    assert torch.equal(torch.get_rng_state(), before), "no mask was drawn from the caller's generator"


def test_a_saved_model_goes_the_same_way(trained, found, tmp_path):
    assert trajectory(load(trained.save(tmp_path / "model")), POOL, every=5) == found


def test_the_model_itself_is_left_as_it_is(trained, texts):
    before = trained.decision_function(texts)
    trajectory(trained, POOL, steps=2)
    assert (trained.decision_function(texts) == before).all()


@pytest.mark.slow
def test_about_forty_measurements_are_made_where_nobody_says_how_often(trained):
    assert len(trajectory(trained, POOL, steps=3).points) == 4
    assert len(trajectory(trained, POOL, steps=100).points) <= 42


def test_ctrl_c_ends_it(trained, monkeypatch):
    from labelspace.training.description import objective

    monkeypatch.setattr(objective, "sweep_gradient", lambda *args, **more: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        trajectory(trained, POOL)


def test_what_cannot_be_measured_is_refused(trained, untrained):
    with pytest.raises(ConfigError, match=r"a trajectory needs a model that was trained.*Got ZeroShotClassifier"):
        trajectory(untrained, POOL)
    with pytest.raises(InputError, match="a trajectory needs a pool of two different documents"):
        trajectory(trained, ["one"])
    with pytest.raises(ConfigError, match="every must be"):
        trajectory(trained, POOL, every=0)
    with pytest.raises(ConfigError, match="max_steps must be"):
        trajectory(trained, POOL, steps=0)
    with pytest.raises(ConfigError, match="seed must be"):
        trajectory(trained, POOL, seed="a")


# ---- drawn


def test_the_figure_names_both_numbers_the_rate_and_some_steps(way, tmp_path, named):
    (path,) = trajectory_figure(way, tmp_path / "way.svg")
    words = " ".join(words_of(path))
    for word in ("alignment of descriptions", "uniformity of documents", "learning rate 3e-5"):
        assert word in words
    assert named[:3] == ["best: step 30", "untrained", "step 40"]
    assert len(named) > 5


@pytest.mark.parametrize("count", [1, 2])
def test_short_ways_can_be_drawn(way, tmp_path, named, count):
    short = Trajectory(points=way.points[:count], best_step=0, learning_rate=1e-5, pool="news.csv")
    trajectory_figure(short, tmp_path / "way.svg")
    assert named[0] == "best: untrained"


def test_the_best_the_first_and_the_last_point_are_named_before_others():
    import numpy as np

    order = _named_first(np.arange(0, 100, 5), 35)
    assert order[:3] == [7, 0, 19]
    assert sorted(order) == list(range(20))


def test_points_that_cannot_be_drawn_are_refused(tmp_path):
    for points in ((), (TrajectoryPoint(0, math.nan, -1.0),)):
        with pytest.raises(InputError, match=f"finite points. Got {len(points)}"):
            trajectory_figure(
                Trajectory(points=points, best_step=0, learning_rate=1e-5, pool="news.csv"), tmp_path / "way.svg"
            )
