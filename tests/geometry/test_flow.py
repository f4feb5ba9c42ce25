"""A flow is invertible, makes vectors likelier than they were, and leaves the global random state as it found it."""

import math
import sys
from typing import Any

import numpy as np
import pytest
import torch

from labelspace.errors import (
    ConfigError,
    InputError,
    LabelSpaceWarning,
    MissingDependencyError,
    ShapeError,
    TrainingError,
)
from labelspace.geometry import Flow, fit_flow
from losses.checked import geometry as checked

pytest.importorskip("normflows")

# A few epochs on a few rows may gain nothing on those held out; whether they do hangs on rounding.
pytestmark = pytest.mark.filterwarnings("ignore:the flow was kept as it was before training")


def banana(rows: int = 300, width: int = 4, seed: int = 0) -> np.ndarray:
    """A cloud that no linear map makes normal: the second coordinate follows the square of the first."""
    cloud = np.random.default_rng(seed).normal(size=(rows, width))
    cloud[:, 1] = 0.2 * cloud[:, 1] + cloud[:, 0] ** 2
    return 0.05 * cloud + 0.3


def likelihood_by_hand(flow: Flow, rows: np.ndarray) -> float:
    """Mean negative log-likelihood from the Jacobian by finite differences, in float64, of standardized rows."""
    flow.model.double()
    total, step = 0.0, 1e-5
    for row in rows:
        point = torch.tensor(row, dtype=torch.float64)
        moved = torch.stack([point + step * unit for unit in torch.eye(len(row), dtype=torch.float64)] + [point])
        images = flow.model.inverse(moved)
        jacobian = (images[:-1] - images[-1]) / step
        z = images[-1].tolist()
        normal = -0.5 * sum(x * x for x in z) - 0.5 * len(z) * math.log(2 * math.pi)
        total -= normal + torch.linalg.slogdet(jacobian)[1].item()
    flow.model.float()
    return total / len(rows)


@pytest.mark.parametrize("width", [4, 5])
def test_the_flow_is_invertible_also_for_an_odd_width(width: int):
    rows = banana(width=width)
    flow = checked.fit_flow(rows, blocks=3, epochs=3)
    mapped = flow.apply(rows)
    assert mapped.shape == rows.shape
    assert mapped.dtype == np.float64
    back = flow.model.forward(torch.from_numpy(mapped).float()) * flow.scale + flow.mean
    assert back.numpy() == pytest.approx(rows, abs=1e-4)


def test_what_is_minimized_is_the_likelihood_by_the_change_of_variables_written_out():
    rows = banana(rows=40)
    flow = checked.fit_flow(rows, blocks=2, epochs=2)
    standardized = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    told = flow.model.forward_kld(torch.from_numpy(standardized).float()).item()
    assert told == pytest.approx(likelihood_by_hand(flow, standardized), rel=1e-3)
    images = flow.model.inverse(torch.from_numpy(standardized).float()).numpy()
    assert flow.apply(rows) == pytest.approx(images, abs=1e-5)


@pytest.mark.slow
def test_training_makes_the_vectors_likelier_than_any_linear_map_could():
    rows = banana()
    flow = fit_flow(rows, blocks=4)
    assert 20 < flow.kept_epoch <= 100
    # The best normal distribution, which is what a linear map fits: half the log-determinant of 2 pi e times C.
    linear = 0.5 * np.linalg.slogdet(2 * math.pi * math.e * np.corrcoef(rows.T))[1]
    assert flow.losses[0] == pytest.approx(linear, abs=0.5)
    for losses in (flow.losses, flow.held_out_losses):
        assert losses[flow.kept_epoch] < linear - 0.5
    mapped = flow.apply(rows)
    assert np.abs(mapped.mean(axis=0)).max() < 0.3
    assert np.cov(mapped.T) == pytest.approx(np.eye(4), abs=0.4)


def test_a_seed_decides_all_and_the_global_random_state_has_no_say_and_stays():
    rows = banana(rows=64)
    torch.manual_seed(5)
    state, numpy_state = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = checked.fit_flow(rows, blocks=2, epochs=2, seed=1).apply(rows)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert np.array_equal(np.random.get_state()[1], numpy_state)  # noqa: NPY002
    torch.manual_seed(6)
    assert np.array_equal(fit_flow(rows, blocks=2, epochs=2, seed=1).apply(rows), first)
    assert not np.array_equal(fit_flow(rows, blocks=2, epochs=2, seed=2).apply(rows), first)


def test_training_needs_no_gradients_turned_on():
    with torch.no_grad():
        inside = fit_flow(banana(), epochs=2)
    assert np.array_equal(inside.apply(banana()), fit_flow(banana(), epochs=2).apply(banana()))


def test_torch_and_numpy_are_mapped_alike_and_one_by_one():
    rows = banana(rows=64)
    flow = fit_flow(torch.from_numpy(rows), blocks=2, epochs=1)
    whole = flow.apply(rows)
    assert np.array_equal(flow.apply(torch.from_numpy(rows)), whole)
    assert np.concatenate([flow.apply(rows[:3]), flow.apply(rows[3:])]) == pytest.approx(whole, abs=1e-4)


