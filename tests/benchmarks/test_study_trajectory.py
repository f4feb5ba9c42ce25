"""A trajectory repeats the model's training, and measures it by the formulas of geometry."""

from pathlib import Path

import pytest
import torch

from labelspace import DescriptionClassifier, Encoder, LabelSpace, load
from labelspace.geometry import alignment, sample_pairs, uniformity
from pictures import words_of

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
SPACE = {
    "name": "desk",
    "labels": {
        "sports": ["Results of matches and games.", "News of players."],
        "money": ["Banks, markets and prices."],
        "world": ["War and peace.", "A government falls after the election."],
    },
}
POOL = ["a match of two teams", "the bank and the market", "war after the election", "a film", "prices rise"]


@pytest.fixture(scope="module", autouse=True)
def module():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        from study import trajectory

        yield trajectory


@pytest.fixture(scope="module")
def trajectory(module):
    return module.trajectory


@pytest.fixture(scope="module")
def space():
    return LabelSpace.from_dict(SPACE)


@pytest.fixture(scope="module")
def encoder(tiny_encoder_folder):
    return Encoder(tiny_encoder_folder, dtype="float32", device="cpu")


@pytest.fixture(scope="module")
def trained(encoder, space):
    return DescriptionClassifier(space, encoder, max_steps=12, learning_rate=1e-3, seed=3).fit()


@pytest.fixture(scope="module")
def found(trained, trajectory):
    """The trajectory of the trained model, which makes 12 steps."""
    return trajectory(trained, POOL, every=5)


@pytest.fixture
def way(module):
    """A trajectory whose best step is not its last."""
    steps = range(0, 41, 5)
    points = [module.TrajectoryPoint(step, 1.2 - 0.01 * step, -2.0 - 0.02 * min(step, 40 - step)) for step in steps]
    return module.Trajectory(points=tuple(points), best_step=30, learning_rate=3e-5, pool="news.csv")


def by_hand(encoder, space, texts) -> tuple[float, float]:
    """Compute alignment and uniformity of an encoder."""
    descriptions, verbalizers = [], []
    for own, verbalizer in zip(space.descriptions, space.verbalizers, strict=True):
        descriptions += own
        verbalizers += [verbalizer] * len(own)
    first = torch.from_numpy(encoder.encode(descriptions))
    second = torch.from_numpy(encoder.encode(verbalizers, role="label"))
    vectors = torch.from_numpy(encoder.encode(texts))
    return alignment(first, second).item(), uniformity(vectors, sample_pairs(len(texts), 1000, 0)).item()


# ---- measured


def test_it_starts_at_the_untrained_encoder_and_its_best_step_is_the_trained_model(trained, encoder, space, found):
    first = found.points[0]
    assert first.step == 0
    assert first[1:] == pytest.approx(by_hand(encoder, space, POOL), abs=1e-5)
    best = next(point for point in found.points if point.step == found.best_step)
    assert found.best_step == trained.fit_result_.curve.best_step
    assert best[1:] == pytest.approx(by_hand(trained.encoder_, space, POOL), abs=1e-5)
    assert found.learning_rate == trained.learning_rate


def test_it_is_measured_at_regular_steps_and_at_the_end(found):
    assert {0, 5, 10, 12} <= {point.step for point in found.points}
    assert [point.step for point in found.points] == sorted({point.step for point in found.points})


def test_measuring_does_not_change_the_training(trained, found, trajectory):
    often = trajectory(trained, POOL, every=1)
    assert len(often.points) == 13
    shared = {point.step: point for point in often.points}
    assert all(shared[point.step] == point for point in found.points)


def test_it_is_measured_without_dropout(encoder, space, trajectory):
    clf = DescriptionClassifier(
        space, encoder, max_steps=6, learning_rate=1e-3, seed=2, config={"encoder_dropout": True}
    ).fit()
    before = torch.get_rng_state()
    often, seldom = (trajectory(clf, POOL, every=every).points for every in (1, 2))
    assert {point.step for point in seldom} >= {2, 4}
    assert set(seldom) <= set(often)
    assert torch.equal(torch.get_rng_state(), before), "no mask was drawn from the caller's generator"


def test_a_saved_model_has_the_same_trajectory(trained, found, tmp_path, trajectory):
    assert trajectory(load(trained.save(tmp_path / "model")), POOL, every=5) == found


def test_the_model_itself_is_unchanged(trained, trajectory):
    before = trained.decision_function(POOL)
    trajectory(trained, POOL)
    assert (trained.decision_function(POOL) == before).all()


@pytest.mark.slow
@pytest.mark.parametrize(("steps", "points"), [(3, range(4, 5)), (100, range(35, 43))])
def test_about_forty_measurements_are_made_by_default(encoder, space, trajectory, steps, points):
    clf = DescriptionClassifier(space, encoder, max_steps=steps, learning_rate=1e-3).fit()
    assert len(trajectory(clf, POOL).points) in points


def test_ctrl_c_ends_it(trained, monkeypatch, trajectory):
    from labelspace.training.description import objective

    monkeypatch.setattr(objective, "sweep_gradient", lambda *args, **more: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        trajectory(trained, POOL)


# ---- drawn


def test_the_figure_names_both_numbers_the_rate_and_some_steps(module, way, tmp_path):
    (path,) = module.trajectory_figure(way, tmp_path / "way.svg")
    words = words_of(path)
    for word in ("alignment of descriptions", "uniformity of documents", "learning rate 3e-5"):
        assert word in " ".join(words)
    assert {"best: step 30", "untrained", "step 40"} <= set(words)


@pytest.mark.parametrize("count", [1, 2])
def test_short_trajectories_can_be_drawn(module, way, tmp_path, count):
    short = module.Trajectory(points=way.points[:count], best_step=0, learning_rate=1e-5, pool="news.csv")
    (path,) = module.trajectory_figure(short, tmp_path / "way.svg")
    assert "best: untrained" in words_of(path)


def test_the_best_the_first_and_the_last_point_are_named_before_others(module):
    import numpy as np

    order = module._named_first(np.arange(0, 100, 5), 35)
    assert order[:3] == [7, 0, 19]
    assert sorted(order) == list(range(20))