def test_a_coordinate_that_is_only_rounding_throws_no_vector_far_out():
    """MiniLM has such: a coordinate of 1e-9 beside others of 0.05. At its own scale one step would move all by 1e5."""
    rows = banana()
    rows[:, 3] = 1e-9 * rows[:, 3] + 0.1
    flow = fit_flow(rows, epochs=20)
    assert max(flow.losses) < flow.losses[0] + 1
    assert max(flow.held_out_losses) < flow.held_out_losses[0] + 1
    assert np.abs(flow.apply(rows)).max() < 10
    other = rows + np.array([0.0, 0.0, 0.0, 1e-7])
    assert flow.apply(other) == pytest.approx(flow.apply(rows), abs=0.01), "other rounding, the same place"


def test_fewer_texts_than_coordinates_stay_finite():
    rows = banana(rows=20, width=60)
    flow = fit_flow(rows, epochs=20)
    assert flow.losses[-1] < flow.losses[0]
    assert np.isfinite(flow.apply(banana(rows=50, width=60, seed=1))).all()


@pytest.mark.parametrize("epochs", [3, 100])
def test_a_fifth_is_held_out_and_the_weights_that_make_it_likeliest_are_kept(epochs: int):
    """Little that holds for all texts, and much noise: what training gains on its own texts it soon loses on others."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(60, 3)) @ draw.normal(size=(3, 40)) + draw.normal(size=(60, 40))
    flow = checked.fit_flow(rows, blocks=2, epochs=epochs)
    standardized = torch.from_numpy((rows - rows.mean(axis=0)) / rows.std(axis=0)).float()
    each = -flow.model.log_prob(standardized)
    kept = flow.kept_epoch
    whole = (48 * flow.losses[kept] + 12 * flow.held_out_losses[kept]) / 60
    assert each.mean().item() == pytest.approx(whole, rel=1e-5), "the losses of 48 and of 12 texts, by these weights"
    assert flow.losses[kept] < flow.losses[0] - 1
    assert flow.held_out_losses[kept] == min(flow.held_out_losses)
    if epochs == 3:
        assert len(flow.losses) == len(flow.held_out_losses) == 4
        return
    assert len(flow.losses) == len(flow.held_out_losses) == kept + 6 < 101, "five epochs without gain, and it ends"
    assert flow.losses[-1] < flow.losses[kept], "the texts of its own would have gone on to gain"


def test_where_there_is_nothing_to_learn_the_weights_stay_those_before_training_and_it_is_said():
    rows = np.random.default_rng(0).normal(size=(60, 40))
    with pytest.warns(LabelSpaceWarning, match="kept as it was before training: the vectors held out grew less likely"):
        flow = fit_flow(rows)
    assert flow.kept_epoch == 0
    assert len(flow.losses) == 6
    assert flow.losses[-1] < flow.losses[0] - 1, "though the texts of its own became likelier"


@pytest.mark.parametrize(("rows", "aside"), [(2, False), (9, False), (10, True)])
def test_fewer_than_ten_texts_are_all_trained_on(rows: int, aside: bool):
    flow = fit_flow(banana(rows=rows), blocks=1, epochs=4)
    assert bool(flow.held_out_losses) == aside
    assert len(flow.losses) == 5
    if not aside:
        assert flow.kept_epoch == 4


def test_two_texts_of_two_coordinates_are_enough():
    assert np.isfinite(fit_flow(np.eye(2), blocks=1, epochs=2).apply(np.eye(2))).all()


def test_fit_flow_asks_for_its_package_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "normflows", None)
    with pytest.raises(MissingDependencyError, match=r"needs the package 'normflows'.*'labelspace\[geometry\]'"):
        fit_flow(banana())


def test_a_likelihood_that_is_not_finite_stops_the_training(monkeypatch: pytest.MonkeyPatch):
    import normflows

    monkeypatch.setattr(normflows.NormalizingFlow, "forward_kld", lambda self, x: (x * math.inf).sum())
    with pytest.raises(TrainingError, match="no longer finite"):
        fit_flow(banana())


@pytest.mark.parametrize("bad", [math.inf, -math.inf, math.nan])
def test_vectors_held_out_that_are_thrown_far_out_are_no_gain_and_cost_no_weights(
    monkeypatch: pytest.MonkeyPatch, bad: float
):
    """Of 50 texts 40 are trained on; what is asked of the other 10 is no longer finite after the first epoch."""
    import normflows

    real, held_out = normflows.NormalizingFlow.forward_kld, iter([2.0, 1.0, *[bad] * 5])

    def forward_kld(self, x):
        return torch.tensor(next(held_out)) if len(x) == 10 else real(self, x)

    monkeypatch.setattr(normflows.NormalizingFlow, "forward_kld", forward_kld)
    flow = fit_flow(banana(rows=50), blocks=2)
    assert flow.kept_epoch == 1
    assert flow.held_out_losses[2:] == (math.inf,) * 5, "five epochs without gain, and it ends"
    assert np.isfinite(flow.apply(banana(rows=50))).all()


@pytest.mark.parametrize("option", [{"blocks": 0}, {"epochs": 0}, {"epochs": 1.5}, {"seed": 0.5}], ids=str)
def test_an_option_out_of_its_range_is_refused(option: dict[str, Any]):
    with pytest.raises(ConfigError, match=next(iter(option))):
        fit_flow(banana(), **option)


def test_vectors_that_cannot_be_mapped_are_refused():
    with pytest.raises(InputError, match="the 4 vectors for a flow are one and the same"):
        fit_flow(np.full((4, 3), 0.1))
    with pytest.raises(ShapeError, match="two texts and two coordinates"):
        fit_flow(np.ones((4, 1)))
    with pytest.raises(ShapeError, match=r"for vectors of width 4\. Got width 3 instead"):
        fit_flow(banana(), blocks=1, epochs=1).apply(np.ones((2, 3)))
